"""Command `breakeven ledger export`: the ledger as a file for finance, streamed to disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import Connection

from gateway.cli.config import Config, ledger_reader, load_or_fail
from gateway.cli.export_formats import (
    EXPORT_FORMATS,
    ExportFormat,
    FormatTraits,
    describe_formats,
)
from gateway.cli.output import AsJson, emit, fail
from gateway.clock import Clock
from gateway.newfile import new_file
from ledger.database import snapshot
from ledger.exports.table import ExportError, Reached, Row, moment
from ledger.instants import InstantError, day_of, instant_us
from ledger.money import format_usd, usd_exact
from ledger.reporting_zone import ReportingZone, reporting_zone
from ledger.reports.charges import unpriced
from ledger.seals.retirements import retired_until_us
from ledger.spans import DAY_US, HOUR_US, Scope, held_scope

STDOUT = Path("-")
_DAY = len("2026-11-01")


class ExportPeriod(StrEnum):
    HOUR = "hour"
    DAY = "day"


@dataclass(slots=True)
class ExportCounts:
    """Number of exported rows, and the sum of one money column."""

    place: int
    rows: int = 0
    pusd: int = 0

    def count(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.rows += 1
            amount = row[self.place]
            self.pusd += amount if isinstance(amount, int) else 0
            yield row


def export(
    since: Annotated[
        str,
        typer.Option(
            "--from",
            help="Start: 2026-11-01, a day of `timezone`, or 2026-11-01T06:00 in UTC.",
        ),
    ],
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", help=describe_formats()),
    ] = ExportFormat.CSV,
    until: Annotated[
        str | None, typer.Option("--to", help="End, not included; default: the start of this hour.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    out: Annotated[Path, typer.Option(help="File to write; - writes to standard output.")] = STDOUT,
    per: Annotated[
        ExportPeriod, typer.Option(help="Charge period of a FOCUS row.")
    ] = ExportPeriod.DAY,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Export all attempts, or all costs (API charges, GPU hours), to a file.

    Money is exact decimal text in USD; texts that a spreadsheet would execute are escaped.
    """
    traits = EXPORT_FORMATS[format_]
    settings = load_or_fail(config)
    with ledger_reader(settings) as ledger, ledger.connect() as connection:
        zone = reporting_zone(connection)
    scope = _scope(since, until, team, zone)
    if traits.needs_full_hours:
        _check_full_hours(scope, format_, zone)
    period_us = HOUR_US if per is ExportPeriod.HOUR else DAY_US
    if out == STDOUT and not traits.is_text and sys.stdout.isatty():
        fail(f"--out: {format_.value.capitalize()} is not text; name a file")
    if out == STDOUT and as_json:
        fail("--json: needs --out FILE, because the rows go to the standard output")
    tally = ExportCounts(traits.money_place)
    with ledger_reader(settings) as ledger, snapshot(ledger) as connection:
        scope = held_scope(connection, scope, zone.day)
        if scope.start_us < (gone_us := retired_until_us(connection)):
            fail(f"--from: attempts before {moment(gone_us)} were retired; begin there")
        try:
            with _target(out, replace=force) as file, _progress(scope, tally) as reached:
                rows = traits.rows(connection, scope, period_us, reached)
                traits.write(file, traits.columns, tally.count(rows))
        except FileExistsError:
            fail(f"--out: {out} exists; --force replaces it")
        except BrokenPipeError:
            _hang_up()
        except (ExportError, OSError) as error:
            fail(f"--out: {error}")
        notes = [*_notes(connection, scope, traits), *_empty_notes(tally, scope)]
    said = Console(emoji=False, stderr=True, highlight=False, soft_wrap=True)
    for note in notes:
        said.print(f"breakeven: {note}", markup=False)
    if out == STDOUT:
        return
    result = {"file": str(out), "rows": tally.rows, "usd": usd_exact(tally.pusd), "notes": notes}
    line = f"{out}: {tally.rows:,} rows, {format_usd(tally.pusd)} in {traits.money}"
    emit(result, as_json=as_json, show=lambda told: told.print(line, markup=False))


def _empty_notes(tally: ExportCounts, scope: Scope) -> Iterator[str]:
    if not tally.rows:
        team = "" if scope.team is None else f"of team `{scope.team}` "
        yield (
            f"0 rows: the ledger has no attempt {team}from {moment(scope.start_us)} to "
            f"{moment(scope.end_us)} UTC; --to names a later end"
        )


def _hang_up() -> NoReturn:
    """Exit quietly after the reader of stdout has closed the pipe, as `head` does."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards buffered output
    raise typer.Exit(1)


@contextmanager
def _target(out: Path, *, replace: bool) -> Iterator[BinaryIO]:
    if out == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with new_file(out, replace=replace) as file:
        yield file


@contextmanager
def _progress(scope: Scope, tally: ExportCounts) -> Iterator[Reached]:
    """Show a progress bar over the exported time, on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    columns = (
        TextColumn("exported"),
        BarColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with ExitStack() as stack:
        bar = stack.enter_context(
            Progress(*columns, console=Console(emoji=False, stderr=True), transient=True)
        )
        task = bar.add_task("", total=scope.end_us - scope.start_us)

        def reached(at_us: int) -> None:
            rows = f"{tally.rows:,} rows"
            bar.update(task, completed=at_us - scope.start_us, description=rows)

        yield reached


def _scope(since: str, until: str | None, team: str | None, zone: ReportingZone) -> Scope:
    now_us = Clock().wall_us()
    start_us = _moment("--from", since, zone)
    end_us = now_us - now_us % HOUR_US if until is None else _moment("--to", until, zone)
    if end_us <= start_us:
        fail(f"--to: {moment(end_us, digits=False)} is not after --from")
    return Scope(start_us, end_us, team)


def _check_full_hours(scope: Scope, format_: ExportFormat, zone: ReportingZone) -> None:
    """Check that the period has full hours; a local day has the hours that begin in it."""
    for name, at_us in (("--from", scope.start_us), ("--to", scope.end_us)):
        if at_us % HOUR_US and zone.day(at_us)[0] != at_us:
            file = f"{format_.value.upper()} file"
            fail(f"{name}: GPUs are billed by the hour, so a {file} needs a full one")


def _moment(option: str, text: str, zone: ReportingZone) -> int:
    try:
        at_us = instant_us(text)
        return zone.midnight_us(day_of(at_us)) if len(text.strip()) == _DAY else at_us
    except InstantError as error:
        fail(f"{option}: {error}")


def _notes(connection: Connection, scope: Scope, traits: FormatTraits) -> Iterator[str]:
    """Yield notes on what the file does not show."""
    if count := unpriced(connection, scope):
        yield f"{count:,} attempts have no price and {traits.unpriced}"
    yield from traits.notes(connection, scope)
