"""Coordination of report delivery between hosts: which host sends the report of a period.

Any host may try. A table key and an expiring lease choose the sender. If a sender dies, another
host takes over, so a report is delivered at least once; its id identifies repetitions. Only the
newest past period is sent: hosts that were down for a month send one report.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from sqlalchemy import Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from ledger.database import reading, write_alone
from ledger.orm.reports import ReportTurnRow
from ledger.reporting_zone import ReportingZone
from ledger.spans import Scope

Cadence = Literal["day", "week", "month"]
LEASE_US = 120 * 10**6  # a sender's time, and the first wait after a failure
WAIT_LIMIT_US = 3600 * 10**6


@dataclass(frozen=True, slots=True)
class ReportTurn:
    """Lease to send one period's report to one place; `tries` includes this try."""

    name: str
    place: str
    start_us: int
    tries: int = 1

    @property
    def id(self) -> str:
        return f"{self.name}:{self.place}:{self.start_us // 10**6}"


def last_period(zone: ReportingZone, every: Cadence, now_us: int) -> Scope:
    """Return the newest past day, week (from Monday) or month of the zone."""
    today = zone.date_of(now_us)
    if every == "month":
        end = today.replace(day=1)
        start = (end - timedelta(days=1)).replace(day=1)
    else:
        days = 1 if every == "day" else 7
        end = today - timedelta(days=0 if every == "day" else today.weekday())
        start = end - timedelta(days=days)
    return Scope(zone.midnight_us(start), zone.midnight_us(end))


def claim_turn(
    engine: Engine, name: str, place: str, start_us: int, *, at_us: int
) -> ReportTurn | None:
    """Return the lease, or `None` if the report was sent or another host is sending it."""
    row = {"name": name, "place": place, "start_us": start_us}
    fresh = {**row, "due_us": at_us + LEASE_US, "tries": 1, "told_us": None}
    table = ReportTurnRow
    key = (table.name == name, table.place == place, table.start_us == start_us)
    with reading(engine) as connection:
        found = connection.execute(select(table.tries, table.due_us, table.told_us).where(*key))
        known = found.one_or_none()
    if known is None:
        try:
            with engine.begin() as connection:
                connection.execute(insert(table), [fresh])
        except IntegrityError:
            return None  # another host was first
        return ReportTurn(name, place, start_us)
    tries, due_us, told_us = known
    if told_us is not None or due_us > at_us:
        return None
    wait_us = min(WAIT_LIMIT_US, LEASE_US << min(tries, 20))
    renewed = update(table).where(*key, table.tries == tries, table.told_us.is_(None))
    taken = write_alone(engine, renewed.values(tries=tries + 1, due_us=at_us + wait_us))
    return ReportTurn(name, place, start_us, tries + 1) if taken else None


def mark_sent(engine: Engine, turn: ReportTurn, *, at_us: int) -> None:
    """Mark the report as delivered, so that it is not sent again."""
    table = ReportTurnRow
    key = (table.name == turn.name, table.place == turn.place, table.start_us == turn.start_us)
    write_alone(engine, update(table).where(*key).values(told_us=at_us))
