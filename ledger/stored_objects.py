"""Stored responses and conversations: limited in size, found by team, deleted on expiry.

Callers encrypt the content. Every change of a team's rows first locks the team's row of
`stored_bytes`, so its sum is exact and changes cannot deadlock. Objects of other teams and expired
objects are treated as absent.
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
ROW_BYTES: Final = 256  # bytes of a row besides its content
EVICTED_AT_ONCE: Final = 64
FORGOTTEN_AT_ONCE: Final = 200
PAGE_BYTES: Final = 16 * 1024 * 1024  # bytes of a list page and of a search result
UNFINISHED: Final = ("queued", "in_progress")
CANCELLED: Final = "cancelled"
_Object = StoredObjectRow


class ChainError(Exception):
    """A chain that cannot be continued: the response `missing` no longer exists."""

    def __init__(self, missing: str | None) -> None:
        super().__init__("too long" if missing is None else f"{missing} is missing")
        self.missing = missing


class NameTaken(Exception):
    """A conflict: the id that a caller chose for a new object exists already."""


class ObjectCancelled(Exception):
    """A cancellation of an object during its generation; only its end may be stored."""


class StorageFull(Exception):
    """An object that cannot be stored: it does not fit, or was deleted while it was generated."""


class SealedObject(NamedTuple):
    """A row of `stored_objects`, without its number and its size."""

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
    """The maximum bytes of one team's objects, and of all teams' objects together."""

    team_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectQuery:
    """A query for one page of a team's objects; `after` is the last id of the previous page."""

    team_id: str
    kind: str
    parent: str | None = None
    after: str | None = None
    limit: int = 20
    descending: bool = True


class ObjectPage(NamedTuple):
    """One page of objects in the order of creation; `more` is true if others follow."""

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
    """Store objects of one team, replacing those of equal ids. Return false if none fits.

    If the team's or the total limit is reached, the team's oldest objects are deleted first.
    `renews`: the id of an object that is kept as long as these; if it was deleted, its parts are
    not stored. `replaces`: the first object must exist; returns false if it was deleted, and raises
    `ObjectCancelled` if its cancellation was requested. `is_new`: callers chose the ids; raises
    `NameTaken` if one exists.
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
    """Return the team's object of this id, or `None` if there is none."""
    query = select(*_COLUMNS).where(_is_there(team_id, now_us), _Object.id == object_id)
    row = read_row(engine, query)
    return None if row is None else SealedObject(*row)


def find_objects(
    engine: Engine, team_id: str, ids: Sequence[str], *, max_bytes: int, now_us: int
) -> dict[str, SealedObject]:
    """Return the existing objects among the ids. Raises `ChainError` above `max_bytes`."""
    wanted = (_is_there(team_id, now_us), _Object.id.in_(ids))
    _check_bytes(engine, wanted, max_bytes)
    rows = read_rows(engine, select(*_COLUMNS).where(*wanted))
    return {row.id: SealedObject(*row) for row in rows}


def check_items(engine: Engine, team_id: str, parent: str, *, max_bytes: int, now_us: int) -> None:
    """Raise `ChainError` if the items of a conversation are together above `max_bytes`."""
    there = _is_there(team_id, now_us), _Object.kind == "item", _Object.parent == parent
    _check_bytes(engine, there, max_bytes)


def _check_bytes(engine: Engine, wanted: Sequence[Any], max_bytes: int) -> None:
    row = read_row(engine, select(func.sum(_Object.size)).where(*wanted))
    if row is not None and (row[0] or 0) > max_bytes:
        raise ChainError(None)


def find_chain(
    engine: Engine, team_id: str, last: str, *, max_bytes: int, now_us: int
) -> list[SealedObject]:
    """Return the response `last` and all responses that it continues, oldest first.

    Raises `ChainError` if one of them is missing, or if they are too many or too large.
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

    Returns `None` if `after` is not an object of the query.
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
    """Delete the object and the items of a conversation. Return whether the object existed."""
    with engine.begin() as connection:
        _lock_team(connection, team_id)
        freed = _delete(connection, team_id, _Object.id == object_id)
        if freed:
            items = and_(_Object.parent == object_id, _Object.kind == "item")
            freed += _delete(connection, team_id, items)
            _add_bytes(connection, team_id, -freed)
    return freed > 0


def cancel_object(engine: Engine, team_id: str, object_id: str, *, now_us: int) -> bool:
    """Request the worker that generates the object to stop; false if it has finished."""
    asked = (
        update(_Object)
        .where(_is_there(team_id, now_us), _Object.id == object_id)
        .where(_Object.status.in_(UNFINISHED))
        .values(cancel_us=now_us)
    )
    with engine.begin() as connection:
        return connection.execute(asked).rowcount > 0


def renew_leases(engine: Engine, ids: Sequence[str], *, lease_us: int) -> set[str]:
    """Renew the leases of objects in generation. Return the ids of those that must stop.

    Cancelled and deleted objects must stop.
    """
    with engine.begin() as connection:
        here = _Object.id.in_(ids)
        connection.execute(update(_Object).where(here).values(lease_us=lease_us))
        query = select(_Object.id).where(here, _Object.cancel_us.is_(None))
        return set(ids) - set(connection.execute(query).scalars())


def forget_objects(engine: Engine, now_us: int) -> bool:
    """Delete up to `FORGOTTEN_AT_ONCE` expired objects. Return whether there may be more."""
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
    """Return the team's bytes, and lock them until the transaction ends."""
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
    """Extend an object's expiry to that of `objects`. Return the objects that may be stored.

    Raises `StorageFull` if it was deleted and all `objects` are its parts.
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
    """Delete the rows that the objects replace. Return their ids, numbers and sizes.

    Raises `StorageFull` if the first is required and missing, and `ObjectCancelled` if a row was
    cancelled and the first object does not have the status `CANCELLED`.
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
    """Insert the objects; one that replaces another keeps its position in the team's order."""
    rows = [{**stored._asdict(), "size": stored.size} for stored in objects]
    added = [row for row in rows if row["id"] not in places]
    kept = [{**row, "seq": places[row["id"]]} for row in rows if row["id"] in places]
    for part in filter(None, (kept, added)):
        connection.execute(insert(_Object), part)


def _delete(connection: Connection, team_id: str, which: Any) -> int:
    """Delete these rows of the team. Return their bytes."""
    gone = delete(_Object).where(_Object.team_id == team_id, which).returning(_Object.size)
    return sum(connection.execute(gone).scalars())


def _evict(connection: Connection, team_id: str, excess: int) -> int:
    """Delete the team's oldest objects until `excess` bytes are free. Return the freed bytes.

    Raises `StorageFull` if that is impossible; the transaction then deletes nothing.
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
