"""How far an own engine came with an attempt that our side ended."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import UpstreamBroken
from gateway.kinds.outcome import AttemptOutcome
from gateway.request.engine_progress import engine_time_s, estimate_progress, is_interrupted
from ledger.journals.records import TokenCounts
from router.types import StepModel

STEP = StepModel(a_s=0.01, b_s=0.001, c_s=1e-6, d_s=1e-3, t0_s=0.5)
ENGINE = SimpleNamespace(step_feedback=1.0, kv_capacity_tokens=100_000)
GONE = AttemptOutcome("client_gone", 499)


@pytest.mark.parametrize(
    ("outcome", "tokens", "interrupted"),
    [
        (GONE, TokenCounts(), True),
        (AttemptOutcome("timeout", 504), TokenCounts(), True),
        (GONE, TokenCounts(input=1), False),  # it told how far it came
        (AttemptOutcome("client_gone", 499, billable=False), TokenCounts(), False),
        (AttemptOutcome("timeout", 504, error="silent"), TokenCounts(), False),
        (AttemptOutcome("upstream_error", 502, error=UpstreamBroken.kind), TokenCounts(), False),
    ],
)
def test_only_what_our_side_ended_and_nobody_told_of_is_estimated(
    outcome, tokens, interrupted
) -> None:
    assert is_interrupted(outcome, tokens) is interrupted


def attempt(*, stream: bool, ttft_ms: float | None, max_tokens: int | None, n: int = 1):
    request = SimpleNamespace(prompt_tokens=1000, max_tokens=max_tokens, n=n)
    plan = SimpleNamespace(request=request, asked=SimpleNamespace(stream=stream))
    verdict = SimpleNamespace(ttft_ms=ttft_ms, tpot_ms=20.0)
    return SimpleNamespace(plan=plan, step=SimpleNamespace(verdict=verdict), dispatched_s=10.0)


@given(
    passed_s=st.floats(0, 1000),
    stream=st.booleans(),
    ttft_ms=st.none() | st.floats(0, 5000),
    max_tokens=st.none() | st.integers(1, 500),
    feedback=st.floats(0.5, 2.0),
)
def test_no_more_time_is_estimated_than_passed_nor_than_the_answer_takes(
    passed_s, stream, ttft_ms, max_tokens, feedback
) -> None:
    engine = SimpleNamespace(**{**vars(ENGINE), "step_feedback": feedback})
    asked = attempt(stream=stream, ttft_ms=ttft_ms, max_tokens=max_tokens)
    tokens, seconds = estimate_progress(asked, engine, STEP, 10.0 + passed_s)
    assert 0 <= seconds <= passed_s + 1e-9
    if stream:
        assert tokens == TokenCounts()
        assert seconds <= engine_time_s(engine, STEP, 1000, 0)
    elif max_tokens is not None:
        assert seconds <= engine_time_s(engine, STEP, 1000, max_tokens) + 1e-9
    first_s = 0.5 + 1e-3 * 1000 if ttft_ms is None else ttft_ms / 1e3
    assert (tokens.input == 1000) is (not stream and passed_s >= first_s)


def test_half_of_a_prefill_is_half_of_its_time_and_each_choice_has_its_own_tokens() -> None:
    prefill_s = engine_time_s(ENGINE, STEP, 1000, 0)
    early = estimate_progress(attempt(stream=False, ttft_ms=4000, max_tokens=9), ENGINE, STEP, 12.0)
    assert early == (TokenCounts(), pytest.approx(prefill_s / 2))
    two = attempt(stream=False, ttft_ms=1000, max_tokens=10, n=2)
    _, seconds = estimate_progress(two, ENGINE, STEP, 99.0)
    assert seconds == pytest.approx(engine_time_s(ENGINE, STEP, 1000, 20))
    ten = attempt(stream=False, ttft_ms=1000, max_tokens=None)
    _, seconds = estimate_progress(ten, ENGINE, STEP, 10.0 + 1.0 + 10 * 0.02)
    assert seconds == pytest.approx(engine_time_s(ENGINE, STEP, 1000, 10), rel=1e-3)


def test_the_time_is_as_long_as_steps_were_seen_to_be() -> None:
    slow = SimpleNamespace(**{**vars(ENGINE), "step_feedback": 3.0})
    assert engine_time_s(slow, STEP, 10, 5) == pytest.approx(3 * engine_time_s(ENGINE, STEP, 10, 5))
