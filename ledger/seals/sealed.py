"""Reads of the rows that seals cover, as leaves in a fixed order, for sealer and proof.

An attempt's leaf includes the costs of its comparators; the first line of an hour's posting
includes the hour and its teams. Left out is newer data that the annex proves, and what is not a
fact of the ledger: the inputs of decisions (they have their own retention), and holds, grants and
totals, which `verify` recomputes.
"""

from bisect import bisect
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Select, bindparam, select

from ledger.fleet.hours import hour_of
from ledger.orm.base import LedgerBase, Stored
from ledger.orm.books import (
    LOST,
    AttemptLegRow,
    AttemptRow,
    CacheHitRow,
    ComparedCostRow,
    PostingRow,
    PriceVersionRow,
    RefusalRow,
)
from ledger.orm.fleet import GpuHourRow, GpuHourTeamRow
from ledger.seals.seal import SealRanges, leaf, said_leaf

ROWS_AT_ONCE = 5_000


class SealedAttempt(NamedTuple):
    """An attempt as stored; `leaf` is `None` while the attempt is open.

    `wide` is the leaf of hosts of one earlier version, which included content and legs; for most
    attempts it equals `leaf`. `beside` is the annex leaf, `None` if empty or not requested.
    """

    seq: int
    leaf: bytes | None
    lost: bool
    wide: bytes | None = None
    beside: bytes | None = None


class SealedRow(NamedTuple):
    """A row that never changes; `wide` and `beside` as in `SealedAttempt`."""

    seq: int
    leaf: bytes
    wide: bytes
    beside: bytes | None = None


def attempts(
    connection: Connection,
    since: int,
    until: int,
    only: Sequence[int] | None = None,
    *,
    beside: bool = False,
) -> Iterator[SealedAttempt]:
    """Yield attempts with `since` < seq <= `until`, or only those in `only`, by seq."""
    inside: list[ColumnElement[bool]] = [AttemptRow.seq > since, AttemptRow.seq <= until]
    if only is not None:
        inside.append(AttemptRow.seq.in_(only))
    compared = _SideRows(_by_attempt(connection, inside))
    legs = _SideRows(_legs_by_attempt(connection, inside))
    query = select(*_ATTEMPT, AttemptRow.content).where(*inside).order_by(AttemptRow.seq)
    for row in _stream(connection, query):
        seq, status = row[_SEQ], row[_STATUS]
        theirs, parts = compared.of(seq), legs.of(seq)
        if row[_SETTLED] is None:
            yield SealedAttempt(seq, None, lost=False)
            continue
        values, content = row[:-1], row[-1]
        tags = values[_TAGS]
        if tags is not None and len(tags) > 1:  # fewer have no order
            values = (*values[:_TAGS], order_members(tags), *values[_TAGS + 1 :])
        mine = [leaf("compared", _COMPARED_NAMES, cost[:-1]) for cost in theirs]
        sealed = leaf("attempts", _ATTEMPT_NAMES, values, *mine)
        wide = sealed
        if content is not None or parts:
            mine += [leaf("attempt_legs", _LEG_NAMES, part) for part in parts]
            wide = leaf("attempts", *_with_content(_ATTEMPT_NAMES, values, content), *mine)
        yield SealedAttempt(
            seq, sealed, status == LOST, wide,
            _beside_attempt(values[_ID], content, theirs, parts) if beside else None,
        )  # fmt: skip


def _beside_attempt(
    name: str, content: str | None, compared: Sequence[Any], legs: Sequence[Any]
) -> bytes | None:
    """Return the annex leaf of content, legs and comparators' cached tokens, `None` if empty."""
    cached = [(row[_COMPARATOR], row[-1]) for row in compared if row[-1] is not None]
    if content is None and not cached and not legs:
        return None
    return said_leaf("attempts", name, content, cached, [tuple(leg) for leg in legs])


