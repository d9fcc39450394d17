"""A fleet played in virtual time, by hand."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import pytest

from gateway.host.scaling import make_planner
from gateway.scaling.played_fleet import arrival_window, demand_classes, play_windows
from gateway.scaling.scoring import PricedWindow, ScoreTerms
from ledger.economics.scaling_score import InstanceRent, PlanSum
from ledger.reports.fleet_demand import DemandedClass
from router.scaling.plan import EngineWorth, PoolTerms, RentTerms, ScalePlan, ScaleReason

S = 1_000_000
USD = 10**12
CHAT = DemandedClass("chat", S, 2 * USD // 10, movable=True)  # 20 cents, one second
TERMS = ScoreTerms(InstanceRent(60 * USD), 1_000_000, 3, 2, 30 * S)  # a dollar a minute


def windows(*requests: int) -> list[PricedWindow]:
    return [
        PricedWindow(place * 60 * S, (place + 1) * 60 * S, {"chat": count})
        for place, count in enumerate(requests)
    ]


@dataclass
class ListedPlan:
    """Wants one number after the other."""

    wanted: list[int]
    seen: int = 0

    def observe(self, window: object) -> None:
        self.seen += 1

    def plan(self, state) -> ScalePlan:
        assert state.at_us == self.seen * 60 * S, "a plan knows the windows before it"
        worth = EngineWorth(1, USD, USD)
        return ScalePlan(
            "p", state.at_us, self.wanted[self.seen], len(state.engines), (), 60.0, None, worth,
            (), (), ScaleReason.HOLD, "", state.at_us,
        )  # fmt: skip

    def memory(self) -> dict[str, object]:
        return {}


def test_engines_serve_after_their_start_and_cost_until_they_have_drained():
    spans = list(
        play_windows(
            ListedPlan([1, 1, 1, 0, 0]), windows(60, 60, 60, 60, 60), [CHAT], TERMS,
            serving=0, drain_us=30 * S,
        )
    )  # fmt: skip
    assert [span.advised.rent_pusd for span in spans] == [USD, USD, USD, USD // 2, 0]
    assert [span.advised.api_pusd for span in spans] == [12 * USD, 0, 0, 12 * USD, 12 * USD]
    assert {span.ran for span in spans} == {PlanSum(2 * USD, 0)}  # as configured


@pytest.mark.parametrize(("scale", "cheaper"), [(1, True), (0, False)])
def test_the_planner_itself_spends_less_than_any_constant_number_over_days(scale, cheaper):
    """The control has engines that cost nothing to keep, where a constant number cannot lose."""
    rent = 60 * USD * scale
    terms = replace(TERMS, rent=InstanceRent(rent))
    planner = make_planner(PoolTerms("p", RentTerms(rent), 30.0, 1.0, most=3), None)
    day = [30] * 240 + [170] * 240
    spans = play_windows(planner, windows(*day, *day), [CHAT], terms, serving=1)
    whole = reduce(add, spans)
    assert (whole.advised.total_pusd < whole.best_fixed[1].total_pusd) is cheaper


def test_what_nothing_is_known_of_is_not_told():
    (window,) = windows(3)
    strange = replace(window, arrived={"chat": 3, "else": 9})
    told = arrival_window(strange, [CHAT])
    assert [(item.name, item.requests, item.work_s) for item in told.arrivals] == [("chat", 3, 3)]
    assert [item.engine_s for item in demand_classes([CHAT])] == [1.0]
