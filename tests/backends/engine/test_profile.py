"""Fitting a step-time model: exact on exact data, careful where data say little."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.engine.probes import ProbeError, ProbeStream, TokenMark, Workload
from backends.engine.profile import (
    FitLimits,
    ProfiledRun,
    PromptCapacity,
    StepFit,
    fit,
    fuller_points,
    median_runs,
    observe,
    profile,
)
from backends.engine.supervisor import EnginePhase, Supervisor
from backends.metrics import parse
from backends.stepmodel import FittedStepModel

TRUTH = FittedStepModel(a_s=0.006, b_s=2e-4, c_s=3e-8, d_s=2e-5, t0_s=0.004)
POINTS = [(1, 40.0, 0), (1, 3000.0, 0), (4, 300.0, 0), (16, 900.0, 0), (16, 60000.0, 0)]
PROMPTS = (16, 200, 900, 3000)


def observations(truth: FittedStepModel, *, noise: float = 0.0) -> list[ProfiledRun]:
    rng = random.Random(5)
    made = [ProfiledRun(1.0, n, context, prefill, False) for n, context, prefill in POINTS]
    made += [ProfiledRun(1.0, 1, 0.0, prompt, True) for prompt in PROMPTS]
    return [
        ProfiledRun(
            each.predicted_s(truth) * (1 + rng.uniform(-noise, noise)),
            each.sequences, each.context_tokens, each.prefill_tokens, each.first_token,
        )
        for each in made
    ]  # fmt: skip


def test_exact_data_give_back_the_model_and_nothing_is_raised():
    made = fit(observations(TRUTH))
    for name in ("a_s", "b_s", "c_s", "d_s", "t0_s"):
        assert getattr(made.fitted, name) == pytest.approx(getattr(TRUTH, name), rel=1e-3)
    assert made.step == made.fitted
    assert made.pessimistic == ()
    assert made.error_worst < 0.001


@settings(max_examples=40)
@given(
    st.floats(1e-4, 0.02), st.floats(0, 1e-3), st.floats(0, 1e-6), st.floats(0, 1e-4),
    st.floats(0, 0.05),
)  # fmt: skip
def test_what_is_used_is_never_more_optimistic_than_the_fit(a, b, c, d, t0):
    made = fit(observations(FittedStepModel(a, b, c, d, t0), noise=0.2))
    for name in ("a_s", "b_s", "c_s", "d_s", "t0_s"):
        used, fitted = getattr(made.step, name), getattr(made.fitted, name)
        assert used >= fitted
        assert used == fitted or name in made.pessimistic


def test_what_was_not_varied_is_taken_pessimistically():
    """All steps with one sequence and one context: their shares cannot be told apart."""
    alike = [ProfiledRun(0.010, 1, 50.0, 0, False)] * 3
    alike += [ProfiledRun(0.02 + prompt * 1e-5, 1, 0.0, prompt, True) for prompt in PROMPTS]
    made = fit(alike)
    assert {"a_s", "b_s"} <= set(made.pessimistic)
    assert made.step.step_s(sequences=8, context_tokens=400, prefill_tokens=0) >= 0.05


def test_only_first_tokens_or_only_steps_cannot_be_fitted():
    made = observations(TRUTH)
    for part in ([o for o in made if o.first_token], [o for o in made if not o.first_token], []):
        with pytest.raises(ProbeError, match="both needed"):
            fit(part)


def stream(sent: float, prompt: int, times: list[float]) -> ProbeStream:
    return ProbeStream(
        prompt, tuple(TokenMark(at, count) for count, at in enumerate(times, 1)), sent
    )


def test_a_single_stream_gives_a_first_token_and_a_step():
    times = [0.5 + 0.01 * count for count in range(11)]
    first, step = observe([stream(0.1, 100, times)])
    assert first == ProfiledRun(pytest.approx(0.4), 1, 0.0, 100, True)
    assert step.seconds == pytest.approx(0.01)
    assert step.context_tokens == 100 + (1 + 11) / 2


def test_streams_together_count_only_while_all_are_decoding():
    early = stream(0.0, 10, [0.02 * count for count in range(1, 40)])
    late = stream(0.0, 30, [0.3 + 0.02 * count for count in range(1, 40)])
    (step,) = observe([early, late])
    assert step.sequences == 2
    assert step.seconds == pytest.approx(0.02, rel=0.1)
    assert step.context_tokens > 40


def test_a_stream_read_in_one_go_says_nothing():
    late = ProbeStream(10, (TokenMark(0.5, 12),), 0.0)
    stalled = ProbeStream(10, (TokenMark(0.5, 1), TokenMark(0.51, 12)), 0.0)
    assert observe([late]) == []
    assert [each.first_token for each in observe([stalled])] == [True]


def test_tokens_that_were_held_up_and_come_in_a_burst_give_no_step():
    burst = stream(0.0, 100, [0.15 + 0.00001 * count for count in range(36)])
    assert [each.first_token for each in observe([burst])] == [True]
    together = [stream(0.0, 100, [0.15 + 0.0004 * count for count in range(36)]) for _ in range(4)]
    assert observe(together) == []


def test_streams_that_never_ran_together_say_nothing():
    early, late = stream(0.0, 10, [0.1, 0.2]), stream(0.0, 10, [0.5, 0.6])
    assert observe([early, late]) == []


def test_the_middle_of_each_point_ignores_one_stall():
    found = [ProfiledRun(s, 1, 0.0, 10, first) for first in (True, False) for s in (9.0, 0.1, 0.2)]
    assert [each.seconds for each in median_runs(found)] == [0.2, 0.2]


# The step of an H200 with an 8B model in bf16, by closed loops of 13 to 195 sequences, 2026-11-21.
H200 = FittedStepModel(a_s=0.0042, b_s=3e-5, c_s=2.5e-8, d_s=1.8e-5, t0_s=0.005)
USUAL = [(1, 30.0), (1, 150.0), (1, 530.0), (1, 1550.0), (2, 70.0), (4, 150.0), (8, 320.0)]
USUAL += [(16, 800.0), (4, 2200.0), (4, 6300.0)]


def measured(points: list[tuple[int, float]], seed: int) -> list[ProfiledRun]:
    """Steps at these (sequences, context) and first tokens, with 4 % noise."""
    rng = random.Random(seed)
    made = [ProfiledRun(1.0, count, context, 0, False) for count, context in points]
    made += [ProfiledRun(1.0, 1, 0.0, prompt, True) for prompt in (16, 128, 512, 1536)]
    return [
        ProfiledRun(
            each.predicted_s(H200) * (1 + rng.uniform(-0.04, 0.04)),
            each.sequences, each.context_tokens, each.prefill_tokens, each.first_token,
        )
        for each in made
    ]  # fmt: skip


def worst_miss(points: list[tuple[int, float]]) -> float:
    """Of the step that a full engine takes, over some draws of the noise."""
    load = {"sequences": 190, "context_tokens": 190 * 640.0, "prefill_tokens": 380}
    truth = H200.step_s(**load)
    return max(abs(fit(measured(points, n)).step.step_s(**load) / truth - 1) for n in range(20))


def test_fuller_batches_tell_how_a_fast_engine_carries_a_full_load():
    points = fuller_points(
        measured(USUAL, 1), FitLimits(), PromptCapacity(8192, 900_000, 1.0), short=16
    )
    assert points == [(48, 16), (16, 4096), (1, 4096), (1, 7168)]
    seen = [(count, count * (words + 32 + 2 * count)) for count, words in points[:2]]
    assert worst_miss([*USUAL, *seen, *seen]) < 0.12
    assert worst_miss(USUAL) > 0.25  # the negative control: the usual points alone


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"kv_tokens": 3000}, []),  # half of it is for others; nothing fits
        ({"kv_tokens": 60_000}, [(48, 16), (6, 4096), (1, 4096), (1, 7168)]),
        ({"kv_tokens": 9_000}, [(24, 16), (1, 4096)]),
        ({"context_tokens": 1024}, [(48, 16), (16, 928)]),
        ({"tokens_a_word": 5.0}, [(48, 16), (12, 1622)]),
        ({"context_tokens": 40}, []),
        ({"kv_tokens": 0}, []),  # unknown, or others use the engine
    ],
)
def test_fuller_batches_are_as_full_as_context_and_cache_allow(change, expected):
    room = replace(
        PromptCapacity(context_tokens=8192, kv_tokens=900_000, tokens_a_word=1.0), **change
    )
    assert fuller_points(measured(USUAL, 1), FitLimits(), room, short=16) == expected


def test_long_prompts_tell_what_reading_takes_where_launches_hide_it():
    """Short prompts are read in the time that launching kernels takes: their rate says nothing.

    34 ms of launches beside 20 us a token, as an H200 with an 8B model and eager prefill.
    """

    def forecast_ms(prompts: tuple[int, ...]) -> float:
        steps = [each for each in measured(USUAL, 1) if not each.first_token]
        firsts = [ProfiledRun(max(0.034, 0.005 + 2e-5 * n), 1, 0.0, n, True) for n in prompts]
        step = fit([*steps, *firsts]).step
        return 1e3 * (step.t0_s + step.step_s(sequences=1, context_tokens=0, prefill_tokens=7000))

    assert forecast_ms(FitLimits().prompts) < 0.6 * 145.0, "the negative control"
    assert forecast_ms((*FitLimits().prompts, *FitLimits().lone)) == pytest.approx(145.0, rel=0.08)


def test_a_slow_engine_is_not_held_up_by_fuller_batches():
    slow = [
        ProfiledRun(99 * each.seconds, *[getattr(each, name) for name in FIELDS])
        for each in measured(USUAL, 1)
    ]
    assert fuller_points(slow, FitLimits(), PromptCapacity(8192, 900_000, 1.0), short=16) == []
    steps = [each for each in slow if not each.first_token]
    assert fuller_points(steps, FitLimits(), PromptCapacity(8192, 900_000, 1.0), short=16) == []


FIELDS = ("sequences", "context_tokens", "prefill_tokens", "first_token")


async def test_a_live_engine_is_measured_within_its_budget(fake_spec):
    # Tokens of a millisecond would come several at once on a busy machine: no step is seen then.
    supervisor = Supervisor(fake_spec("paced"), lambda _: None)
    task = asyncio.create_task(supervisor.run())
    try:
        status = await supervisor.wait_for(EnginePhase.SERVING, 120)
        async with httpx.AsyncClient() as client:
            made = await profile(
                Workload(status.base_url, "fake", parse), client=client,
                limits=FitLimits(budget_s=120.0, concurrencies=(2, 4), output_tokens=12, rounds=2),
            )  # fmt: skip
    finally:
        await supervisor.stop()
        await task
    assert made.observations >= 4 * 2 + 2
    assert made.step.step_s(sequences=1, context_tokens=10, prefill_tokens=0) > 0.0005


class SpellingServer:
    """Its tokenizer makes five tokens of a word, and it refuses what is beyond its context."""

    CONTEXT = 2048

    def __init__(self) -> None:
        self.asked: list[int] = []  # tokens of each request, its answer's with them

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/models":
            model = {"id": "spelling", "max_model_len": self.CONTEXT}
            return httpx.Response(200, json={"data": [model]})
        if request.url.path != "/v1/completions":
            return httpx.Response(404)
        body = json.loads(request.content)
        prompt, most = 5 * len(body["prompt"].split()), body["max_tokens"]
        self.asked.append(prompt + most)
        if prompt + most > self.CONTEXT:
            return httpx.Response(400, json={"error": {"message": "longer than its context"}})
        return httpx.Response(200, content=self._tokens(prompt, most))

    async def _tokens(self, prompt: int, most: int) -> AsyncIterator[bytes]:
        await asyncio.sleep(0.002 + prompt * 1e-5)
        for count in range(1, most + 1):
            usage = {"prompt_tokens": prompt, "completion_tokens": count}
            chunk = {"choices": [{"index": 0, "text": "a"}], "usage": usage}
            yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
            await asyncio.sleep(0.001)
        yield b"data: [DONE]\n\n"


async def test_no_prompt_is_longer_than_the_context_by_the_tokenizer_there():
    engine = SpellingServer()
    async with httpx.AsyncClient(transport=httpx.MockTransport(engine)) as client:
        limits = FitLimits(budget_s=0.5, fuller_s=0.5, concurrencies=(2,), output_tokens=12)
        measuring = profile(
            Workload("http://engine/v1", "spelling", parse), client=client, limits=limits
        )
        (made,) = await asyncio.gather(measuring, return_exceptions=True)
    # Where the machine is busy it may find too little to fit, but no prompt was refused.
    assert isinstance(made, StepFit) or "for a fit" in str(made)
    assert engine.CONTEXT / 5 < max(engine.asked) <= engine.CONTEXT
