"""What every command that reads the configuration or the ledger does first."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine, make_url

from gateway.cli_output import fail
from gateway.errors import ConfigError
from gateway.prepare import ledger_url
from gateway.settings import Settings, load
from ledger.database import make_engine, migrate, open_readonly

Config = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="BREAKEVEN_CONFIG", help="The configuration file."),
]


def load_or_fail(path: Path) -> Settings:
    """The settings, or every fault of the file on stderr and status 1."""
    try:
        return load(path)
    except ConfigError as error:
        fail("\n".join(error.faults))


@contextmanager
def ledger_engine(settings: Settings) -> Iterator[Engine]:
    """The ledger for writing, its schema brought up first."""
    try:
        url = ledger_url(settings, os.environ)
    except ConfigError as error:
        fail("\n".join(error.faults))
    settings.state.mkdir(parents=True, exist_ok=True)
    migrate(url)
    yield from _until_done(make_engine(url))


@contextmanager
def ledger_reader(settings: Settings) -> Iterator[Engine]:
    """The ledger for reading; a missing SQLite file is said so."""
    try:
        url = ledger_url(settings, os.environ)
    except ConfigError as error:
        fail("\n".join(error.faults))
    place = make_url(url)
    if place.get_backend_name() == "sqlite" and not Path(place.database or "").exists():
        fail(f"there is no ledger at {place.database}; `breakeven serve` makes it")
    yield from _until_done(open_readonly(url))


def _until_done(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()
