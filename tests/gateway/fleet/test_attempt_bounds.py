"""The most that an attempt at an own engine can be charged."""

from dataclasses import replace

import pytest

from gateway.fleet.attempt_bounds import OUTPUT_BOUND_TOKENS, output_bound, own_bound_pusd
from gateway.fleet.fleet import Target
from router.request_kinds import RequestKind
from router.types import EngineState, OutputMoments, RoutingRequest, StepModel, TargetHealth

STEP = StepModel(t0_s=0.5, a_s=0.01, b_s=0.001, c_s=1e-6, d_s=1e-4)
ENGINE = EngineState(
    health=TargetHealth.HEALTHY, step=STEP, running=0, waiting=0, context_tokens=0.0,
    queued_prefill_tokens=0.0, kv_capacity_tokens=100_000, kv_used_tokens=0.0,
    kv_promised_tokens=0.0, kv_block_tokens=16, max_num_seqs=256, prefill_budget_tokens=2048,
    step_feedback=2.0,
)  # fmt: skip
MOMENTS = OutputMoments(count=50, mean=80.0, mean_square=7000.0, p95=150.0)
REQUEST = RoutingRequest(RequestKind.CHAT, "chat", 200, 300, 100, MOMENTS)


def target(rate: int | None) -> Target:
    return Target(
        name="pool:a/0", own=True, pool="a", provider=None, upstream_model="m", simulated=False,
        backend=None,  # type: ignore[arg-type]  # a bound never calls it
        row=0, features=frozenset(), kinds=frozenset(RequestKind), context_tokens=None,
        accepts_salt=True, rate_pusd_per_hour=rate,
    )  # fmt: skip


def test_the_bound_of_an_own_request_grows_with_its_output() -> None:
    paid = target(3600 * 10**9)
    assert (
        0 < own_bound_pusd(paid, ENGINE, REQUEST, 10) < own_bound_pusd(paid, ENGINE, REQUEST, 1000)
    )
    assert own_bound_pusd(target(None), ENGINE, REQUEST, 10) == 0
    choices = own_bound_pusd(paid, ENGINE, replace(REQUEST, n=4), 25)
    assert choices == own_bound_pusd(paid, ENGINE, REQUEST, 100)


def test_the_bound_of_an_own_request_is_its_prefill_and_a_full_step_for_each_token() -> None:
    seconds = 0.5 + 300 * 1e-4 + 100 * (0.01 + 0.001 + 1e-6 * (300 + 100))
    bound = own_bound_pusd(target(7200 * 10**9), ENGINE, REQUEST, 100)
    assert bound == pytest.approx(2 * seconds * 2 * 10**9, rel=1e-9)


def test_without_a_limit_an_answer_has_the_longest_of_an_unknown_model() -> None:
    assert output_bound(REQUEST) == 100
    assert output_bound(replace(REQUEST, max_tokens=None)) == OUTPUT_BOUND_TOKENS
