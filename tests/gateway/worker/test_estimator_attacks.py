"""One key or one upstream that lies as it likes, against every estimator of the registry.

Of each estimator: what others hold is as before, what the attacked one holds is within the stated
limit, and after a silence or with a reset the prior is back.
"""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.clock import Clock
from gateway.control.estimate_resets import RESET, SUBJECT
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import TargetStats
from gateway.fleet.target_views import LiveApiView
from gateway.table_layout import TableLayout
from gateway.worker.learned_estimates import HostEstimates
from ledger.overrides import Override
from router.cached_share import LIMIT as CACHED_LIMIT
from router.estimates import PRIOR_OUTPUT_TOKENS
from router.estimator_rules import DAY_S, LATENCY_STEP, LENGTH_STEP, UNSEEN_STEP, Estimator
from router.target_output import OVERRUN_LIMIT, RATE_LIMIT_PER_S, EndedAnswer
from router.target_prompts import (
    CONTEXT_LIMIT_TOKENS,
    PICTURE_FACTOR_LIMIT,
    SOUND_FACTOR_LIMIT,
    PromptOverrun,
)
from router.token_ratio import LONGEST_TOKEN_BYTES, TEMPLATE_LIMIT, TEMPLATE_TOKENS

TEXT = 10_000
LEAST_S = 1e-6  # of a latency: a clock tells no less
EVIL, VICTIM = ("chat", "evil"), ("chat", "victim")  # of the same model
TARGETS = ("evil/m", "honest/m")

whole = st.integers(0, 10**12)
seconds = st.floats(0.0, 1e6)


class Host(NamedTuple):
    estimates: HostEstimates
    experience: TargetStats
    views: list[LiveApiView]

    def held(self, estimator: Estimator, at: int) -> tuple[float | None, ...]:
        """What a request is held for, or routed by: of the attacked one (0), or of another (1)."""
        learned, key, target = self.estimates.learned, (EVIL, VICTIM)[at], TARGETS[at]
        if estimator is Estimator.BYTES_PER_TOKEN:
            return learned.ratio.estimate(key, TEXT)
        if estimator is Estimator.OUTPUT_TOKENS:
            moments = learned.outputs.moments(key, 100)
            return moments.mean, moments.p95, moments.count
        if estimator is Estimator.OUTPUT_OVERRUN:
            return (learned.target_output.allowance(target),)
        if estimator is Estimator.UNSEEN_OUTPUT:
            return learned.target_output.tokens_per_s(target), learned.target_output.hides(target)
        if estimator is Estimator.PROMPT_OVERRUN:
            return learned.target_prompts.overrun(target) or PromptOverrun()
        if estimator is Estimator.CACHED_SHARE:
            return (learned.cached.shares.share(target, promised=False),)
        state = self.views[at].snapshot(0.0, 0)
        return state.ttft_median_ms, state.tpot_median_ms, state.observations

    def observe(self, estimator: Estimator, at: int, told: tuple[int, int, float, float]) -> None:
        """Let the estimator see an answer of which four figures are whatever its author likes."""
        learned, key, target = self.estimates.learned, (EVIL, VICTIM)[at], TARGETS[at]
        size, tokens, first_s, last_s = told
        if estimator is Estimator.BYTES_PER_TOKEN:
            learned.ratio.observe(key, size, tokens, 0.0)
        elif estimator is Estimator.OUTPUT_TOKENS:
            learned.outputs.observe(key, 100, tokens)
        elif estimator is Estimator.OUTPUT_OVERRUN:
            learned.target_output.observe_overrun(target, tokens, 0.0)
        elif estimator is Estimator.UNSEEN_OUTPUT:
            answer = EndedAnswer(tokens, size, 0, first_s, last_s)
            learned.target_output.observe(target, answer, 0.0)
        elif estimator is Estimator.PROMPT_OVERRUN:
            told_of = PromptOverrun(first_s, last_s, tokens)
            learned.target_prompts.observe(target, told_of, 0.0)
        elif estimator is Estimator.CACHED_SHARE:
            learned.cached.shares.observe(target, size, tokens, 0.0)
        else:
            self.experience.api(at, ttft_s=first_s, tpot_s=last_s, ok=True)


def is_among(median_ms: float, told_s: list[float]) -> bool:
    return 990.0 * max(LEAST_S, min(told_s)) <= median_ms <= 1010.0 * max(LEAST_S, *told_s)


