"""Names of hosts in the ledger, and the lease by which one process writes for a host name.

Grants, journals and claimed batches are stored under their host's name. Two hosts of one name would
each spend the whole of one grant, so a name belongs to a state directory with a unique id. The
first state directory of a machine takes the machine's name, a second one appends a part of its id.
Both keep their names when they move. Only a copy of a state directory has the same id. A process
that writes to PostgreSQL therefore renews its claim each second. A start from another place waits,
and is refused if the renewals continue.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Engine, and_, select, update
from sqlalchemy.exc import DBAPIError

from ledger.database import database_us
from ledger.identity.secretfile import read_or_create_secret, read_secret
from ledger.orm.books import HostNameRow
from ledger.upserts import insert_of

ID_FILE = "host"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
SAID_EACH_S = 1.0
LEASE_S = 5.0  # seconds without a renewal before another place may claim
LOOK_S = 0.5
ID_DIGITS, NAME_DIGITS = 32, 8


class HostConflict(Exception):
    """Another process writes under this state directory's id: one of the two is a copy."""


class HostClaim(NamedTuple):
    """A claim on a host name by the state directory with id `holder`.

    `place` identifies the directory and the boot of its kernel.
    """

    holder: str
    place: str


def claim_of(state: Path) -> HostClaim:
    """Return the claim of a state directory, whose id is created at first use.

    Raises `HostConflict` if the file of the id is damaged.
    """
    path = state / ID_FILE
    read_or_create_secret(path)
    secret = read_secret(path)
    if secret is None:
        raise HostConflict(
            f"{path} is not an id: delete it, and the host is a new one in the books"
        )
    boot = BOOT_ID.read_text("ascii").strip() if BOOT_ID.exists() else ""
    known = path.stat()
    return HostClaim(secret.hex()[:ID_DIGITS], f"{boot}:{known.st_dev}:{known.st_ino}")


def claim_name(
    engine: Engine, claim: HostClaim, machine: str, *, wait: Callable[[float], None] = time.sleep
) -> str:
    """Claim and return the host's name. `machine` is the preferred name of a new host.

    Raises `HostConflict` while a process elsewhere writes under the same id.
    """
    with engine.begin() as connection:
        name = _claim_free_name(connection, claim.holder, machine)
    if engine.dialect.name == "sqlite":
        return name  # a file: a copied state directory has its own database
    for _ in range(round(LEASE_S / LOOK_S)):
        place, said_us = _read_statement(engine, claim.holder)
        if place in (None, claim.place):
            break
        wait(LOOK_S)
        if _read_statement(engine, claim.holder).said_us != said_us:
            raise HostConflict(
                f"`{name}` already writes to this ledger, from a copy of this state directory: "
                f"stop that one, or delete the copy's journals and its file `{ID_FILE}`"
            )
    with engine.begin() as connection:
        values = {"place": claim.place, "said_us": database_us(connection)}
        connection.execute(
            update(HostNameRow).where(HostNameRow.holder == claim.holder).values(**values)
        )
    return name


def renew_claim(engine: Engine, claim: HostClaim) -> None:
    """Renew the claim. Raises `HostConflict` if another process took it over."""
    with engine.begin() as connection:
        row = update(HostNameRow).where(_is(claim)).values(said_us=database_us(connection))
        if connection.execute(row).rowcount != 1:
            raise HostConflict("somebody else writes for this state directory's id: a copy of it?")


async def keep_claim(engine: Engine, claim: HostClaim) -> None:
    """Renew the claim until cancelled. Raises `HostConflict` if another process took it over.

    Errors of the database are ignored: while it is unavailable, no process can take over.
    """
    while engine.dialect.name != "sqlite":
        await asyncio.sleep(SAID_EACH_S)
        with suppress(DBAPIError):
            await asyncio.to_thread(renew_claim, engine, claim)


class _HostStatement(NamedTuple):
    place: str | None
    said_us: int


def _claim_free_name(connection: Connection, holder: str, machine: str) -> str:
    """Reserve a free name and return it; a known holder keeps the name that it has."""
    add = insert_of(connection.dialect)
    for name in (machine or "host", f"{machine}~{holder[:NAME_DIGITS]}", f"{machine}~{holder}"):
        row = {"name": name, "holder": holder, "place": None, "said_us": 0}
        connection.execute(add(HostNameRow).on_conflict_do_nothing(), [row])
        query = select(HostNameRow.name).where(HostNameRow.holder == holder)
        if (known := connection.execute(query).scalar_one_or_none()) is not None:
            return known
    raise AssertionError("an id of 32 random digits is nobody else's name")


def _read_statement(engine: Engine, holder: str) -> _HostStatement:
    query = select(HostNameRow.place, HostNameRow.said_us).where(HostNameRow.holder == holder)
    with engine.begin() as connection:
        return _HostStatement(*connection.execute(query).one())


def _is(claim: HostClaim) -> ColumnElement[bool]:
    return and_(HostNameRow.holder == claim.holder, HostNameRow.place == claim.place)
