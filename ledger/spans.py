"""The scope of every read: a half-open time span and optionally one team.

Times are microseconds since the Unix epoch. Buckets are aligned to the epoch, so a bucket of a day
is a UTC day. An attempt belongs to the time at which it was opened.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Executable,
    Select,
    cast,
    func,
    select,
)

from ledger.journals.token_kinds import PROMPT_KINDS
from ledger.orm.tables import AttemptRow, GpuHourRow, PostingRow, token_column, token_sum

MINUTE_US = 60 * 10**6
HOUR_US = 60 * MINUTE_US
DAY_US = 24 * HOUR_US

# All input and all output (which includes reasoning): the basis "input + output".
INPUT_TOKENS = token_sum(kind for kind in PROMPT_KINDS if not kind.is_sound)
OUTPUT_TOKENS: ColumnElement[int] = func.coalesce(token_column("output"), 0)


@dataclass(frozen=True, slots=True)
class Scope:
    """A span `start_us <= t < end_us` of one team, or of all teams if `team` is `None`."""

    start_us: int
    end_us: int
    team: str | None = None

    @classmethod
    def last(cls, span_us: int, end_us: int, team: str | None = None) -> "Scope":
        """Return the span up to `end_us`; if longer than an hour, it starts at a full hour.

        Bills are hourly: a start within an hour would count its traffic and omit its bill. A span
        of an hour or less is cut exactly.
        """
        start_us = end_us - span_us
        return cls(start_us - start_us % HOUR_US if span_us > HOUR_US else start_us, end_us, team)

    @property
    def hours(self) -> float:
        return (self.end_us - self.start_us) / HOUR_US

    def narrow(self, statement: Select[*tuple[Any, ...]]) -> Select[*tuple[Any, ...]]:
        """Return the statement over attempts, limited to this scope."""
        statement = statement.where(
            AttemptRow.opened_us >= self.start_us, AttemptRow.opened_us < self.end_us
        )
        return statement if self.team is None else statement.where(AttemptRow.team_id == self.team)


EVER = Scope(0, 2**62)


def _utc_day(at_us: int) -> tuple[int, int]:
    return at_us - at_us % DAY_US, at_us - at_us % DAY_US + DAY_US


def held_scope(
    connection: Connection, scope: Scope, day: Callable[[int], tuple[int, int]] = _utc_day
) -> Scope:
    """Return the part of the scope for which the ledger holds data, in whole days."""
    times = (AttemptRow.opened_us, GpuHourRow.hour_us, PostingRow.at_us)
    ends = [connection.execute(select(func.min(time), func.max(time))).one() for time in times]
    known = [(first, last) for first, last in ends if first is not None]
    if not known:
        return Scope(scope.start_us, min(scope.end_us, scope.start_us + DAY_US), scope.team)
    first, last = min(item for item, _ in known), max(item for _, item in known)
    start_us = max(scope.start_us, day(first)[0])
    end_us = min(scope.end_us, day(last)[1])
    return Scope(start_us, max(start_us, end_us), scope.team)


def total(column: Any) -> ColumnElement[int]:
    """Return the sum of a small integer column (tokens, counts), 0 without rows.

    Use `exact_sum` for money.
    """
    return cast(func.coalesce(func.sum(column), 0), BigInteger)


def rows(connection: Connection, statement: Executable) -> list[tuple[Any, ...]]:
    """Return all rows at once: fetching single rows takes the driver several times as long."""
    return [tuple(row) for row in connection.execute(statement).all()]
