"""The rows that seals cover, as leaves in their fixed order: the reading half of sealer and proof.

An attempt's leaf includes what comparators would have charged for it, and its legs; the first line
of an hour's posting includes the hour and its teams. Left out is what is no fact of the books: what
a decision saw (it has a retention of its own), holds, grants and totals (`verify` derives them).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from ledger.fleet.hours import hour_of
from ledger.orm.base import LedgerBase, Stored
from ledger.orm.books import (
    AttemptLegRow,
    AttemptRow,
    ComparedCostRow,
    PostingRow,
    PriceVersionRow,
    RefusalRow,
)
from ledger.orm.fleet import GpuHourRow, GpuHourTeamRow
from ledger.seals.seal import SealRanges, leaf
from ledger.writing.rows import LOST

ROWS_AT_ONCE = 5_000


class SealedAttempt(NamedTuple):
    """An attempt as it stands: `leaf` is None while it is open."""

    seq: int
    leaf: bytes | None
    lost: bool


def attempts(
    connection: Connection, since: int, until: int, only: Sequence[int] | None = None
) -> Iterator[SealedAttempt]:
    """Those with `since` < seq <= `until`, or of these `only` some, by seq."""
    inside: list[ColumnElement[bool]] = [AttemptRow.seq > since, AttemptRow.seq <= until]
    if only is not None:
        inside.append(AttemptRow.seq.in_(only))
    compared = _SideLeaves(_by_attempt(connection, inside))
    legs = _SideLeaves(_legs_by_attempt(connection, inside))
    for row in _stream(connection, select(*_ATTEMPT).where(*inside).order_by(AttemptRow.seq)):
        seq, status = row[_SEQ], row[_STATUS]
        mine = [*compared.of(seq), *legs.of(seq)]
        if row[_SETTLED] is None:
            yield SealedAttempt(seq, None, lost=False)
        else:
            values = row if row[_TAGS] is None else _ordered_at(row, _TAGS)
            sealed = leaf("attempts", _ATTEMPT_NAMES, values, *mine)
            yield SealedAttempt(seq, sealed, lost=status == LOST)


def postings(connection: Connection, since: int, until: int) -> Iterator[tuple[int, bytes]]:
    inside = (PostingRow.seq > since, PostingRow.seq <= until)
    for row in _stream(connection, select(*_POSTING).where(*inside).order_by(PostingRow.seq)):
        rest = _hour(connection, row[_ENTRY]) if row[_LINE] == 0 else ()
        yield row[_POSTING_SEQ], leaf("postings", _POSTING_NAMES, row, *rest)


def refusals(connection: Connection, since: int, until: int) -> Iterator[tuple[int, bytes]]:
    inside = (RefusalRow.seq > since, RefusalRow.seq <= until)
    for row in _stream(connection, select(*_REFUSAL).where(*inside).order_by(RefusalRow.seq)):
        yield row[_REFUSAL_NAMES.index("seq")], leaf("refusals", _REFUSAL_NAMES, row)


def prices(connection: Connection, since: int, until: int) -> Iterator[tuple[int, bytes]]:
    table = PriceVersionRow
    inside = (table.version > since, table.version <= until)
    for row in _stream(connection, select(*_PRICE).where(*inside).order_by(table.version)):
        values = _ordered_at(row, _PRICE_TERMS)
        yield row[_PRICE_VERSION], leaf("price_versions", _PRICE_NAMES, values)


def before(ranges: SealRanges, most: SealRanges, at_once: int) -> SealRanges:
    """The next step from `ranges` towards `most`, of at most so many rows in each table."""
    return SealRanges(
        min(most.attempts, ranges.attempts + at_once),
        min(most.postings, ranges.postings + 2 * at_once),
        min(most.refusals, ranges.refusals + at_once),
        min(most.prices, ranges.prices + at_once),
    )


def _columns(table: type[LedgerBase], *without: str) -> tuple[Stored[Any], ...]:
    names = sorted(set(table.__table__.columns.keys()) - set(without))
    return tuple(getattr(table, name) for name in names)


def _by_attempt(
    connection: Connection, inside: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[int, list[bytes]]]:
    """What comparators would have charged: the leaves of each attempt that has any, by its seq."""
    query = (
        select(AttemptRow.seq, *_COMPARED)
        .join(ComparedCostRow, ComparedCostRow.attempt_id == AttemptRow.attempt_id)
        .where(*inside)
        .order_by(AttemptRow.seq, ComparedCostRow.position, ComparedCostRow.comparator)
    )
    for seq, rows in groupby(_stream(connection, query), key=lambda row: row[0]):
        yield seq, [leaf("compared", _COMPARED_NAMES, row[1:]) for row in rows]


def _legs_by_attempt(
    connection: Connection, inside: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[int, list[bytes]]]:
    """Parts of attempts that took two engines: their leaves, by the attempt's seq."""
    query = (
        select(AttemptRow.seq, *_LEG)
        .join(AttemptLegRow, AttemptLegRow.attempt_id == AttemptRow.attempt_id)
        .where(*inside)
        .order_by(AttemptRow.seq, AttemptLegRow.position)
    )
    for seq, rows in groupby(_stream(connection, query), key=lambda row: row[0]):
        yield seq, [leaf("attempt_legs", _LEG_NAMES, row[1:]) for row in rows]


