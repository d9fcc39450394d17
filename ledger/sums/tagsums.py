"""From where on attempts are added up by tag and by key, which began later than the other sums.

What was passed before is not among them, and what a host of the version before added is not: after
a commit of its own they begin anew behind it. `rebuild` makes them of every attempt there is.
"""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, delete, func, select

from ledger.orm.tables import AttemptRow, RollupTaggingRow
from ledger.sums.rollup import LATER
from ledger.upserts import insert_of

NAME = "tags and keys"  # not that of the version before, which knew no keys


@dataclass(frozen=True, slots=True)
class TagRollupStart:
    """Attempts numbered above `since_seq` count; none up to it is of `from_us` or later."""

    since_seq: int
    from_us: int

    def counts(self) -> ColumnElement[bool]:
        return AttemptRow.seq > self.since_seq


EVERY = TagRollupStart(0, 0)


def read_start(connection: Connection, version: int) -> TagRollupStart | None:
    """From where on there are sums by tag and key of this version; None: nowhere."""
    query = select(RollupTaggingRow.since_seq, RollupTaggingRow.from_us)
    ours = (RollupTaggingRow.name == NAME, RollupTaggingRow.version == version)
    row = connection.execute(query.where(*ours)).one_or_none()
    return None if row is None else TagRollupStart(row[0], row[1])


def ensure_start(connection: Connection, seq: int, version: int) -> TagRollupStart:
    """Ensure a start for an adder; without sums they begin behind `seq`."""
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
