"""History of active routing policy sets, with author and time: an append-only list.

The newest set is active on all hosts of the ledger. A rollback stores an earlier set again, so the
list shows the active set of any time. The gateway interprets the sets.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.database import read_row, read_rows
from ledger.orm import policies as orm

NEWEST_POLICY_FILE = "policies.newest"  # in the run directory: the newest number


class PoliciesMovedError(Exception):
    """A conflict: another set was activated since the caller read the newest number."""


class PolicySet(msgspec.Struct, frozen=True):
    """One policy set. `document` is YAML, `None` for the policies of the configuration file."""

    number: int
    document: str | None
    recorded_us: int
    actor: str
    note: str | None = None


def newest_number(connection: Connection) -> int:
    """Return the number of the active policy set; 0 if none was ever stored."""
    return connection.execute(select(func.max(orm.PolicySetRow.number))).scalar_one() or 0


def policies_in_force(engine: Engine) -> PolicySet | None:
    """Return the active set, or `None` if only the configuration file's policies apply."""
    found = policy_sets(engine, 1)
    return found[0] if found else None


def policy_sets(engine: Engine, most: int) -> Sequence[PolicySet]:
    """Return the newest `most` sets, newest first."""
    table = orm.PolicySetRow
    query = (
        select(table.number, table.document, table.recorded_us, table.actor, table.note)
        .order_by(table.number.desc())
        .limit(most)
    )
    return [PolicySet(*row) for row in read_rows(engine, query)]


def policy_set(engine: Engine, number: int) -> PolicySet | None:
    table = orm.PolicySetRow
    query = select(table.number, table.document, table.recorded_us, table.actor, table.note).where(
        table.number == number
    )
    row = read_row(engine, query)
    return None if row is None else PolicySet(*row)


def store_policies(engine: Engine, new: PolicySet) -> None:
    """Activate the set. Raises `PoliciesMovedError` unless it follows the newest by one."""
    try:
        with engine.begin() as connection:
            if newest_number(connection) != new.number - 1:
                raise PoliciesMovedError
            connection.execute(insert(orm.PolicySetRow).values(msgspec.structs.asdict(new)))
    except IntegrityError:
        raise PoliciesMovedError from None
