"""What every command that reads the configuration or the ledger does first."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine, make_url

from gateway.cli.output import fail
from gateway.clock import Clock
from gateway.config.checks.unset_variables import NOT_SET, needed_variables
from gateway.config.credentials import (
    collector_headers,
    engine_key,
    peers_secret,
    provider_keys,
    webhook,
)
from gateway.config.faults import render
from gateway.config.settings import Settings, examine, load
from gateway.config.statedir import translate_state_errors
from gateway.control.admin.gateway_address import gateway_url
from gateway.errors import ConfigError
from gateway.host.prepare import ledger_url
from gateway.request.idempotency.response_replay import SECRET_CHARACTERS
from ledger.database import DatabaseError, make_engine, migrate, open_readonly

_ASKED = ("providers", "opentelemetry", "peers")  # whose readers say by themselves what is missing

Config = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="BREAKEVEN_CONFIG", help="The configuration file."),
]


def load_or_fail(path: Path) -> Settings:
    """The settings, or every fault of the file on stderr and status 1."""
    _refuse_remote()
    try:
        return load(path)
    except ConfigError as error:
        fail("\n".join((*error.faults, *_elsewhere(path))))


def _refuse_remote() -> None:
    """What is meant for a gateway elsewhere is never done here instead."""
    if (url := gateway_url()) is not None:
        fail(f"this command works where the gateway runs, not on {url}: leave out --gateway "
             "and BREAKEVEN_GATEWAY")  # fmt: skip


def _elsewhere(path: Path) -> list[str]:
    """Where `make run` and `make demo` left theirs, when none is given and none is here."""
    made = [Path(Settings().state_dir) / name for name in ("up.yaml", "demo.yaml")]
    try:
        path.stat()
    except FileNotFoundError:
        return [
            f"there is one of an earlier start: --config {made_value}"
            for made_value in made
            if made_value.exists()
        ]
    except OSError:  # in a folder that may not be read
        return []
    return []


def start_or_fail(path: Path) -> Settings:
    """The settings of a start: warnings are shown, an error ends it with the list of `check`."""
    _refuse_remote()
    examined = examine(path, at_us=Clock().wall_us(), environ=os.environ)
    if examined.settings is None:
        lines = (*examined.lines, *_elsewhere(path))
        fail(f"{path} cannot be used: {examined.count}\n" + "\n".join(lines))
    for line in examined.lines:
        if NOT_SET not in line:  # an error here, and told below
            typer.echo(line, err=True)
    if unset := [f"{path}: {line}" for line in _unset(examined.settings, os.environ)]:
        fail("\n".join(unset))
    return examined.settings


def _unset(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Keys that a start cannot do without. `check` only warns: it may run where no secret is."""
    alerts, replay = settings.alerts, settings.server.idempotency.replay
    kept = (("server", "idempotency", "replay", "key_env"), replay.key_env)
    asked: list[Callable[[], object]] = [
        partial(provider_keys, settings.providers, environ),
        *(partial(engine_key, pool.engine, name, environ) for name, pool in settings.pools.items()),
        partial(webhook, alerts, environ),
    ]
    if settings.opentelemetry.endpoint is not None:
        asked.append(partial(collector_headers, settings.opentelemetry, environ))
    if settings.peers.hosts:
        asked.append(partial(peers_secret, settings.peers, environ))
    for ask in asked:
        try:
            ask()
        except ConfigError as error:
            yield from error.faults
    for place, variable in needed_variables(settings):
        if place[0] in _ASKED:
            continue
        secret = environ.get(variable, "")
        if not secret.strip():
            yield f"{render(place)}: `{variable}` {NOT_SET}"
        elif (place, variable) == kept and len(secret) < SECRET_CHARACTERS:
            yield f"{render(place)}: `{variable}` must hold at least {SECRET_CHARACTERS} characters"


@contextmanager
def ledger_engine(settings: Settings) -> Iterator[Engine]:
    """The ledger for writing, its schema brought up first."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        settings.state.mkdir(parents=True, exist_ok=True)
        migrate(url)
        yield from _dispose_after(make_engine(url))


@contextmanager
def ledger_reader(settings: Settings) -> Iterator[Engine]:
    """The ledger for reading; a missing SQLite file is said so."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        place = make_url(url)
        if place.get_backend_name() == "sqlite" and not Path(place.database or "").exists():
            fail(f"there is no ledger at {place.database}; `breakeven serve` makes it")
        yield from _dispose_after(open_readonly(url))


@contextmanager
def failing_plainly(settings: Settings) -> Iterator[None]:
    """What the state directory or the ledger refuses in the block is one line and status 1."""
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
