"""Operators' overrides of every policy: an append-only list that all hosts share.

An override applies to a subject: it disables a target, or limits a model (or all models) to own
engines or to APIs. The newest entry of a subject is active until it expires; `NOTHING` withdraws
it. The gateway decides what an override means for a request.
"""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Engine, func, insert, select
from sqlalchemy.exc import IntegrityError

from ledger.database import read_rows
from ledger.orm import policies as orm

NEWEST_OVERRIDE_FILE = "overrides.newest"  # in the run directory: the newest number
DISABLED, OWN, API, NOTHING = "disabled", "own", "api", "nothing"
EVERY = "*"  # all models
TRIES = 16


class Override(msgspec.Struct, frozen=True):
    """One override. `until_us` is wall clock, `None` until withdrawn."""

    number: int
    subject: str
    says: str
    until_us: int | None
    recorded_us: int
    actor: str
    note: str | None = None

    def is_standing(self, now_us: int) -> bool:
        return self.says != NOTHING and (self.until_us is None or now_us < self.until_us)


def newest_override(connection: Connection) -> int:
    """Return the number of the newest override, 0 if there is none."""
    return connection.execute(select(func.max(orm.OverrideRow.number))).scalar_one() or 0


def overrides(engine: Engine) -> Sequence[Override]:
    """Return the newest override of every subject, in the order of their numbers."""
    table = orm.OverrideRow
    newest = select(func.max(table.number)).group_by(table.subject)
    query = (
        select(
            table.number, table.subject, table.says, table.until_us, table.recorded_us,
            table.actor, table.note,
        )
        .where(table.number.in_(newest))
        .order_by(table.number)
    )  # fmt: skip
    return [Override(*row) for row in read_rows(engine, query)]


def store_override(engine: Engine, given: Override) -> Override:
    """Append the override under the next number, whatever number it has, and return it.

    Concurrent calls get consecutive numbers. Raises `RuntimeError` after `TRIES` conflicts.
    """
    for _ in range(TRIES):
        try:
            with engine.begin() as connection:
                stored = msgspec.structs.replace(given, number=newest_override(connection) + 1)
                connection.execute(insert(orm.OverrideRow).values(msgspec.structs.asdict(stored)))
        except IntegrityError:
            continue
        return stored
    raise RuntimeError("the number of the next override was always taken")
