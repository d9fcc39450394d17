"""Command `breakeven doctor`: problems of a machine with their fixes; changes nothing.

The exit status is 1 for an error, and for a warning with `--strict`.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.config import Config
from gateway.cli.output import AsJson, Strict, emit
from gateway.clock import Clock
from gateway.config.examination import examine
from gateway.config.settings import Settings
from gateway.diagnosis.books import look_at_books
from gateway.diagnosis.engines import look_at_engines
from gateway.diagnosis.machine import look_at_machine
from gateway.diagnosis.network import look_at_network, places_of
from gateway.diagnosis.observation import DoctorFinding, DoctorVerdict, failed, fine, warned
from gateway.diagnosis.state import look_at_state

if TYPE_CHECKING:  # Rich is imported only for output
    from rich.console import Console

_STYLES = {
    DoctorVerdict.OK: "green",
    DoctorVerdict.NOTE: "cyan",
    DoctorVerdict.WARNING: "yellow",
    DoctorVerdict.ERROR: "bold red",
}
Offline = Annotated[
    bool, typer.Option("--offline", help="Connect to no provider, engine or collector.")
]


def doctor(
    config: Config = Path("breakeven.yaml"),
    offline: Offline = False,
    strict: Strict = False,
    as_json: AsJson = False,
) -> None:
    """Check machine, state, ledger, engines and network. Changes nothing."""
    found = list(_look(config, offline=offline))
    document = [finding._asdict() for finding in found]
    emit(document, as_json=as_json, show=lambda out: _draw(out, found))
    worst = {finding.verdict for finding in found}
    if DoctorVerdict.ERROR in worst or (strict and DoctorVerdict.WARNING in worst):
        raise typer.Exit(1)


def _look(config: Path, *, offline: bool) -> Iterator[DoctorFinding]:
    """Yield the findings; only those of the machine if the configuration is unreadable."""
    examined = examine(config, at_us=Clock().wall_us(), environ=os.environ, asks_engines=False)
    settings = examined.settings
    if settings is None:
        yield failed("configuration", f"{config}: {examined.count}", "run `breakeven check`")
        usual = Settings().server
        yield from look_at_machine(usual.max_in_flight, usual.workers)
        return
    if examined.faults:
        yield warned("configuration", f"{config}: {examined.count}", "run `breakeven check`")
    else:
        yield fine("configuration", f"{config} is valid")
    yield from look_at_machine(settings.server.max_in_flight, settings.server.workers)
    yield from look_at_state(settings)
    yield from look_at_books(settings, os.environ)
    yield from look_at_engines(settings)
    if not offline:
        yield from asyncio.run(look_at_network(list(places_of(settings, os.environ))))


def _draw(out: "Console", found: list[DoctorFinding]) -> None:
    from rich.text import Text  # noqa: PLC0415  (as above)

    for finding in found:
        style = _STYLES[finding.verdict]
        line = Text.assemble(
            (f"{finding.verdict:<8}", style), (f"{finding.subject}: ", "bold"), finding.words
        )
        out.print(line)
        if finding.fix:
            out.print(Text(f"{'':8}-> {finding.fix}"))
    counts = [
        f"{count} {verdict}{'' if count == 1 else 's'}"
        for verdict in (DoctorVerdict.ERROR, DoctorVerdict.WARNING)
        if (count := sum(finding.verdict is verdict for finding in found))
    ]
    out.print("; ".join(counts) or "nothing stands in the way")
