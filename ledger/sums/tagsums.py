"""The start of sums by tag and by key, which were introduced after the other sums.

These sums lack attempts that were added up before, and attempts that a host of an earlier version
added: after its commit they begin anew behind it. `rebuild` makes them from every attempt.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, select

from ledger.orm.tables import AttemptRow, RollupTaggingRow
from ledger.sums.rollup import LATER
from ledger.upserts import insert_of

NAME = "tags and keys"  # not that of the version before, which knew no keys


@dataclass(frozen=True, slots=True)
class TagRollupStart:
    """Start of the sums by tag and key: they count attempts above `since_seq`.

    No attempt up to `since_seq` was opened at `from_us` or later.
    """

    since_seq: int
    from_us: int

    def counts(self) -> ColumnElement[bool]:
        return AttemptRow.seq > self.since_seq


EVERY = TagRollupStart(0, 0)


def read_start(connection: Connection, version: int) -> TagRollupStart | None:
    """Return the start of the sums by tag and key at this version, or `None` without sums."""
    query = select(RollupTaggingRow.since_seq, RollupTaggingRow.from_us)
    ours = (RollupTaggingRow.name == NAME, RollupTaggingRow.version == version)
    row = connection.execute(query.where(*ours)).one_or_none()
    return None if row is None else TagRollupStart(row[0], row[1])


def ensure_start(connection: Connection, seq: int, version: int) -> TagRollupStart:
    """Return the start for a follower; without sums, delete remains and start behind `seq`."""
    found = read_start(connection, version)
    if found is not None:
        return found
    for cube in LATER:
        for table, _ in cube.tiers:
            connection.execute(delete(table))
    newest_us = connection.execute(select(func.max(AttemptRow.opened_us))).scalar()
    return EVERY if not seq or newest_us is None else TagRollupStart(seq, newest_us + 1)


def write_start(connection: Connection, version: int, now: TagRollupStart) -> None:
    on_conflict = insert_of(connection.dialect)
    values = {"version": version, "since_seq": now.since_seq, "from_us": now.from_us}
    statement = on_conflict(RollupTaggingRow).values(name=NAME, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
