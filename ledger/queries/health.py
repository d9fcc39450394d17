"""Reads about the reliability of figures: lag, gaps, refusals.

`freshness` returns until when the journals are applied and what is missing from the totals.
`refusals` returns requests that were never attempted.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from ledger.orm.tables import (
    AttemptRow,
    GpuHourRow,
    JournalPositionRow,
    QuarantinedRecordRow,
    RefusalRow,
    RollupHourRow,
)
from ledger.seals.compactions import compacted_refusals
from ledger.seals.retirements import retired_until_us
from ledger.spans import Scope, rows


@dataclass(frozen=True, slots=True)
class Freshness:
    """Last journal read, opening of the first attempt, and number of quarantined records."""

    applied_us: int | None
    first_us: int | None
    quarantined: int


@dataclass(frozen=True, slots=True)
class RefusalCount:
    reason: str
    model: str
    team: str
    scope: str | None  # the budget that refused
    http_status: int
    requests: int


def freshness(connection: Connection) -> Freshness:
    applied = connection.execute(select(func.max(JournalPositionRow.applied_us))).scalar()
    first = first_us(connection)
    quarantined = connection.execute(
        select(func.count()).select_from(QuarantinedRecordRow)
    ).scalar_one()
    return Freshness(applied, first, quarantined)


def first_us(connection: Connection) -> int | None:
    """Return when the oldest attempt was opened; for retired attempts, the start of its hour."""
    first = connection.execute(select(func.min(AttemptRow.opened_us))).scalar()
    if not retired_until_us(connection):
        return first
    summed = connection.execute(select(func.min(RollupHourRow.start_us))).scalar()
    return min(filter(None, (first, summed)), default=None)


def first_gpu_hour_us(connection: Connection) -> int | None:
    """Return the start of the oldest closed GPU hour, None without any."""
    return connection.execute(select(func.min(GpuHourRow.hour_us))).scalar()


def refusals(connection: Connection, scope: Scope) -> list[RefusalCount]:
    """Return requests refused before any attempt, most frequent first, old ones by the hour."""
    columns = (
        RefusalRow.reason,
        RefusalRow.model,
        RefusalRow.team_id,
        RefusalRow.scope,
        RefusalRow.http_status,
    )
    requests = func.count().label("requests")
    statement = (
        select(*columns, requests)
        .where(RefusalRow.refused_us >= scope.start_us, RefusalRow.refused_us < scope.end_us)
        .group_by(*columns)
    )
    if scope.team is not None:
        statement = statement.where(RefusalRow.team_id == scope.team)
    counted: Counter[tuple[Any, ...]] = Counter()
    for row in rows(connection, statement):
        counted[tuple(row[:-1])] += row[-1]
    for each_refusals in compacted_refusals(connection, scope):
        alike = (
            each_refusals.reason,
            each_refusals.model,
            each_refusals.team_id,
            each_refusals.scope,
            each_refusals.http_status,
        )
        counted[alike] += each_refusals.requests
    found = [RefusalCount(*pair) for pair in ((*alike, count) for alike, count in counted.items())]
    return sorted(found, key=lambda finding: (-finding.requests, finding.reason, repr(finding)))
