"""Checks of the ledger: connection, schema version, durability, and clock difference."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from sqlalchemy import Engine, make_url
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from gateway.config.ledger_address import ledger_url
from gateway.config.settings import Settings
from gateway.diagnosis.observation import DoctorFinding, failed, fine, noted, warned
from gateway.errors import ConfigError
from ledger.database import (
    DatabaseError,
    NotDurable,
    check_durable,
    database_us,
    known_schema,
    make_engine,
    reading,
    schema_of,
)
from ledger.presence import is_there

SKEW_US = 2_000_000  # small enough for leases of seconds


def look_at_books(
    settings: Settings,
    environ: Mapping[str, str],
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
) -> Iterator[DoctorFinding]:
    """Yield the findings; migrates nothing. Addresses are shown without passwords."""
    try:
        url = ledger_url(settings, environ)
    except ConfigError as error:
        yield failed("ledger", str(error), "set the variable")
        return
    place = make_url(url)
    shown = place.set(password=None).render_as_string()
    try:
        if place.get_backend_name() == "sqlite" and not is_there(Path(place.database or "")):
            yield noted("ledger", f"{shown} is not there yet: the first start makes it")
            return
        found = schema_of(url)
    except (SQLAlchemyError, DatabaseError, OSError) as error:
        words = str(getattr(error, "orig", None) or error).splitlines()[0]
        fix = (
            "start the database, or mend the address; requests go on, and journals keep their rows"
        )
        yield failed("ledger", f"{shown} cannot be reached: {words}", fix)
        return
    yield _schema(shown, found)
    if found is None:
        return
    engine = make_engine(url)
    try:
        yield _durability(engine)
        yield _clock(engine, shown, now_us)
    except DBAPIError as error:
        yield failed("ledger", f"{shown}: {error.orig}", "look at the database's log")
    finally:
        engine.dispose()


def _schema(shown: str, found: str | None) -> DoctorFinding:
    known = known_schema()
    if found is None:
        return noted("ledger", f"{shown} has no ledger yet: the first start makes it")
    if found == known:
        return fine("ledger", f"{shown}, schema {found}")
    if found.isdecimal() and found > known:
        words = f"{shown} has schema {found}, made by a later version; this one knows {known}"
        return warned("ledger", words, "upgrade this host")
    words = f"{shown} has schema {found}; this version needs {known}"
    return warned("ledger", words, "run `breakeven ledger migrate`, or start the gateway")


def _durability(engine: Engine) -> DoctorFinding:
    try:
        check_durable(engine)
    except NotDurable as error:
        fix = "switch it on there: an acknowledged row could be lost when the machine falls"
        return failed("durability", str(error), fix)
    return fine("durability", "commits are on the disk when they are acknowledged")


def _clock(engine: Engine, shown: str, now_us: Callable[[], int]) -> DoctorFinding:
    with reading(engine) as connection:
        before_us = now_us()
        theirs_us = database_us(connection)
        after_us = now_us()
    skew_us = max(before_us - theirs_us, theirs_us - after_us, 0)
    words = f"{skew_us / 1e6:.3f} s between this machine and {shown}"
    if skew_us > SKEW_US:
        fix = "run a time service (chrony, systemd-timesyncd) on both"
        return warned("clock", words, fix)
    return fine("clock", words)