class _SideLeaves:
    """Leaves that belong to attempts, read beside them in the order of their seq."""

    def __init__(self, leaves: Iterator[tuple[int, list[bytes]]]) -> None:
        self._leaves = leaves
        self._next = next(leaves, None)

    def of(self, seq: int) -> list[bytes]:
        while self._next is not None and self._next[0] < seq:
            self._next = next(self._leaves, None)
        return self._next[1] if self._next is not None and self._next[0] == seq else []


def _hour(connection: Connection, entry: str) -> list[bytes]:
    """An hour's row and its teams', by the entry that posts them."""
    hour = hour_of(entry)
    if hour is None:
        return []
    here = dict(zip(("pool", "hour_us", "correction"), hour, strict=True))
    return [
        leaf(table, names, row)
        for table, names, query in _HOUR_QUERIES
        for row in connection.execute(query, here)
    ]


def _hour_query(
    table: type[GpuHourRow | GpuHourTeamRow], *order: Stored[Any]
) -> tuple[str, list[str], Select[Any]]:
    columns = _columns(table)
    key = (table.pool, table.hour_us, table.correction)
    here = (column == bindparam(column.key) for column in key)
    names = [column.key for column in columns]
    return table.__tablename__, names, select(*columns).where(*here).order_by(*order)


def _stream(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    with connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
        yield from rows


def _ordered_at(row: Sequence[Any], place: int) -> list[Any]:
    """The row with the JSON document at one place in order."""
    values = list(row)
    values[place] = _order_members(values[place])
    return values


def _order_members(value: Any) -> Any:
    """JSON documents come back with their members in any order."""
    if isinstance(value, dict):
        return {key: _order_members(value[key]) for key in sorted(value)}
    return [_order_members(item) for item in value] if isinstance(value, list) else value


_ATTEMPT = _columns(AttemptRow)
_ATTEMPT_NAMES = [column.key for column in _ATTEMPT]
_SEQ, _STATUS, _SETTLED, _TAGS = map(_ATTEMPT_NAMES.index, ("seq", "status", "settled_us", "tags"))
_COMPARED = _columns(ComparedCostRow, "cached_tokens")  # as with `_ROOM`
_COMPARED_NAMES = [column.key for column in _COMPARED]
_LEG = _columns(AttemptLegRow)
_LEG_NAMES = [column.key for column in _LEG]
_POSTING = _columns(PostingRow)
_POSTING_NAMES = [column.key for column in _POSTING]
_POSTING_SEQ, _ENTRY, _LINE = map(_POSTING_NAMES.index, ("seq", "entry_id", "line"))
# Hosts of the version before seal beside newer ones, and do not know what was added later.
_ROOM = ("bound_pusd", "room_pusd", "limit_pusd", "since_us", "until_us")
_REFUSAL = _columns(RefusalRow, "decision", *_ROOM)
_REFUSAL_NAMES = [column.key for column in _REFUSAL]
_PRICE = _columns(PriceVersionRow)
_PRICE_NAMES = [column.key for column in _PRICE]
_PRICE_VERSION, _PRICE_TERMS = map(_PRICE_NAMES.index, ("version", "price"))
# Built once: SQLAlchemy spends more on a new statement than SQLite on its answer.
_HOUR_QUERIES = (_hour_query(GpuHourRow), _hour_query(GpuHourTeamRow, GpuHourTeamRow.team_id))
