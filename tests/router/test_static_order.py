"""The configured order: rules and money as ever, own engines half full at most, nothing unseen."""

import math

import pytest

from router.decide import decide
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.static_order import static_order
from router.types import InfeasibleAction, Preference, Residency, TargetHealth

WHY = "telemetry is silent"
STALE = {"health": TargetHealth.UNKNOWN, "age_s": 12.0}


def names(decision):
    return [verdict.candidate.name for verdict in decision.order]


def rejections(decision):
    return {v.candidate.name: v.reason for v in decision.verdicts if not v.feasible}


def test_targets_follow_as_they_are_configured_whatever_they_cost(ask, rule, own, api):
    engines = [
        own({**STALE, "running": running}, name=f"pool:llama/{place}")
        for place, running in enumerate((30, 5))
    ]
    dear, cheap = api(name="dear/m", expected_pusd=9_000_000), api(name="cheap/m")
    decision = static_order(ask(), rule(), [dear, *engines, cheap], WHY)
    assert names(decision) == ["dear/m", "pool:llama/1", "pool:llama/0", "cheap/m"]
    assert decision.reason is Reason.STATIC
    assert {(verdict.reason, verdict.detail) for verdict in decision.order} == {
        (Reason.STATIC, WHY)
    }


def test_the_decision_itself_uses_no_engine_that_it_cannot_see(ask, rule, own):
    """The control: with its own engine alone this request would be refused."""
    stale = own(STALE)
    assert decide(ask(), rule(), [stale]).order == ()
    assert names(static_order(ask(), rule(), [stale], WHY)) == ["pool:llama/0"]


@pytest.mark.parametrize(
    ("state", "taken"),
    [
        ({"running": 127}, True),
        ({"running": 128}, False),  # half of 256 sequences
        ({"kv_used_tokens": 48_000.0}, True),
        ({"kv_used_tokens": 48_200.0}, False),  # with 912 of its own, and 1,000 promised
        ({"running": 0, "kv_used_tokens": 90_000.0}, True),  # alone it fits
        ({"running": 0, "kv_used_tokens": 99_000.0}, False),
        ({"health": TargetHealth.DOWN}, False),
        ({"health": TargetHealth.LOADING}, False),
        ({"health": TargetHealth.DRAINING}, False),
        ({"kv_capacity_tokens": 0, "age_s": math.inf}, False),  # never seen
        ({"kv_used_tokens": math.nan}, False),
    ],
)
def test_what_is_stale_never_looks_like_room(ask, rule, own, state, taken):
    engine = own({**STALE, **state})
    assert bool(static_order(ask(), rule(), [engine], WHY).order) is taken


def test_the_promise_is_what_it_may_hold(ask, rule, own):
    (verdict,) = static_order(ask(max_tokens=None, n=2), rule(), [own(STALE)], WHY).order
    assert verdict.kv_promise_tokens == 2 * 8192
    (verdict,) = static_order(ask(kind=RequestKind.EMBEDDING), rule(), [own(STALE)], WHY).order
    assert verdict.kv_promise_tokens == 512


def test_rules_and_money_count_as_ever(ask, rule, own, api):
    confined = ask(residency=Residency.INTERNAL_ONLY)
    found = static_order(confined, rule(), [own({"health": TargetHealth.DOWN}), api()], WHY)
    assert rejections(found) == {
        "pool:llama/0": Reason.UNHEALTHY,
        "openai/small": Reason.RESIDENCY,
    }
    poor = static_order(ask(), rule(), [api(budget_room_pusd=1)], WHY)
    assert rejections(poor) == {"openai/small": Reason.BUDGET}
    assert (poor.reason, poor.otherwise) == (Reason.BUDGET, InfeasibleAction.REJECT)
    closed = static_order(ask(), rule(), [api({"circuit_open": True})], WHY)
    assert rejections(closed) == {"openai/small": Reason.CIRCUIT_OPEN}


def test_sessions_and_shares_hold(ask, rule, own, api):
    offered = [own(STALE), api(name="a/m"), api(name="b/m")]
    preferred = Preference(frozenset({"b/m"}), Reason.WEIGHT)
    assert names(static_order(ask(preferred=preferred), rule(), offered, WHY))[0] == "b/m"
    sticky = ask(preferred=preferred, sticky_target="a/m")
    assert names(static_order(sticky, rule(), offered, WHY))[:2] == ["a/m", "b/m"]