def postings(connection: Connection, since: int, until: int) -> Iterator[SealedRow]:
    inside = (PostingRow.seq > since, PostingRow.seq <= until)
    for row in _stream(connection, select(*_POSTING).where(*inside).order_by(PostingRow.seq)):
        rest = _hour(connection, row[_ENTRY]) if row[_LINE] == 0 else ()
        sealed = leaf("postings", _POSTING_NAMES, row, *rest)
        yield SealedRow(row[_POSTING_SEQ], sealed, sealed)


def refusals(connection: Connection, since: int, until: int) -> Iterator[SealedRow]:
    inside = (RefusalRow.seq > since, RefusalRow.seq <= until)
    query = select(*_REFUSAL, *_ROOM, RefusalRow.content).where(*inside).order_by(RefusalRow.seq)
    for row in _stream(connection, query):
        values, room, content = row[: len(_REFUSAL)], row[len(_REFUSAL) : -1], row[-1]
        sealed = wide = leaf("refusals", _REFUSAL_NAMES, values)
        if content is not None:
            wide = leaf("refusals", *_with_content(_REFUSAL_NAMES, values, content))
        seq, beside = values[_REFUSAL_SEQ], None
        if content is not None or any(item is not None for item in room):
            beside = said_leaf("refusals", values[_REFUSAL_REQUEST], content, [*room])
        yield SealedRow(seq, sealed, wide, beside)


def prices(connection: Connection, since: int, until: int) -> Iterator[SealedRow]:
    table = PriceVersionRow
    inside = (table.version > since, table.version <= until)
    for row in _stream(connection, select(*_PRICE).where(*inside).order_by(table.version)):
        values = list(row)
        values[_PRICE_TERMS] = order_members(values[_PRICE_TERMS])
        sealed = leaf("price_versions", _PRICE_NAMES, values)
        yield SealedRow(row[_PRICE_VERSION], sealed, sealed)


def cache_hits(connection: Connection, since: int, until: int) -> Iterator[SealedRow]:
    inside = (CacheHitRow.seq > since, CacheHitRow.seq <= until)
    for row in _stream(connection, select(*_HIT).where(*inside).order_by(CacheHitRow.seq)):
        values = list(row)
        values[_HIT_TAGS] = order_members(values[_HIT_TAGS])
        sealed = leaf("cache_hits", _HIT_NAMES, values)
        yield SealedRow(row[_HIT_SEQ], sealed, sealed)


def before(ranges: SealRanges, most: SealRanges, at_once: int) -> SealRanges:
    """Return the next step from `ranges` towards `most`, with up to `at_once` rows by table.

    Postings take twice as many.
    """
    return SealRanges(
        min(most.attempts, ranges.attempts + at_once),
        min(most.postings, ranges.postings + 2 * at_once),
        min(most.refusals, ranges.refusals + at_once),
        min(most.prices, ranges.prices + at_once),
    )


def _columns(table: type[LedgerBase], *without: str) -> tuple[Stored[Any], ...]:
    names = sorted(set(table.__table__.columns.keys()) - set(without))
    return tuple(getattr(table, name) for name in names)


def _with_content(
    names: Sequence[str], values: Sequence[Any], content: str | None
) -> tuple[list[str], list[Any]]:
    """Return names and values with the content, as hosts of one version sealed them."""
    place = bisect(names, "content")
    return (
        [*names[:place], "content", *names[place:]],
        [*values[:place], content, *values[place:]],
    )


