"""The ledger as events: each settled attempt, and each refused request.

Events come in the order of the seals, which cover every row once and only final rows. A lost
attempt is an event whose `id` ends in `.lost`; if evidence is found, a second event has the usual
`id`. Retired attempts have no events.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, exists, or_, select

from ledger.exports.attempts import COLUMNS, NAMES
from ledger.exports.table import ColumnKind, moment
from ledger.money import usd_exact
from ledger.orm.books import LOST, AttemptRow, RefusalRow
from ledger.orm.seals import SealMarkRow, SealRow
from ledger.queries.claims import claimed_column

_REFUSED = ("request_id", "refused_us", "key_id", "team_id", "org_id", "model", "policy", "reason",
            "http_status", "scope")  # fmt: skip


class SealedSpan(NamedTuple):
    """One seal: its number, and the `seq` ranges of its attempts and refusals."""

    number: int
    attempts: tuple[int, int]
    refusals: tuple[int, int]


def newest_seal(connection: Connection) -> int:
    """Return the number of the newest seal, 0 without seals."""
    query = select(SealRow.number).order_by(SealRow.number.desc()).limit(1)
    return connection.execute(query).scalar() or 0


def seals_behind(connection: Connection, number: int, limit: int) -> Iterator[SealedSpan]:
    """Yield the seals after `number` in order, at most `limit`."""
    query = (
        select(SealRow.number, SealRow.attempts_to, SealRow.refusals_to)
        .where(SealRow.number >= number)
        .order_by(SealRow.number)
        .limit(limit + 1)
    )
    attempts = refusals = 0
    for row in connection.execute(query).all():
        if row.number > number:
            yield SealedSpan(row.number, (attempts, row.attempts_to), (refusals, row.refusals_to))
        attempts, refusals = row.attempts_to, row.refusals_to


def events_of(connection: Connection, span: SealedSpan) -> list[dict[str, Any]]:
    """Return a seal's events as JSON: attempts by `seq`, then refusals by `seq`.

    Amounts are exact decimal text in USD, `null` if unknown.
    """
    found = [_settled(row) for row in connection.execute(_attempts(span)).all()]
    return found + [_refused(row) for row in connection.execute(_refusals(span)).all()]


def _attempts(span: SealedSpan) -> Select[Any]:
    since, until = span.attempts
    mark = select(SealMarkRow.attempt_seq).where(SealMarkRow.sealed_in == span.number)
    was_open = exists().where(
        SealMarkRow.number == span.number,
        SealMarkRow.attempt_seq == AttemptRow.seq,
        SealMarkRow.digest.is_(None),
    )
    here = AttemptRow.seq.between(since + 1, until) & ~was_open
    columns = [getattr(AttemptRow, name) for name in NAMES]
    return (
        select(*columns, AttemptRow.error, AttemptRow.tags, claimed_column().label("claimed_pusd"))
        .where(AttemptRow.settled_us.is_not(None), or_(here, AttemptRow.seq.in_(mark)))
        .order_by(AttemptRow.seq)
    )


def _refusals(span: SealedSpan) -> Select[Any]:
    since, until = span.refusals
    columns = [getattr(RefusalRow, name) for name in _REFUSED]
    inside = RefusalRow.seq.between(since + 1, until)
    return select(*columns).where(inside).order_by(RefusalRow.seq)


def _settled(row: Any) -> dict[str, Any]:
    values = dict(zip((column.name for column in COLUMNS), row, strict=False))
    data = {column.name: _plain(column.kind, values[column.name]) for column in COLUMNS}
    data |= {
        "error": row.error,
        "tags": row.tags or {},
        "claimed_usd": _plain(ColumnKind.USD, row.claimed_pusd),
    }
    # Receivers drop a known `id`, so the later event with evidence needs another one.
    name = f"{row.attempt_id}.lost" if row.status == LOST else row.attempt_id
    return {"type": "attempt.settled", "id": name, "data": data}


def _refused(row: Any) -> dict[str, Any]:
    data = dict(zip(_REFUSED, row, strict=True))
    data["refused_at"] = moment(data.pop("refused_us"))
    return {"type": "request.refused", "id": row.request_id, "data": data}


def _plain(kind: ColumnKind, value: Any) -> Any:
    if value is None:
        return None
    if kind is ColumnKind.USD:
        return usd_exact(value)
    return moment(value) if kind is ColumnKind.INSTANT else value
