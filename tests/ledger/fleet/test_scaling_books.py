"""Writes of a fleet: a change with its instance, hours that add up, nothing without lease."""

from dataclasses import replace

import pytest

from ledger.economics.scaling_score import InstanceRent, PlanSum, ScoredSpan
from ledger.fleet import fleet_reads as reads
from ledger.fleet.fleet_lease import FleetLeaseLost, take_lease
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks

S = 1_000_000
HOUR_US = 3_600 * S
USD = 10**12
START = FleetChange("p", 5 * S, "act", "start", "p.0.k", 1, "earns_rent", "w", USD, HOUR_US)
ENGINE = FleetInstance("p.0.k", "p", 0, True, InstanceRent(3 * USD, 60, 600), 5 * S)
PLAN = FleetPlanRecord("p", 5 * S, "act", 1, 0, "earns_rent", "w", {"forecast": []})


@pytest.fixture
def books(engine):
    fence = take_lease(engine, "p", "h", now_us=0, length_us=100 * HOUR_US)
    return ScalingBooks(engine, "p", fence, now_us=10 * S)


def read(engine, what, *more):
    with engine.connect() as connection:
        return what(connection, "p", *more)


def test_a_start_and_its_engine_are_one_write(engine, books):
    books.intend(START, ENGINE)
    assert read(engine, reads.open_instances) == [ENGINE]
    (change,) = read(engine, reads.changes)
    assert change == replace(START, id=change.id, fence=1)
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        books.intend(START, ENGINE)
    assert len(read(engine, reads.changes)) == 1  # neither is there twice


def test_a_stop_marks_its_engine_and_an_outcome_completes_its_changes(engine, books):
    books.intend(START, ENGINE)
    books.mark("p.0.k", "done", ready_us=8 * S)
    books.intend(replace(START, verb="stop"))
    (row,) = read(engine, reads.open_instances)
    assert (row.ready_us, row.stop_us, row.is_live) == (8 * S, 10 * S, False)
    books.mark("p.0.k", "done", "w" * 1000, gone_us=20 * S)
    stop, start = read(engine, reads.changes)
    assert (start.outcome, start.detail, stop.outcome, len(stop.detail)) == (
        "done", None, "done", 400,
    )  # fmt: skip
    assert read(engine, reads.open_instances) == []
    assert read(engine, reads.instances_between, 0, HOUR_US)[0].gone_us == 20 * S
    assert read(engine, reads.instances_between, 20 * S, HOUR_US) == []


def test_a_stop_of_what_never_came_is_done_and_its_start_failed(engine, books):
    books.intend(START, ENGINE)
    books.intend(replace(START, verb="stop"))
    books.mark("p.0.k", "failed", "w", gone_us=20 * S)
    stop, start = read(engine, reads.changes)
    assert (stop.outcome, start.outcome, start.detail) == ("done", "failed", "w")


def test_each_life_of_what_nobody_asked_for_has_a_row_with_its_rent(engine, books):
    orphan = replace(ENGINE, token="p!i", owned=False, place=None)
    books.add(orphan)
    books.mark("p!i", gone_us=15 * S)
    books.add(replace(orphan, asked_us=30 * S))
    again = replace(orphan, token=f"p!i~{30 * S}", asked_us=30 * S)
    assert read(engine, reads.open_instances) == [again]
    ended = replace(orphan, gone_us=15 * S)
    assert read(engine, reads.instances_between, 0, HOUR_US) == [ended, again]
    assert not read(engine, reads.has_instances)
    books.intend(START, ENGINE)
    assert read(engine, reads.has_instances)


def test_an_unknown_mark_is_refused(books):
    with pytest.raises(ValueError, match="instances have no pool"):
        books.mark("p.0.k", pool="q")


def test_hours_add_up_and_the_planner_moves_on_with_them(engine, books):
    span = ScoredSpan(HOUR_US, 60 * S, 10, PlanSum(3, 4), PlanSum(1, 2), (9, 4), 3, 1, 2)
    later = replace(span, start_us=HOUR_US + 60 * S, curve=(1, 1, 0))
    books.intend(START, ENGINE)
    (change,) = read(engine, reads.changes)
    books.score(PlannerMemory(5, {"a": 1}, []), [span, later], {change.id: 7})
    books.score(PlannerMemory(6, {"a": 2}, [{"b": 1}]), [replace(span, start_us=0)], {change.id: 2})
    first, second = read(engine, reads.scored_hours)
    assert (first, second.curve, second.covered_us) == (
        replace(span, start_us=0), (10, 5, 4), 120 * S,
    )  # fmt: skip
    whole = read(engine, reads.scored_whole)
    assert (whole.ran, whole.requests) == (PlanSum(9, 12), 30)
    assert read(engine, reads.planner_memory) == PlannerMemory(6, {"a": 2}, [{"b": 1}])
    assert read(engine, reads.changes)[0].realised_pusd == 9


def test_nothing_is_written_without_the_lease(engine, books):
    take_lease(engine, "p", "h", now_us=0, length_us=1)
    take_lease(engine, "p", "other", now_us=5, length_us=HOUR_US)
    span = ScoredSpan(0, S, 1, PlanSum(), PlanSum(), (1,), 1, 0, 1)
    for write in (
        lambda: books.intend(START, ENGINE), lambda: books.advise([START]),
        lambda: books.add(ENGINE), lambda: books.mark("p.0.k", seen_us=1),
        lambda: books.record_plan(PLAN),
        lambda: books.score(PlannerMemory(1, {}, []), [span], {}),
    ):  # fmt: skip
        with pytest.raises(FleetLeaseLost):
            write()
    for what in (reads.changes, reads.open_instances, reads.plans, reads.scored_hours):
        assert read(engine, what) == []
    assert read(engine, reads.planner_memory) is None