def _by_attempt(
    connection: Connection, inside: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the comparators' costs of each attempt that has any, by its seq."""
    query = (
        select(AttemptRow.seq, *_COMPARED)
        .join(ComparedCostRow, ComparedCostRow.attempt_id == AttemptRow.attempt_id)
        .where(*inside)
        .order_by(AttemptRow.seq, ComparedCostRow.position, ComparedCostRow.comparator)
    )
    for seq, rows in groupby(_stream(connection, query), key=lambda row: row[0]):
        yield seq, [row[1:] for row in rows]


def _legs_by_attempt(
    connection: Connection, inside: Sequence[ColumnElement[bool]]
) -> Iterator[tuple[int, list[Any]]]:
    """Yield the parts of attempts that two engines served, by the attempt's seq."""
    query = (
        select(AttemptRow.seq, *_LEG)
        .join(AttemptLegRow, AttemptLegRow.attempt_id == AttemptRow.attempt_id)
        .where(*inside)
        .order_by(AttemptRow.seq, AttemptLegRow.position)
    )
    for seq, rows in groupby(_stream(connection, query), key=lambda row: row[0]):
        yield seq, [row[1:] for row in rows]


class _SideRows:
    """Rows that belong to attempts, read in step with them in the order of their seq."""

    def __init__(self, rows: Iterator[tuple[int, list[Any]]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, seq: int) -> list[Any]:
        while self._next is not None and self._next[0] < seq:
            self._next = next(self._rows, None)
        return self._next[1] if self._next is not None and self._next[0] == seq else []


def _hour(connection: Connection, entry: str) -> list[bytes]:
    """Return the leaves of an hour's row and its teams' rows, from the entry that posts them."""
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
        for some in rows.partitions():  # single rows go through more of SQLAlchemy's Python
            yield from some


def order_members(value: Any) -> Any:
    """Return a JSON value with sorted object members, which databases return in any order."""
    if isinstance(value, dict):
        return {key: order_members(value[key]) for key in sorted(value)}
    return [order_members(item) for item in value] if isinstance(value, list) else value


# During an update, hosts of an earlier version seal too and do not know newer columns: those are
# left out of leaves, and the annex proves them.
_ATTEMPT = _columns(AttemptRow, "content")
_ATTEMPT_NAMES = [column.key for column in _ATTEMPT]
_SEQ, _STATUS, _SETTLED, _TAGS, _ID = map(
    _ATTEMPT_NAMES.index, ("seq", "status", "settled_us", "tags", "attempt_id")
)
_COMPARED = (*_columns(ComparedCostRow, "cached_tokens"), ComparedCostRow.cached_tokens)
_COMPARED_NAMES = [column.key for column in _COMPARED[:-1]]
_COMPARATOR = _COMPARED_NAMES.index("comparator")
_LEG = _columns(AttemptLegRow)
_LEG_NAMES = [column.key for column in _LEG]
_POSTING = _columns(PostingRow)
_POSTING_NAMES = [column.key for column in _POSTING]
_POSTING_SEQ, _ENTRY, _LINE = map(_POSTING_NAMES.index, ("seq", "entry_id", "line"))
_ROOM = (
    RefusalRow.bound_pusd, RefusalRow.room_pusd, RefusalRow.limit_pusd, RefusalRow.since_us,
    RefusalRow.until_us,
)  # fmt: skip
_REFUSAL = _columns(RefusalRow, "decision", "content", *(column.key for column in _ROOM))
_REFUSAL_NAMES = [column.key for column in _REFUSAL]
_REFUSAL_SEQ, _REFUSAL_REQUEST = map(_REFUSAL_NAMES.index, ("seq", "request_id"))
_HIT = _columns(CacheHitRow)
_HIT_NAMES = [column.key for column in _HIT]
_HIT_SEQ, _HIT_TAGS = map(_HIT_NAMES.index, ("seq", "tags"))
_PRICE = _columns(PriceVersionRow)
_PRICE_NAMES = [column.key for column in _PRICE]
_PRICE_VERSION, _PRICE_TERMS = map(_PRICE_NAMES.index, ("version", "price"))
# Built once: SQLAlchemy takes longer to build the statement than SQLite to run it.
_HOUR_QUERIES = (_hour_query(GpuHourRow), _hour_query(GpuHourTeamRow, GpuHourTeamRow.team_id))
