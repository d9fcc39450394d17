"""Answers and conversations as rows: stored within bounds, found by team, forgotten in time.

What a row says is encrypted by whoever calls. Every change of a team's rows locks the team's row
of `stored_bytes` first, so the sum there is exact and no two changes wait for one another.
An object of another team does not exist, and neither does one that expired.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, and_, delete, func, insert, literal, select, update

from ledger.database import read_row, read_rows, reading
from ledger.orm.stored import StoredBytesRow, StoredObjectRow
from ledger.storage_room import lock_room, store_in_room
from ledger.upserts import insert_of

CHAIN_LIMIT: Final = 2_000  # turns of one conversation
ROW_BYTES: Final = 256  # that a row takes beside what it says
EVICTED_AT_ONCE: Final = 64
FORGOTTEN_AT_ONCE: Final = 200
PAGE_BYTES: Final = 16 * 1024 * 1024  # of a list's page, and of what a search returns
UNFINISHED: Final = ("queued", "in_progress")
CANCELLED: Final = "cancelled"
_Object = StoredObjectRow


class ChainError(Exception):
    """A chain that cannot be continued: `missing` is the answer that is not there any more."""

    def __init__(self, missing: str | None) -> None:
        super().__init__("too long" if missing is None else f"{missing} is missing")
        self.missing = missing


class NameTaken(Exception):
    """An object's id, which somebody else chose, is another object's."""


class ObjectCancelled(Exception):
    """An object was cancelled while it was made: nothing else takes its place."""


class StorageFull(Exception):
    """An object has no place: it does not fit, or was deleted while it was made."""


class SealedObject(NamedTuple):
    """A row of `stored_objects` but for its number and its size."""

    team_id: str
    id: str
    kind: str
    parent: str | None
    residency: str
    status: str | None
    wrapped_key: bytes
    sealed: bytes
    created_us: int
    expires_us: int
    lease_us: int | None = None
    cancel_us: int | None = None

    @property
    def size(self) -> int:
        return len(self.sealed) + len(self.wrapped_key) + ROW_BYTES


@dataclass(frozen=True, slots=True)
class StorageBounds:
    """The most bytes that a team's objects may take, and all teams' together."""

    team_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQuery:
    """One page of a team's objects; `after` is the id of the last one of the page before."""

    team_id: str
    kind: str
    parent: str | None = None
    after: str | None = None
    limit: int = 20
    descending: bool = True


class ObjectPage(NamedTuple):
    """Objects in the order of their making; `more`: others follow."""

    objects: list[SealedObject]
    more: bool


_COLUMNS: Final = tuple(getattr(_Object, name) for name in SealedObject._fields)


def store_objects(
    engine: Engine,
    objects: Sequence[SealedObject],
    bounds: StorageBounds,
    *,
    renews: str | None = None,
    replaces: bool = False,
    is_new: bool = False,
) -> bool:
    """Store the objects of one team, in place of those of their ids; False where none fits.

    Where the team's bytes or all bytes are used up, the team's oldest objects go first.
    `renews`: an object of the team that stays as long as these; where it was deleted meanwhile,
    its parts among them are not stored. `replaces`: the first object is there already; False
    where it was deleted meanwhile; raises `ObjectCancelled` where that was asked for. `is_new`:
    their ids are somebody else's choice, and take no object's place: raises `NameTaken`.
    """
    team_id = objects[0].team_id

    def store(connection: Connection, alone: bool) -> None:
        used, kept = _lock_team(connection, team_id), objects
        if renews is not None:
            kept = _renew(connection, objects, renews)
        replaced = _take_out(connection, kept, is_required=replaces)
        if is_new and replaced:
            raise NameTaken
        needed = sum(stored.size for stored in kept) - sum(row.size for row in replaced)
        total = lock_room(connection, needed, bounds.total_bytes, alone=alone)
        excess = max(used + needed - bounds.team_bytes, total + needed - bounds.total_bytes)
        freed = _evict(connection, team_id, excess)
        _add_bytes(connection, team_id, needed - freed)
        _insert(connection, kept, {row.id: row.seq for row in replaced})

    try:
        store_in_room(engine, store)
    except StorageFull:
        return False
    return True


def find_object(
    engine: Engine, team_id: str, object_id: str, *, now_us: int
) -> SealedObject | None:
    """Return the team's object of this id."""
    query = select(*_COLUMNS).where(_is_there(team_id, now_us), _Object.id == object_id)
    row = read_row(engine, query)
    return None if row is None else SealedObject(*row)


def find_objects(
    engine: Engine, team_id: str, ids: Sequence[str], *, max_bytes: int, now_us: int
) -> dict[str, SealedObject]:
    """Return those of the ids that there are; raises `ChainError` where they are too large."""
    wanted = (_is_there(team_id, now_us), _Object.id.in_(ids))
    _check_bytes(engine, wanted, max_bytes)
    rows = read_rows(engine, select(*_COLUMNS).where(*wanted))
    return {row.id: SealedObject(*row) for row in rows}


