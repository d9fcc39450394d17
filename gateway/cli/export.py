"""`breakeven ledger export`: the books as a file that finance can open, row by row to the disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, BinaryIO, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import Connection

from gateway.cli.config import Config, ledger_reader, load_or_fail
from gateway.cli.output import AsJson, emit, fail
from gateway.clock import Clock
from gateway.newfile import new_file
from ledger.database import snapshot
from ledger.exports import attempts as exports_attempts
from ledger.exports import focus_columns as exports_focus_columns
from ledger.exports.attempts import attempt_rows
from ledger.exports.delimited import csv_lines
from ledger.exports.focus import focus_rows
from ledger.exports.parquet import write_parquet
from ledger.exports.table import ExportColumn, ExportError, Reached, Row, moment
from ledger.fleet.hourshares import closed_until_us
from ledger.instants import InstantError, instant_us
from ledger.money import format_usd, usd_exact
from ledger.reports.charges import unpriced
from ledger.seals.retirements import retired_until_us
from ledger.spans import DAY_US, HOUR_US, Scope, held_scope

STDOUT = Path("-")


class ExportFormat(StrEnum):
    CSV = "csv"
    PARQUET = "parquet"
    FOCUS = "focus"


class ExportPeriod(StrEnum):
    HOUR = "hour"
    DAY = "day"


@dataclass(slots=True)
class ExportCounts:
    """What went by: rows, and the sum of one column of money."""

    place: int
    rows: int = 0
    pusd: int = 0

    def count(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.rows += 1
            amount = row[self.place]
            self.pusd += amount if isinstance(amount, int) else 0
            yield row


@dataclass(frozen=True, slots=True)
class ExportOptions:
    format: ExportFormat
    period_us: int
    scope: Scope

    @property
    def columns(self) -> tuple[ExportColumn, ...]:
        focus = self.format is ExportFormat.FOCUS
        return exports_focus_columns.COLUMNS if focus else exports_attempts.COLUMNS

    @property
    def money(self) -> str:
        return "BilledCost" if self.format is ExportFormat.FOCUS else "cost_usd"

    def rows(self, connection: Connection, reached: Reached) -> Iterator[Row]:
        if self.format is ExportFormat.FOCUS:
            return focus_rows(connection, self.scope, reached, period_us=self.period_us)
        return attempt_rows(connection, self.scope, reached)


def export(
    since: Annotated[
        str, typer.Option("--from", help="First moment, in UTC: 2026-11-01 or 2026-11-01T06:00.")
    ],
    format_: Annotated[
        ExportFormat,
        typer.Option("--format", help="csv, parquet: every attempt; focus: FOCUS 1.2."),
    ] = ExportFormat.CSV,
    until: Annotated[
        str | None, typer.Option("--to", help="End, not included; default: the last full hour.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    out: Annotated[Path, typer.Option(help="File to write; - is the standard output.")] = STDOUT,
    per: Annotated[
        ExportPeriod, typer.Option(help="Charge period of a FOCUS row.")
    ] = ExportPeriod.DAY,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Attempts as CSV or Parquet, or all costs (API charges, GPU hours) as FOCUS 1.2.

    Money is decimal text in USD, exact; texts that a spreadsheet would run are defused.
    """
    scope = _scope(since, until, team, full_hours=format_ is ExportFormat.FOCUS)
    wanted = ExportOptions(format_, HOUR_US if per is ExportPeriod.HOUR else DAY_US, scope)
    if out == STDOUT and format_ is ExportFormat.PARQUET and sys.stdout.isatty():
        fail("--out: Parquet is no text; name a file")
    if out == STDOUT and as_json:
        fail("--json: needs --out FILE, because the rows go to the standard output")
    tally = ExportCounts([column.name for column in wanted.columns].index(wanted.money))
    settings = load_or_fail(config)
    with ledger_reader(settings) as ledger, snapshot(ledger) as connection:
        wanted = replace(wanted, scope=held_scope(connection, scope))
        if wanted.scope.start_us < (gone_us := retired_until_us(connection)):
            fail(f"--from: attempts before {moment(gone_us)} were retired; begin there")
        try:
            with _target(out, replace=force) as file, _progress(wanted.scope, tally) as reached:
                _write(file, wanted, tally.count(wanted.rows(connection, reached)))
        except FileExistsError:
            fail(f"--out: {out} exists; --force replaces it")
        except BrokenPipeError:
            _hang_up()
        except (ExportError, OSError) as error:
            fail(f"--out: {error}")
        notes = list(_notes(connection, wanted))
    said = Console(stderr=True, highlight=False, soft_wrap=True)
    for note in notes:
        said.print(f"breakeven: {note}", markup=False)
    if out == STDOUT:
        return
    result = {"file": str(out), "rows": tally.rows, "usd": usd_exact(tally.pusd), "notes": notes}
    line = f"{out}: {tally.rows:,} rows, {format_usd(tally.pusd)} in {wanted.money}"
    emit(result, as_json=as_json, show=lambda told: told.print(line, markup=False))


def _hang_up() -> NoReturn:
    """Who read the standard output has gone, as `head` does: nothing to say, and nobody to hear."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered goes nowhere
    raise typer.Exit(1)


def _write(file: BinaryIO, wanted: ExportOptions, rows: Iterator[Row]) -> None:
    if wanted.format is ExportFormat.PARQUET:
        write_parquet(file, wanted.columns, rows)
        return
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    text.writelines(csv_lines(wanted.columns, rows))
    text.detach()  # flushes, and leaves the file to its owner


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
    """A bar over the time that is exported, where a person looks at it."""
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
        bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
        task = bar.add_task("", total=scope.end_us - scope.start_us)

        def reached(at_us: int) -> None:
            rows = f"{tally.rows:,} rows"
            bar.update(task, completed=at_us - scope.start_us, description=rows)

        yield reached


def _scope(since: str, until: str | None, team: str | None, *, full_hours: bool) -> Scope:
    now_us = Clock().wall_us()
    start_us = _moment("--from", since)
    end_us = now_us - now_us % HOUR_US if until is None else _moment("--to", until)
    if end_us <= start_us:
        fail(f"--to: {moment(end_us, digits=False)} is not after --from")
    for name, at_us in (("--from", start_us), ("--to", end_us)):
        if full_hours and at_us % HOUR_US:
            fail(f"{name}: GPUs are billed by the hour, so a FOCUS file needs a full one")
    return Scope(start_us, end_us, team)


def _moment(option: str, text: str) -> int:
    try:
        return instant_us(text)
    except InstantError as error:
        fail(f"{option}: {error}")


def _notes(connection: Connection, wanted: ExportOptions) -> Iterator[str]:
    """What a reader of the file must know and cannot see in it."""
    scope, focus = wanted.scope, wanted.format is ExportFormat.FOCUS
    if count := unpriced(connection, scope):
        where = "are not in this file" if focus else "have an empty cost"
        yield f"{count:,} attempts have no price and {where}"
    if not focus:
        return
    for pool, until_us in closed_until_us(connection).items():
        if until_us is None:
            yield f"pool {pool}: no hour is closed, so none is in this file"
        elif until_us < scope.end_us:
            yield f"pool {pool}: hours from {moment(until_us, digits=False)} on are not closed"
