"""What every command that reads the configuration or the ledger does first."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine, make_url

from gateway.admin.elsewhere import gateway_url
from gateway.cli.output import fail
from gateway.clock import Clock
from gateway.config.credentials import (
    collector_headers,
    engine_key,
    peers_secret,
    provider_keys,
    webhook,
)
from gateway.config.settings import Settings, examine, load
from gateway.config.statedir import plainly
from gateway.errors import ConfigError
from gateway.host.prepare import ledger_url
from gateway.idempotency.keptanswers import SECRET_CHARACTERS
from ledger.database import DatabaseError, make_engine, migrate, open_readonly

Config = Annotated[
    Path,
    typer.Option("--config", "-c", envvar="BREAKEVEN_CONFIG", help="The configuration file."),
]


def load_or_fail(path: Path) -> Settings:
    """The settings, or every fault of the file on stderr and status 1."""
    _here_alone()
    try:
        return load(path)
    except ConfigError as error:
        fail("\n".join((*error.faults, *_elsewhere(path))))


def _here_alone() -> None:
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
        return [f"there is one of an earlier start: --config {one}" for one in made if one.exists()]
    except OSError:  # in a folder that may not be read
        return []
    return []


def start_or_fail(path: Path) -> Settings:
    """The settings of a start: warnings are shown, an error ends it with the list of `check`."""
    _here_alone()
    examined = examine(path, at_us=Clock().wall_us())
    if examined.settings is None:
        lines = (*examined.lines, *_elsewhere(path))
        fail(f"{path} cannot be used: {examined.count}\n" + "\n".join(lines))
    for line in examined.lines:
        typer.echo(line, err=True)
    if unset := [f"{path}: {line}" for line in _unset(examined.settings, os.environ)]:
        fail("\n".join(unset))
    return examined.settings


def _unset(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Keys that a start cannot do without. `check` needs none: it may run where no secret is."""
    pools = [
        (f"pools.{name}.engine", one.engine.api_key_env) for name, one in settings.pools.items()
    ]
    alerts, shown, replay = settings.alerts, settings.dashboard, settings.server.idempotency.replay
    kept = ("server.idempotency.replay.key_env", replay.key_env if replay.enabled else None)
    sampled = [
        (f"pools.{name}.sampling.key_env", one.sampling.key_env)
        for name, one in settings.pools.items()
        if one.sampling is not None
    ]
    named = [
        kept,
        *sampled,
        *((f"{place}.api_key_env", variable) for place, variable in pools),
        ("alerts.webhook_env", alerts.webhook_env),
        ("alerts.secret_env", alerts.secret_env),
        ("ledger.url_env", None if settings.ledger.url else settings.ledger.url_env),
        ("dashboard.reader_url_env", shown.reader_url_env if shown.enabled else None),
    ]
    asked: list[Callable[[], object]] = [
        partial(provider_keys, settings.providers, environ),
        *(partial(engine_key, one.engine, name, environ) for name, one in settings.pools.items()),
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
    for place, variable in named:
        if variable is None:
            continue
        secret = environ.get(variable, "")
        if not secret.strip():
            yield f"{place}: `{variable}` is not set in the environment"
        elif (place, variable) == kept and len(secret) < SECRET_CHARACTERS:
            yield f"{place}: `{variable}` must hold at least {SECRET_CHARACTERS} characters"


@contextmanager
def ledger_engine(settings: Settings) -> Iterator[Engine]:
    """The ledger for writing, its schema brought up first."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        settings.state.mkdir(parents=True, exist_ok=True)
        migrate(url)
        yield from _until_done(make_engine(url))


@contextmanager
def ledger_reader(settings: Settings) -> Iterator[Engine]:
    """The ledger for reading; a missing SQLite file is said so."""
    with failing_plainly(settings):
        url = ledger_url(settings, os.environ)
        place = make_url(url)
        if place.get_backend_name() == "sqlite" and not Path(place.database or "").exists():
            fail(f"there is no ledger at {place.database}; `breakeven serve` makes it")
        yield from _until_done(open_readonly(url))


@contextmanager
def failing_plainly(settings: Settings) -> Iterator[None]:
    """What the state directory or the ledger refuses in the block is one line and status 1."""
    try:
        with plainly(settings):
            yield
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))


def _until_done(engine: Engine) -> Iterator[Engine]:
    try:
        yield engine
    finally:
        engine.dispose()
