"""Writes of a pool that sizes itself: under its lease, and before each change is made.

`intend` writes an instance before it is requested. So if the process dies at any point, every
instance that it may have started has a row with a rent.
"""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, and_, insert, select, update

from ledger.economics.scaling_score import ScoredSpan
from ledger.fleet.fleet_lease import check_lease
from ledger.fleet.fleet_reads import score_of, span_of_row
from ledger.fleet.fleet_records import FleetChange, FleetInstance, FleetPlanRecord, PlannerMemory
from ledger.orm.scaling import (
    FleetChangeRow,
    FleetHourRow,
    FleetInstanceRow,
    FleetPlanRow,
    FleetPoolRow,
)
from ledger.upserts import insert_into

DETAIL = 400  # maximum characters of an actuator's message
MARKS = frozenset({"name", "seen_us", "ready_us", "stop_us", "told_us", "gone_us"})


class ScalingBooks:
    """The writes of one pool by the holder of its lease.

    Every method raises `FleetLeaseLost` if the lease is lost.
    """

    def __init__(self, engine: Engine, pool: str, fence: int, *, now_us: int) -> None:
        self._engine, self._pool, self._fence, self._now_us = engine, pool, fence, now_us

    def intend(self, change: FleetChange, instance: FleetInstance | None = None) -> None:
        """Write a change before it is made, with the instance that it starts.

        A stop marks the instance in the same transaction.
        """
        with self._engine.begin() as connection:
            self._check(connection)
            if instance is not None:
                connection.execute(insert(FleetInstanceRow).values(_instance_row(instance)))
            elif change.verb == "stop":
                self._mark(connection, change.token, {"stop_us": self._now_us})
            connection.execute(insert(FleetChangeRow).values(self._change_row(change)))

    def advise(self, changes: Iterable[FleetChange]) -> None:
        """Write changes that are only advice."""
        with self._engine.begin() as connection:
            self._check(connection)
            for change in changes:
                connection.execute(insert(FleetChangeRow).values(self._change_row(change)))

    def add(self, instance: FleetInstance) -> None:
        """Write an instance that appeared without a request.

        If its token has a row, the instance gets a new row, so that the earlier rent is kept.
        """
        row = FleetInstanceRow
        with self._engine.begin() as connection:
            self._check(connection)
            lived = select(row.token).where(row.token == instance.token)
            if connection.execute(lived).first() is not None:
                instance = replace(instance, token=f"{instance.token}~{instance.asked_us}")
            connection.execute(insert(row).values(_instance_row(instance)))

    def mark(
        self, token: str, outcome: str | None = None, detail: str | None = None, **marks: Any
    ) -> None:
        """Set times of an instance, and complete its open changes if there is an outcome.

        A stop of an instance that is gone is done, even if its start failed.
        """
        with self._engine.begin() as connection:
            self._check(connection)
            self._mark(connection, token, marks)
            if marks.get("gone_us") is not None:
                said = detail if outcome == "done" else None
                self._finish(connection, token, "done", said, FleetChangeRow.verb == "stop")
            if outcome is not None:
                self._finish(connection, token, outcome, detail)

    def _finish(
        self,
        connection: Connection,
        token: str,
        outcome: str,
        detail: str | None,
        *which: ColumnElement[bool],
    ) -> None:
        row = FleetChangeRow
        mine = and_(row.token == token, row.outcome.is_(None), row.mode == "act", *which)
        values = {
            "outcome": outcome,
            "done_us": self._now_us,
            "detail": None if detail is None else detail[:DETAIL],
        }
        connection.execute(update(row).where(mine, row.pool == self._pool).values(values))

    def record_plan(self, plan: FleetPlanRecord) -> None:
        """Store a plan."""
        with self._engine.begin() as connection:
            self._check(connection)
            connection.execute(insert(FleetPlanRow).values(asdict(plan)))

    def score(
        self, memory: PlannerMemory, spans: Iterable[ScoredSpan], realised: dict[int, int]
    ) -> None:
        """Add scored windows to their hours and store the planner's state, in one transaction.

        `realised` is the amount in pico-USD that changes saved, by change number.
        """
        with self._engine.begin() as connection:
            self._check(connection)
            for span in spans:
                self._add_span(connection, span)
            for number, pusd in sorted(realised.items()):
                row = FleetChangeRow
                grown = update(row).where(row.id == number)
                connection.execute(grown.values(realised_pusd=row.realised_pusd + pusd))
            values = {**asdict(memory), "pool": self._pool}
            upsert = insert_into(connection, FleetPoolRow).values(values)
            connection.execute(
                upsert.on_conflict_do_update(index_elements=["pool"], set_=asdict(memory))
            )

    def _add_span(self, connection: Connection, span: ScoredSpan) -> None:
        row, hour_us = FleetHourRow, span.start_us // 3_600_000_000 * 3_600_000_000
        here = (row.pool == self._pool, row.hour_us == hour_us)
        before = connection.execute(select(*row.__table__.columns).where(*here)).mappings().first()
        whole = span if before is None else span_of_row(dict(before)) + span
        values = score_of(replace(whole, start_us=hour_us))
        if before is None:
            connection.execute(insert(row).values(pool=self._pool, hour_us=hour_us, **values))
        else:
            connection.execute(update(row).where(*here).values(values))

    def _check(self, connection: Connection) -> None:
        check_lease(connection, self._pool, self._fence, now_us=self._now_us)

    def _mark(self, connection: Connection, token: str | None, marks: dict[str, Any]) -> None:
        unknown = set(marks) - MARKS
        if unknown:
            raise ValueError(f"instances have no {', '.join(sorted(unknown))}")
        row = FleetInstanceRow
        mine = (row.pool == self._pool, row.token == token)
        connection.execute(update(row).where(*mine).values(marks))

    def _change_row(self, change: FleetChange) -> dict[str, Any]:
        values = asdict(replace(change, fence=self._fence))
        del values["id"]
        return values


def _instance_row(instance: FleetInstance) -> dict[str, Any]:
    values = asdict(instance)
    rent = values.pop("rent")
    return {**values, **rent}
