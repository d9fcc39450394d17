"""First steps of commands: load the configuration, open the ledger."""

import importlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine, make_url

from gateway.cli.output import fail, note
from gateway.config.ledger_address import ledger_url
from gateway.config.remembered import DEFAULT_STATE, load_remembered, load_settings
from gateway.config.state_errors import translate_state_errors
from gateway.control.admin.gateway_address import gateway_url
from gateway.errors import ConfigError
from ledger.database import DatabaseError, is_declared, make_engine, migrate, open_readonly
from ledger.presence import is_there

if TYPE_CHECKING:
    from gateway.config.settings import Settings

Config = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="BREAKEVEN_CONFIG", help="The configuration file."),
]


def load_or_fail(path: Path) -> "Settings":
    """Return the settings, or print all faults to stderr and exit with 1."""
    return _read_or_fail(path, load_settings)


def load_known_or_fail(path: Path) -> "Settings":
    """Return the settings for a ledger command, from the cache where possible."""
    return _read_or_fail(path, load_remembered)


def _read_or_fail(path: Path, read: Callable[[Path], "Settings"]) -> "Settings":
    refuse_remote()
    try:
        return read(path)
    except ConfigError as error:
        fail("\n".join((*error.faults, *found_elsewhere(path))))


def refuse_remote() -> None:
    """Reject `--gateway` for a command that only works on this host."""
    if (url := gateway_url()) is not None:
        fail(f"this command works where the gateway runs, not on {url}: leave out --gateway "
             "and BREAKEVEN_GATEWAY")  # fmt: skip


def found_elsewhere(path: Path) -> list[str]:
    """Return the configurations of `make run` and `make demo`, if none is given or found here."""
    made = [Path(DEFAULT_STATE) / name for name in ("up.yaml", "demo.yaml")]
    try:
        path.stat()
    except FileNotFoundError:
        return [
            f"there is one of an earlier start: --config {earlier}"
            for earlier in made
            if earlier.exists()
        ]
    except OSError:  # for a folder without read permission
        return []
    return []


@contextmanager
def ledger_engine(settings: "Settings") -> Iterator[Engine]:
    """Open the ledger for writing, after migrating its schema."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        settings.state.mkdir(parents=True, exist_ok=True)
        migrate(url)
        yield from _dispose_after(make_engine(url))


@contextmanager
def ledger_reader(settings: "Settings") -> Iterator[Engine]:
    """Open the ledger for reading; a missing SQLite file is reported."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        if (path := _sqlite_file(url)) is not None and not is_there(path):
            fail(f"there is no ledger at {path}: start `breakeven serve`, which makes it")
        yield from _dispose_after(open_readonly(url))


@contextmanager
def configured_reader(settings: "Settings", config: Path) -> Iterator[Engine]:
    """Open the ledger for reading; before the first `serve`, with what `config` declares.

    That is a copy (SQLite), and a line on stderr says that nothing was served yet. A ledger on
    PostgreSQL is not copied: the line says that it lacks what the file declares.
    """
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        path = _sqlite_file(url)
        if path is None or is_there(path):
            reader = open_readonly(url)
            declared = is_declared(reader)
            if path is None and not declared:
                note(
                    f"the gateway was never started with {config}: the ledger lacks what the "
                    "file declares"
                )
            if path is None or declared:
                yield from _dispose_after(reader)
                return
            reader.dispose()
        note(
            f"the gateway was never started with {config}: the result shows what the file declares"
        )
        # Imported on use: needed only before the first `serve`, and takes 0.5 s.
        before: Any = importlib.import_module("gateway.cli.before_start")
        with before.declared_copy(settings, config, path if is_there(path) else None) as reader:
            yield reader


def _sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite ledger, `None` for PostgreSQL."""
    place = make_url(url)
    return Path(place.database or "") if place.get_backend_name() == "sqlite" else None


@contextmanager
def failing_plainly(settings: "Settings") -> Iterator[None]:
    """Turn errors of the state directory or the ledger into one line and exit status 1."""
    try:
        with translate_state_errors(settings):
            yield
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))


def _dispose_after(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()
