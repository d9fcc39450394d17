"""Reads of fleets: of the view's period; the last plan is of any time."""

import pytest

from dashboard.data import reads, scaling
from dashboard.periods import DatedPeriod
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.database import make_engine
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_records import FleetChange, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.reports.fleet_demand import demanded_classes
from ledger.reports.verdict_read import read_verdict


def test_classes_have_the_engine_time_and_the_price_of_the_verdict(month) -> None:
    """On books with a contract and a measured engine, as no fixture of the ledger's tests has."""
    engine = make_engine(month.url)
    scope = Scope(month.now_us - 7 * DAY_US, month.now_us)
    with engine.connect() as connection:
        found = demanded_classes(connection, "llama-70b", scope)
        verdict = read_verdict(connection, scope).verdict
        assert demanded_classes(connection, "nowhere", scope) is None
    engine.dispose()
    curve, (assumed, *_) = verdict.curves["llama-70b"], verdict.sheet.pools
    assert found
    assert {item.name for item in found} <= {model.model for model in assumed.models}
    prices = {model.model: model.pusd_per_token for model in assumed.models}
    tokens = sum(sum(w.kept) * w.times + sum(w.bought) * w.times for w in curve.windows)
    for item in found:
        if item.pusd_per_request is not None:
            per_token = float(item.pusd_per_request / prices[item.name])
            assert 1 < per_token < tokens  # a mean request's tokens
            per_second = per_token / (item.engine_us / 1e6)  # tokens that an engine makes
            one = float(curve.capacity) / curve_units(curve) / (assumed.window_minutes * 60)
            assert per_second == pytest.approx(one * 100 / work_of(curve, item.name), rel=1e-3)


def curve_units(curve) -> float:
    """Work is in hundredths of a mean token."""
    return 100.0 if curve.classes else 1.0


def work_of(curve, name: str) -> float:
    return next(item.work for item in curve.classes if item.name == name)


def test_plans_of_the_period_and_the_last_of_all(books) -> None:
    filled = books(peak=1.0, days=1)
    engine = make_engine(filled.url)
    view = reads.DashboardView(filled.url, "24 h", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    assert scaling.scaled_fleets(view) == []
    fence = take_lease(engine, "chat", "h", now_us=filled.now_us, length_us=HOUR_US)
    made = ScalingBooks(engine, "chat", fence, now_us=filled.now_us)
    made.score(PlannerMemory(0, {}, []), [], {})
    at_us = filled.now_us - 3 * DAY_US
    made.record_plan(FleetPlanRecord("chat", at_us, "advise", 1, 1, "hold", "w", {}))
    engine.dispose()
    later = reads.DashboardView(filled.url, "1 h", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    (found,) = scaling.scaled_fleets(later)
    assert (found.pool, found.last.at_us, found.plans, found.days) == ("chat", at_us, (), ())


def test_a_period_that_is_over_has_nothing_of_what_came_after_it(books) -> None:
    filled = books(peak=1.0, days=1)
    engine = make_engine(filled.url)
    fence = take_lease(engine, "chat", "h", now_us=filled.now_us, length_us=HOUR_US)
    made = ScalingBooks(engine, "chat", fence, now_us=filled.now_us)
    made.score(PlannerMemory(0, {}, []), [], {})
    times = [filled.now_us - days * DAY_US for days in (4, 2, 1)]
    for at_us in times:
        made.record_plan(FleetPlanRecord("chat", at_us, "advise", 1, 1, "hold", "w", {}))
        made.advise([FleetChange("chat", at_us, "advise", "start", None, 1, "r", "w", None, at_us)])
    engine.dispose()
    over = DatedPeriod(times[0], times[1], "a period that is over")
    view = reads.DashboardView(
        filled.url, "days", None, filled.now_us, who=lambda: AT_THIS_MACHINE, dated=over
    )
    (found,) = scaling.scaled_fleets(view)
    assert [plan.at_us for plan in found.plans] == [times[0]]
    assert [change.at_us for change in found.changes] == [times[0]]
    assert found.last.at_us == times[-1]
