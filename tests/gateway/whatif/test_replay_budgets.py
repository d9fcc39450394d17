"""Teams' hard budgets in virtual time: to the limit, never beyond, and each window anew."""

from decimal import Decimal

import pytest

from gateway.config.settings import BudgetSection
from gateway.whatif.apis import draw_latencies
from gateway.whatif.policy_replay import PolicyReplay, charged_pusd
from gateway.whatif.replay import Replay
from gateway.whatif.replay_budgets import ReplayBudgets
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.report import decision_of
from router.reasons import Reason

DAY_US = 86_400_000_000


def budget(scope: str = "team:a", usd: str = "1", **members) -> BudgetSection:
    return BudgetSection(scope=scope, usd=Decimal(usd), **members)


def test_what_is_held_is_taken_until_it_is_settled() -> None:
    purses = ReplayBudgets([budget()])
    assert purses.remaining_pusd("a", 0) == 10**12
    held = purses.hold("a", 0, 6 * 10**11)
    assert held is not None
    assert purses.remaining_pusd("a", 0) == 4 * 10**11
    held.settle(10**11)
    assert purses.remaining_pusd("a", 0) == 9 * 10**11


def test_a_window_begins_anew_and_a_hold_stays_in_its_own() -> None:
    purses = ReplayBudgets([budget(period="day")])
    held = purses.hold("a", DAY_US - 1, 10**12)
    assert held is not None
    assert purses.remaining_pusd("a", DAY_US - 1) == 0
    assert purses.remaining_pusd("a", DAY_US) == 10**12
    held.settle(3 * 10**11)
    assert purses.remaining_pusd("a", DAY_US) == 10**12
    assert purses.remaining_pusd("a", DAY_US - 1) == 7 * 10**11


@pytest.mark.parametrize("other", [budget("org:a"), budget(hard=False), budget("team:b")])
def test_whose_budgets_are_not_played_has_no_limit(other: BudgetSection) -> None:
    purses = ReplayBudgets([other])
    assert purses.remaining_pusd("a", 0) is None
    assert purses.hold("a", 0, 1) is None


def test_the_tightest_of_several_counts() -> None:
    purses = ReplayBudgets([budget(usd="3"), budget(usd="2", period="day")])
    assert purses.remaining_pusd("a", 0) == 2 * 10**12


def test_each_team_without_a_budget_of_its_own_has_the_default_by_itself() -> None:
    purses = ReplayBudgets([budget("team:*"), budget("team:b", "5"), budget("team:c", hard=False)])
    assert purses.hold("a", 0, 10**12) is not None
    rooms = {team: purses.remaining_pusd(team, 0) for team in "abcd"}
    assert rooms == {"a": 0, "b": 5 * 10**12, "c": None, "d": 10**12}


def test_a_team_whose_budget_is_spent_is_refused_and_counted_so(house, under, poisson) -> None:
    """The control is the other team: as much is asked, and nothing of it refused for money."""
    limit = 2 * 10**9
    settings = house.settings.model_copy(update={"budgets": (budget(usd="0.002"),)})
    limited = ReplayFleet(settings, house.prices, house.engines, {}, house.start_us)
    arrivals = [
        item._replace(tenant="ab"[place % 2], max_tokens=300)
        for place, item in enumerate(poisson(10.0, 400))
    ]
    planned = PolicyReplay(limited, under("tight"), arrivals[-1].at_s)
    apis = {
        name: draw_latencies(len(arrivals), event.latency, 1)
        for name, event in limited.seen.items()
    }
    outcomes = Replay(planned.seats, {}, arrivals, (), apis=apis).run(planned)
    spent = {"a": 0, "b": 0}
    refused = {"a": 0, "b": 0}
    for outcome in outcomes:
        told = decision_of(outcome)
        spent[outcome.arrival.tenant] += charged_pusd(outcome, told) or 0
        refused[outcome.arrival.tenant] += told.reason is Reason.BUDGET
    assert 0.5 * limit < spent["a"] <= limit < spent["b"]
    assert refused["a"] > 0 == refused["b"]
