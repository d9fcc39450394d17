"""Whether the others carry what is under way when one engine of a pool is away."""

import pytest

from gateway.host.drain_check import reason_against
from router.types import EngineState, StepModel, TargetHealth

STEP = StepModel(0.010, 0.0005, 1e-7, 1e-4, 0.0)


def engine(**changes) -> EngineState:
    fields = {
        "health": TargetHealth.HEALTHY, "step": STEP, "running": 4, "waiting": 0,
        "context_tokens": 4000.0, "queued_prefill_tokens": 0.0, "kv_capacity_tokens": 100_000,
        "kv_used_tokens": 4000.0, "kv_promised_tokens": 4000.0, "kv_block_tokens": 16,
        "max_num_seqs": 32, "prefill_budget_tokens": 2048,
    }  # fmt: skip
    return EngineState(**{**fields, **changes})


def pool(**changes) -> dict[str, EngineState]:
    return {"a": engine(**changes), "b": engine(**changes), "c": engine(**changes)}


def test_a_pool_at_ease_spares_one():
    assert reason_against(pool(), "a") is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"running": 15}, "45 requests are under way, the others run 64 at most"),
        ({"kv_used_tokens": 30_000.0, "kv_promised_tokens": 20_000.0},
         "150000 KV tokens are taken, the others have 200000"),
        ({"tightest_tpot_ms": 15.0}, "a token would take 14 ms, 15 ms are promised"),
        ({"tightest_tpot_ms": 15.0, "step": None}, "the others' pace is not known"),
    ],
)  # fmt: skip
def test_a_pool_that_is_too_busy_spares_none(changes, said):
    assert reason_against(pool(**changes), "a") == said


def test_the_same_load_is_no_hindrance_where_more_serve():
    """The control of each bound: three others instead of two carry it."""
    assert reason_against({**pool(running=15), "d": engine(running=15)}, "a") is None
    held = {"kv_used_tokens": 30_000.0, "kv_promised_tokens": 20_000.0}
    assert reason_against({**pool(**held), "d": engine(**held)}, "a") is None
    assert reason_against(pool(tightest_tpot_ms=30.0), "a") is None


@pytest.mark.parametrize(
    "health", [TargetHealth.LOADING, TargetHealth.DOWN, TargetHealth.UNKNOWN, TargetHealth.OFF]
)
def test_never_two_at_once(health):
    assert reason_against({**pool(), "b": engine(health=health)}, "a") == "b does not serve"


def test_the_only_engine_waits_until_nothing_is_under_way():
    assert reason_against({"a": engine()}, "a") == "4 requests are under way and nobody else serves"
    assert reason_against({"a": engine(running=0)}, "a") is None
