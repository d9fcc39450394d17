"""Command `breakeven check`: all faults of a configuration file, without a start.

Faults go to stderr by line, like a compiler's; with `--json` they are data on stdout. The exit
status is 1 for an error, and for a warning with `--strict`.
"""

import os
from pathlib import Path
from typing import Any

import typer

from gateway.cli.config import Config
from gateway.cli.output import AsJson, Strict, emit, fail
from gateway.clock import Clock
from gateway.config.examination import examine
from gateway.config.settings import ConfigReport, Settings, version


def check(
    config: Config = Path("breakeven.yaml"), strict: Strict = False, as_json: AsJson = False
) -> None:
    """List all faults of a configuration file. Starts nothing."""
    examined = examine(config, at_us=Clock().wall_us(), environ=os.environ, asks_engines=True)
    settings = examined.settings
    passes = settings is not None and not (strict and examined.faults)
    if as_json:
        emit(_document(examined), as_json=True, show=lambda _: None)
        raise typer.Exit(0 if passes else 1)
    if settings is None or not passes:
        verdict = "cannot be used" if settings is None else "does not pass --strict"
        fail(f"{config} {verdict}: {examined.count}\n" + "\n".join(examined.lines))
    for line in (*examined.lines, *(f"{config}: note: {note}" for note in examined.notes)):
        typer.echo(line, err=True)
    emit(None, as_json=False, show=lambda out: out.print(_summary(examined.name, settings)))


def _document(examined: ConfigReport) -> dict[str, Any]:
    settings = examined.settings
    document: dict[str, Any] = {
        "config": examined.name,
        "valid": settings is not None,
        "faults": [fault.document() for fault in examined.faults],
        "notes": list(examined.notes),
    }
    if settings is not None:
        document |= {
            "version": version(settings),
            "models": sorted(settings.models),
            "pools": sorted(settings.pools),
            "providers": sorted(settings.providers),
            "policies": [rule.name for rule in settings.policies],
        }
    return document


def _summary(name: str, settings: Settings) -> str:
    counts = (
        (len(settings.models), "model", "models"),
        (len(settings.pools), "pool", "pools"),
        (len(settings.providers), "provider", "providers"),
        (len(settings.policies), "policy", "policies"),
    )
    parts = ", ".join(
        f"{number} {single if number == 1 else many}" for number, single, many in counts
    )
    return f"{name} is valid (version {version(settings)}): {parts}."
