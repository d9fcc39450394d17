"""Settings of commands that start a host: shows warnings, exits on errors."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import typer

from gateway.cli.config import found_elsewhere, refuse_remote
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
from gateway.config.examination import examine
from gateway.config.faults import render
from gateway.config.settings import Settings
from gateway.errors import ConfigError
from gateway.request.idempotency.response_replay import SECRET_CHARACTERS

_ASKED = ("providers", "opentelemetry", "peers")  # their readers report what is missing


def start_or_fail(path: Path) -> Settings:
    """Return the settings; print warnings, or exit with the list of `check` on an error."""
    refuse_remote()
    examined = examine(path, at_us=Clock().wall_us(), environ=os.environ)
    if examined.settings is None:
        lines = (*examined.lines, *found_elsewhere(path))
        fail(f"{path} cannot be used: {examined.count}\n" + "\n".join(lines))
    for line in examined.lines:
        if NOT_SET not in line:  # an error here, reported below
            typer.echo(line, err=True)
    if unset := [f"{path}: {line}" for line in _unset(examined.settings, os.environ)]:
        fail("\n".join(unset))
    return examined.settings


def _unset(settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield unset keys that a start needs; `check` only warns, because it may run elsewhere."""
    replay = settings.server.idempotency.replay
    kept = (("server", "idempotency", "replay", "key_env"), replay.key_env)
    asked: list[Callable[[], object]] = [
        partial(provider_keys, settings.providers, environ),
        *(partial(engine_key, pool.engine, name, environ) for name, pool in settings.pools.items()),
        partial(webhook, settings.alerts, "alerts", environ),
        partial(webhook, settings.events, "events", environ),
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