def check_items(engine: Engine, team_id: str, parent: str, *, max_bytes: int, now_us: int) -> None:
    """Raise `ChainError` where a conversation's items are too large together to be read."""
    there = _is_there(team_id, now_us), _Object.kind == "item", _Object.parent == parent
    _check_bytes(engine, there, max_bytes)


def _check_bytes(engine: Engine, wanted: Sequence[Any], max_bytes: int) -> None:
    row = read_row(engine, select(func.sum(_Object.size)).where(*wanted))
    if row is not None and (row[0] or 0) > max_bytes:
        raise ChainError(None)


def find_chain(
    engine: Engine, team_id: str, last: str, *, max_bytes: int, now_us: int
) -> list[SealedObject]:
    """Return the answer `last` and all that it continues, the oldest first.

    Raises `ChainError` where one of them is gone, and where they are too many or too large.
    """
    there = _is_there(team_id, now_us)
    first = select(
        _Object.seq, _Object.id, _Object.parent, literal(1).label("depth"),
        _Object.size.label("total"),
    ).where(there, _Object.kind == "response", _Object.id == last)  # fmt: skip
    start = first.cte("chain", recursive=True)
    earlier = (
        select(
            _Object.seq, _Object.id, _Object.parent, start.c.depth + 1,
            start.c.total + _Object.size,
        )
        .where(there, _Object.kind == "response", _Object.id == start.c.parent)
        .where(start.c.depth <= CHAIN_LIMIT, start.c.total <= max_bytes)
    )  # fmt: skip
    chain = start.union_all(earlier)
    with reading(engine) as connection:
        links = connection.execute(
            select(chain.c.seq, chain.c.parent, chain.c.depth, chain.c.total)
            .order_by(chain.c.depth)
        ).all()  # fmt: skip
        if not links:
            raise ChainError(last)
        oldest = links[-1]
        if oldest.depth > CHAIN_LIMIT or oldest.total > max_bytes:
            raise ChainError(None)
        if oldest.parent is not None:
            raise ChainError(oldest.parent)
        numbers = [link.seq for link in links]
        rows = connection.execute(
            select(_Object.seq, *_COLUMNS).where(_Object.seq.in_(numbers))
        ).all()
    by_number = {row[0]: SealedObject(*row[1:]) for row in rows}
    return [by_number[number] for number in reversed(numbers)]


def list_objects(engine: Engine, query: ObjectQuery, *, now_us: int) -> ObjectPage | None:
    """Return one page of at most `PAGE_BYTES`, or of one object that is larger.

    None where `after` is no such object.
    """
    there = [_is_there(query.team_id, now_us), _Object.kind == query.kind]
    if query.parent is not None:
        there.append(_Object.parent == query.parent)
    with reading(engine) as connection:
        if query.after is not None:
            place = select(_Object.seq).where(*there, _Object.id == query.after)
            number = connection.execute(place).scalar_one_or_none()
            if number is None:
                return None
            there.append(_Object.seq < number if query.descending else _Object.seq > number)
        order = _Object.seq.desc() if query.descending else _Object.seq
        rows = select(_Object.seq, _Object.size).where(*there).order_by(order)
        listed = connection.execute(rows.limit(query.limit + 1)).all()
        sums = accumulate(row.size for row in listed)
        fitting = sum(size <= PAGE_BYTES for size in sums)
        chosen = [row.seq for row in listed[: min(query.limit, max(1, fitting))]]
        found = select(*_COLUMNS).where(_Object.seq.in_(chosen)).order_by(order)
        page = [SealedObject(*row) for row in connection.execute(found)]
        return ObjectPage(page, more=len(listed) > len(chosen))


def delete_object(engine: Engine, team_id: str, object_id: str) -> bool:
    """Delete the object and, of a conversation, its items; whether it was there."""
    with engine.begin() as connection:
        _lock_team(connection, team_id)
        freed = _delete(connection, team_id, _Object.id == object_id)
        if freed:
            items = and_(_Object.parent == object_id, _Object.kind == "item")
            freed += _delete(connection, team_id, items)
            _add_bytes(connection, team_id, -freed)
    return freed > 0


def cancel_object(engine: Engine, team_id: str, object_id: str, *, now_us: int) -> bool:
    """Ask the worker that makes the object to end; False where it has ended."""
    asked = (
        update(_Object)
        .where(_is_there(team_id, now_us), _Object.id == object_id)
        .where(_Object.status.in_(UNFINISHED))
        .values(cancel_us=now_us)
    )
    with engine.begin() as connection:
        return connection.execute(asked).rowcount > 0


def renew_leases(engine: Engine, ids: Sequence[str], *, lease_us: int) -> set[str]:
    """Say that these objects are still made here; return those that shall end.

    An object that was deleted meanwhile shall end, too.
    """
    with engine.begin() as connection:
        here = _Object.id.in_(ids)
        connection.execute(update(_Object).where(here).values(lease_us=lease_us))
        query = select(_Object.id).where(here, _Object.cancel_us.is_(None))
        return set(ids) - set(connection.execute(query).scalars())