Held = tuple[float | None, ...]
Lies = list[tuple[int, int, float, float]]
LIMITS: dict[Estimator, Callable[[Held, Lies], bool]] = {
    Estimator.BYTES_PER_TOKEN: lambda held, _: (
        TEXT / LONGEST_TOKEN_BYTES <= held[0] <= held[1] <= TEXT + TEMPLATE_LIMIT
    ),
    # No hold is made of these: each lie has its step, and none leads beyond what was told.
    Estimator.OUTPUT_TOKENS: lambda held, lies: (
        0.0 <= held[0] <= PRIOR_OUTPUT_TOKENS * LENGTH_STEP ** len(lies)
        and held[0] <= max(PRIOR_OUTPUT_TOKENS, *(tokens for _, tokens, *_ in lies))
        and held[2] == len(lies)
    ),
    Estimator.API_LATENCY: lambda held, lies: (
        is_among(held[0], [lie[2] for lie in lies]) and is_among(held[1], [lie[3] for lie in lies])
    ),
    Estimator.PROMPT_OVERRUN: lambda held, _: (
        0.0 <= held[0] <= PICTURE_FACTOR_LIMIT
        and 0.0 <= held[1] <= SOUND_FACTOR_LIMIT
        and 0 <= held[2] <= CONTEXT_LIMIT_TOKENS
    ),
    Estimator.CACHED_SHARE: lambda held, _: 0.0 <= held[0] <= CACHED_LIMIT,
    Estimator.OUTPUT_OVERRUN: lambda held, _: 0 <= held[0] <= OVERRUN_LIMIT,
    Estimator.UNSEEN_OUTPUT: lambda held, _: held[0] is None or 0.0 <= held[0] <= RATE_LIMIT_PER_S,
}
STEPS = {  # of the first figure that is held, for one lie after honest answers
    Estimator.BYTES_PER_TOKEN: 1.25,
    Estimator.OUTPUT_TOKENS: LENGTH_STEP,
    Estimator.API_LATENCY: LATENCY_STEP,
    Estimator.UNSEEN_OUTPUT: UNSEEN_STEP,
}
HONEST = (TEXT, 2500, 1.0, 0.02)


def test_every_registered_estimator_is_attacked() -> None:
    assert set(LIMITS) == set(Estimator)


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Give a host that knows nothing: one that is reset each time, as hypothesis asks for many."""
    place, numbers = tmp_path_factory.mktemp("host"), count(1)
    board = SharedLoadTable(place / "board", TableLayout(workers=1, engines=(), apis=TARGETS))
    experience = TargetStats(board, 0, Clock(now_s=lambda: 0.0, wall_us=lambda: 0))
    estimates = HostEstimates(place, (), lambda: 0, experience)
    host = Host(estimates, experience, [LiveApiView(board, row) for row in range(2)])

    def fresh() -> Host:
        estimates.reset([Override(next(numbers), SUBJECT + "[null,null]", RESET, 0, 0, "ann")])
        return host

    yield fresh
    estimates.close()
    board.close()


@pytest.mark.parametrize("estimator", Estimator)
@settings(max_examples=25, deadline=None)
@given(lies=st.lists(st.tuples(whole, whole, seconds, seconds), min_size=1, max_size=60))
def test_lies_stay_with_whose_they_are_and_within_the_limit(make, estimator, lies) -> None:
    host = make()
    prior = host.held(estimator, 0)
    for _ in range(30):
        host.observe(estimator, 1, HONEST)
    before = host.held(estimator, 1)
    for number, lie in enumerate(lies, 1):
        host.observe(estimator, 0, lie)
        assert LIMITS[estimator](host.held(estimator, 0), lies[:number])
    assert host.held(estimator, 1) == before
    make()
    assert host.held(estimator, 0) == host.held(estimator, 1) == prior


@pytest.mark.parametrize("estimator", STEPS)
@settings(max_examples=25, deadline=None)
@given(lie=st.tuples(whole, whole, seconds, seconds))
def test_one_lie_moves_an_estimate_by_its_step(make, estimator, lie) -> None:
    host = make()
    for _ in range(30):
        host.observe(estimator, 0, HONEST)
    before = host.held(estimator, 0)[0]
    host.observe(estimator, 0, lie)
    after = host.held(estimator, 0)[0]
    slack = TEMPLATE_TOKENS + 1 if estimator is Estimator.BYTES_PER_TOKEN else 1e-6
    assert before / STEPS[estimator] - slack <= after <= before * STEPS[estimator] + slack


@pytest.mark.parametrize("estimator", Estimator)
def test_a_silence_brings_the_prior_back(make, estimator) -> None:
    host = make()
    prior = host.held(estimator, 0)
    for _ in range(200):
        host.observe(estimator, 0, (TEXT, TEXT, 900.0, 9.0))
    assert host.held(estimator, 0) != prior
    for days in range(100):
        host.estimates.age(days * DAY_S)
    host.estimates.age(0.0)
    assert host.held(estimator, 0) == prior
