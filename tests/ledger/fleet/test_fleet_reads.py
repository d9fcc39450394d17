"""Reads of a fleet: the newest first, of one pool, and as rows hold them."""

from ledger.economics.scaling_score import PlanSum, ScoredSpan
from ledger.fleet import fleet_reads as reads
from ledger.fleet.fleet_lease import take_lease
from ledger.fleet.fleet_records import FleetChange, FleetPlanRecord, PlannerMemory
from ledger.fleet.scaling_books import ScalingBooks


def test_plans_and_changes_come_newest_first_and_of_their_pool(engine):
    for pool in ("p", "q"):
        fence = take_lease(engine, pool, "h", now_us=0, length_us=1000)
        books = ScalingBooks(engine, pool, fence, now_us=1)
        for at_us in (1, 2, 3):
            plan = FleetPlanRecord(pool, at_us, "advise", at_us, 0, "hold", "w", {"at": at_us})
            books.record_plan(plan)
            until_us = at_us + 10
            books.advise(
                [FleetChange(pool, at_us, "advise", "start", None, 1, "r", "w", None, until_us)]
            )
        books.score(PlannerMemory(1, {}, []), [], {})
    with engine.connect() as connection:
        assert reads.scaled_pools(connection) == ["p", "q"]
        assert [item.at_us for item in reads.plans(connection, "p", since_us=2)] == [3, 2]
        assert reads.last_plan(connection, "q").document == {"at": 3}
        assert reads.last_plan(connection, "r") is None
        assert [item.at_us for item in reads.changes(connection, "p", limit=2)] == [3, 2]
        assert [item.at_us for item in reads.growing_changes(connection, "p", 12)] == [3]
        assert reads.instances_named(connection, []) == []
        assert reads.scored_whole(connection, "p") is None


def test_a_span_is_as_its_row():
    span = ScoredSpan(0, 7, 1, PlanSum(2, 3), PlanSum(4, 5), (6, 5), 8, 1, 2)
    assert reads.span_of_row({"hour_us": 0, **reads.score_of(span)}) == span
