"""Which routing policies were put in force, when and by whom: an append-only list of sets.

The newest is in force on every host of the ledger. To go back is to store an earlier one again, so
the list says what was in force at any time. What a set means is the gateway's business.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.database import read_row, read_rows
from ledger.orm import policies as orm

NEWEST_POLICY_FILE = "policies.newest"  # in the run directory: the newest number


class PoliciesMovedError(Exception):
    """Somebody else put a set in force meanwhile: look again."""


class PolicySet(msgspec.Struct, frozen=True):
    """`document`: YAML; None stands for the policies of the configuration file."""

    number: int
    document: str | None
    recorded_us: int
    actor: str
    note: str | None = None


def newest_number(connection: Connection) -> int:
    """Return the number of the active policy set; 0 if none was ever stored."""
    return connection.execute(select(func.max(orm.PolicySetRow.number))).scalar_one() or 0


def policies_in_force(engine: Engine) -> PolicySet | None:
    """The newest set; None while the configuration file alone says."""
    found = policy_sets(engine, 1)
    return found[0] if found else None


def policy_sets(engine: Engine, most: int) -> Sequence[PolicySet]:
    """The newest first."""
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
    """Put it in force. Raises `PoliciesMovedError` unless it follows the newest by one."""
    try:
        with engine.begin() as connection:
            if newest_number(connection) != new.number - 1:
                raise PoliciesMovedError
            connection.execute(insert(orm.PolicySetRow).values(msgspec.structs.asdict(new)))
    except IntegrityError:
        raise PoliciesMovedError from None
