"""Overrides of operators above every policy: an append-only list, equal on every host.

An override says something of a subject: of a target that it is disabled, of a model (or of all)
that it goes to own engines alone, or to APIs alone. The newest entry of a subject counts until its
time is over; `NOTHING` takes it back. What it means for a request is the gateway's business.
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
    """`until_us` is wall clock; None: until taken back."""

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
    """0 while there was none."""
    return connection.execute(select(func.max(orm.OverrideRow.number))).scalar_one() or 0


def overrides(engine: Engine) -> Sequence[Override]:
    """The newest of every subject, in the order of their numbers."""
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
    """Append it under the next number, whatever `given` has; two at once follow one another."""
    for _ in range(TRIES):
        try:
            with engine.begin() as connection:
                stored = msgspec.structs.replace(given, number=newest_override(connection) + 1)
                connection.execute(insert(orm.OverrideRow).values(msgspec.structs.asdict(stored)))
        except IntegrityError:
            continue
        return stored
    raise RuntimeError("the number of the next override was always taken")
