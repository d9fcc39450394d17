"""Windows scored: what ran, what was advised, and what each change brought."""

from gateway.scaling.played_fleet import arrival_window
from gateway.scaling.scoring import (
    PricedWindow,
    ScoreTerms,
    ran_in,
    realised,
    score_window,
    served_classes,
    window_rent_pusd,
)
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetChange, FleetInstance
from ledger.reports.fleet_demand import DemandedClass

S = 1_000_000
USD = 10**12
RENT = InstanceRent(60 * USD)  # a dollar a minute
TERMS = ScoreTerms(RENT, 1_000_000, 3, 2, 30 * S)
WINDOW = PricedWindow(600 * S, 660 * S, {"chat": 90, "unknown": 5})
CHAT = DemandedClass("chat", S, 2 * USD // 10, True)  # 20 cents and one second each


def change(number: int, verb: str, engines: int, at_s: int) -> FleetChange:
    return FleetChange(
        "p", at_s * S, "act", verb, "t", engines, "r", "s", None, 4000 * S, id=number
    )


def test_what_arrived_is_priced_by_its_class_and_unknown_classes_are_left_out():
    (served,) = served_classes(WINDOW, [CHAT])
    assert (served.requests, served.pusd) == (90, 18 * USD)


def test_a_window_knows_what_ran_and_every_other_number():
    span = score_window(WINDOW, [CHAT], TERMS, (1, USD), None)
    assert span.curve == (18 * USD, 6 * USD, 0, 0)
    assert (span.ran, span.advised) == (span.ran, span.ran)
    assert (span.ran.total_pusd, span.one_rent_pusd) == (7 * USD, USD)
    assert span.as_configured.total_pusd == 2 * USD


def test_a_long_request_takes_engines_in_the_windows_in_which_it_runs():
    """Two minutes of work that began at once would take two engines in the first minute alone."""
    counted = PricedWindow(600 * S, 660 * S, {"chat": 1})
    spread = PricedWindow(600 * S, 660 * S, {"chat": 1}, {"chat": 500_000})
    two_minutes = DemandedClass("chat", 120 * S, 10 * USD, True)
    assert score_window(counted, [two_minutes], TERMS, (1, USD), None).curve[:2] == (
        10 * USD, 5 * USD,
    )  # fmt: skip
    assert score_window(spread, [two_minutes], TERMS, (1, USD), None).curve[:2] == (5 * USD, 0)
    (told,) = arrival_window(spread, [two_minutes]).arrivals or ()
    assert (told.requests, told.work_s) == (1.0, 60.0)


def test_a_change_earns_by_its_place_and_a_stop_the_other_way_round():
    curve = (18 * USD, 6 * USD, 0, 0)
    made = [
        change(1, "start", 1, 300), change(2, "start", 3, 300), change(3, "stop", 2, 300),
        change(4, "start", 1, 590), change(5, "start", 1, 610), change(6, "adopt", 1, 300),
    ]  # fmt: skip
    assert realised(WINDOW, curve, TERMS, made) == {
        1: 11 * USD,  # it avoids 12 and costs 1
        2: -USD,  # the third engine avoids nothing
        3: -5 * USD,  # the second would have avoided 6
        4: -USD,  # it does not serve yet, and costs
    }


def test_what_ran_are_owned_engines_that_served_all_of_the_window():
    def row(**marks) -> FleetInstance:
        values = {"ready_us": 500 * S} | marks
        return FleetInstance("t", "p", 0, values.pop("owned", True), RENT, 400 * S, **values)

    rows = [
        row(),
        row(ready_us=601 * S),
        row(stop_us=659 * S),
        row(gone_us=630 * S),
        row(owned=False),
    ]
    served, paid = ran_in(WINDOW, rows)
    assert served == 1
    assert paid == 4 * USD + USD // 2
    assert window_rent_pusd(WINDOW, TERMS) == USD
