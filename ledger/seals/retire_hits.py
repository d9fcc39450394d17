"""Retirement of cache hits by annex entry, which keeps their sums by hour and team.

Hits of an entry are deleted once all are older than the limit and proved to be what was entered.
Their sums are lines that an annex entry binds, so pages show the same totals. Call
`HitRetirer.step` until its result has `waits_for`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, Row, delete, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.database import reading
from ledger.orm.books import CacheHitRow
from ledger.orm.condensings import CondensedHitRow
from ledger.orm.seals import SealAnnexRow
from ledger.seals import sealed
from ledger.seals.annex import HITS, HITS_GONE, AnnexText, add_entries, hit_range, last_subject
from ledger.seals.link_proof import SealMismatch
from ledger.seals.seal import digest
from ledger.spans import HOUR_US


@dataclass(frozen=True, slots=True)
class CondensedHits:
    """Hits of one hour and team at own engines or at APIs, with the fields of `CacheTotal`."""

    hour_us: int
    team_id: str
    backend: str
    hits: int
    unpriced: int
    avoided_pusd: int
    engine_us: int


@dataclass(frozen=True, slots=True)
class HitRetirement:
    """Number of hits that one step deleted, or why it deleted none."""

    hits: int = 0
    waits_for: str | None = None


class HitRetirer:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def step(self, *, before_us: int, at_us: int) -> HitRetirement:
        """Retire the hits of the next entry. `waits_for` of the result says why there are none."""
        with reading(self._engine) as connection:
            entry = _next_entry(connection)
            if entry is None:
                return HitRetirement(waits_for="all hits that were entered are retired")
            first, until = hit_range(entry.subject)
            waits = _waits(connection, first, until, before_us)
            if waits is not None:
                return HitRetirement(waits_for=waits)
            leaves = [row.leaf for row in sealed.cache_hits(connection, first - 1, until)]
            if (len(leaves), digest(leaves)) != (entry.rows, bytes(entry.digest)):
                raise SealMismatch(
                    f"cache hits {entry.subject}: `breakeven ledger verify` says what was edited"
                )
            lines = _condense(connection, first, until)
        said = AnnexText(HITS_GONE, entry.subject, entry.rows, digest_lines(lines))
        try:
            with self._engine.begin() as connection:
                number = add_entries(connection, [said], at_us=at_us)
                _write(connection, number, lines)
                inside = (CacheHitRow.seq >= first, CacheHitRow.seq <= until)
                connection.execute(delete(CacheHitRow).where(*inside))
        except IntegrityError:
            return HitRetirement()  # another host was first
        return HitRetirement(entry.rows)


def digest_lines(lines: Iterable[CondensedHits]) -> bytes:
    """Return the digest of lines as text, because sums may exceed 64 bits."""
    return digest(msgspec.msgpack.encode([str(cell) for cell in astuple(line)]) for line in lines)


def lines_by_entry(connection: Connection) -> dict[int, list[CondensedHits]]:
    """Return the lines of each entry in the order in which they were added."""
    names = [field.name for field in fields(CondensedHits)]
    columns = (getattr(CondensedHitRow, name) for name in names)
    query = select(CondensedHitRow.number, *columns)
    found: dict[int, list[CondensedHits]] = {}
    order = (CondensedHitRow.number, CondensedHitRow.line)
    for number, *values in connection.execute(query.order_by(*order)):
        found.setdefault(number, []).append(CondensedHits(*values))
    return found


def hits_retired_until_us(connection: Connection) -> int:
    """Return the time before which single hits may be deleted, 0 if none was."""
    newest = connection.execute(select(func.max(CondensedHitRow.hour_us))).scalar()
    return 0 if newest is None else newest + HOUR_US


def _next_entry(connection: Connection) -> Row[*tuple[Any, ...]] | None:
    """Return the first entry whose hits still exist."""
    table = SealAnnexRow
    gone = last_subject(connection, HITS_GONE)
    query = select(table.subject, table.rows, table.digest).where(table.kind == HITS)
    if gone is not None:
        before = select(table.number).where(table.kind == HITS, table.subject == gone)
        query = query.where(table.number > before.limit(1).scalar_subquery())
    return connection.execute(query.order_by(table.number).limit(1)).one_or_none()


def _waits(connection: Connection, first: int, until: int, before_us: int) -> str | None:
    newest = connection.execute(select(func.max(CacheHitRow.seq))).scalar() or 0
    if until >= newest:  # SQLite would give the number of a last row that is gone to the next one
        return "the newest hits stay"
    inside = (CacheHitRow.seq >= first, CacheHitRow.seq <= until)
    latest = connection.execute(select(func.max(CacheHitRow.hit_us)).where(*inside)).scalar()
    return f"cache hits {first}-{until} are not old enough" if (latest or 0) >= before_us else None


def _condense(connection: Connection, first: int, until: int) -> list[CondensedHits]:
    table = CacheHitRow
    columns = (table.hit_us, table.team_id, table.backend, table.avoided_pusd, table.engine_us)
    sums: dict[tuple[int, str, str], list[int]] = {}
    for hit_us, team, backend, pusd, engine_us in connection.execute(
        select(*columns).where(table.seq >= first, table.seq <= until)
    ):
        total = sums.setdefault((hit_us - hit_us % HOUR_US, team, backend), [0, 0, 0, 0])
        more = (1, int(pusd is None), pusd or 0, engine_us)
        total[:] = [before + item for before, item in zip(total, more, strict=True)]
    return [CondensedHits(*key, *sums[key]) for key in sorted(sums)]


def _write(connection: Connection, number: int, lines: Sequence[CondensedHits]) -> None:
    rows = [asdict(line) | {"number": number, "line": place} for place, line in enumerate(lines)]
    if rows:
        connection.execute(insert(CondensedHitRow), rows)