def forget_objects(engine: Engine, now_us: int) -> bool:
    """Delete some that expired; whether there may be more."""
    query = (
        select(_Object.team_id, _Object.seq)
        .where(_Object.expires_us <= now_us)
        .order_by(_Object.expires_us)
        .limit(FORGOTTEN_AT_ONCE)
    )
    rows = read_rows(engine, query)
    for team_id in sorted({row.team_id for row in rows}):
        numbers = [row.seq for row in rows if row.team_id == team_id]
        with engine.begin() as connection:
            _lock_team(connection, team_id)
            freed = _delete(connection, team_id, _Object.seq.in_(numbers))
            _add_bytes(connection, team_id, -freed)
    return len(rows) == FORGOTTEN_AT_ONCE


def _is_there(team_id: str, now_us: int) -> Any:
    return and_(_Object.team_id == team_id, _Object.expires_us > now_us)


def _lock_team(connection: Connection, team_id: str) -> int:
    """Return the team's bytes, which nobody else changes until the transaction ends."""
    on_conflict = insert_of(connection.dialect)
    locked = (
        on_conflict(StoredBytesRow)
        .values(team_id=team_id, bytes=0)
        .on_conflict_do_update(
            index_elements=["team_id"], set_={"bytes": StoredBytesRow.bytes}
        )
        .returning(StoredBytesRow.bytes)
    )  # fmt: skip
    return int(connection.execute(locked).scalar_one())


def _renew(
    connection: Connection, objects: Sequence[SealedObject], renewed_id: str
) -> Sequence[SealedObject]:
    """Let an object stay as long as these; return those that have a place beside it.

    Raises `StorageFull` where it is gone and they are all its parts.
    """
    expires_us = max(stored.expires_us for stored in objects)
    renewed = _Object.team_id == objects[0].team_id, _Object.id == renewed_id
    changed = update(_Object).where(*renewed).values(expires_us=expires_us)
    if connection.execute(changed).rowcount:
        return objects
    others = [stored for stored in objects if stored.parent != renewed_id]
    if not others:
        raise StorageFull
    return others


def _add_bytes(connection: Connection, team_id: str, more: int) -> None:
    changed = update(StoredBytesRow).where(StoredBytesRow.team_id == team_id)
    connection.execute(changed.values(bytes=StoredBytesRow.bytes + more))


def _take_out(
    connection: Connection, objects: Sequence[SealedObject], *, is_required: bool
) -> Sequence[Any]:
    """Delete the rows whose places the objects take; return their ids, numbers and sizes.

    Raises `StorageFull` where the first one is required and not there, `ObjectCancelled` where
    what replaces a cancelled row is not its end by that.
    """
    ids = [stored.id for stored in objects]
    rows = connection.execute(
        delete(_Object)
        .where(_Object.team_id == objects[0].team_id, _Object.id.in_(ids))
        .returning(_Object.id, _Object.seq, _Object.size, _Object.cancel_us)
    ).all()
    if is_required and ids[0] not in {row.id for row in rows}:
        raise StorageFull
    if objects[0].status != CANCELLED and any(row.cancel_us is not None for row in rows):
        raise ObjectCancelled
    return rows


def _insert(
    connection: Connection, objects: Sequence[SealedObject], places: Mapping[str, int]
) -> None:
    """Insert the objects; one that takes another's place in the team's order keeps that."""
    rows = [{**stored._asdict(), "size": stored.size} for stored in objects]
    added = [row for row in rows if row["id"] not in places]
    kept = [{**row, "seq": places[row["id"]]} for row in rows if row["id"] in places]
    for part in filter(None, (kept, added)):
        connection.execute(insert(_Object), part)


def _delete(connection: Connection, team_id: str, which: Any) -> int:
    """Delete these rows of the team; return their bytes."""
    gone = delete(_Object).where(_Object.team_id == team_id, which).returning(_Object.size)
    return sum(connection.execute(gone).scalars())


def _evict(connection: Connection, team_id: str, excess: int) -> int:
    """Delete the team's oldest objects until `excess` bytes are free; return what is free.

    Raises `StorageFull` where all of them are not enough, and nothing is deleted.
    """
    freed = 0
    while freed < excess:
        oldest = connection.execute(
            select(_Object.seq, _Object.size)
            .where(_Object.team_id == team_id)
            .where(_Object.status.is_(None) | _Object.status.not_in(UNFINISHED))
            .order_by(_Object.seq)
            .limit(EVICTED_AT_ONCE)
        ).all()
        if not oldest:
            raise StorageFull
        numbers, room = [], freed
        for number, size in oldest:
            if room >= excess:
                break
            numbers.append(number)
            room += size
        freed += _delete(connection, team_id, _Object.seq.in_(numbers))
    return freed
