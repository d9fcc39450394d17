"""Commands `breakeven ledger`: spend and its value, verification and seals."""

import os
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress, TaskID
from sqlalchemy.exc import DBAPIError

from gateway.cli.admin_backend import run_query
from gateway.cli.config import (
    Config,
    configured_reader,
    ledger_engine,
    ledger_reader,
    load_known_or_fail,
)
from gateway.cli.output import AsJson, console, emit, fail, moment, table
from gateway.cli.progress_bars import bars
from gateway.cli.report_tables import show_report
from gateway.clock import Clock
from gateway.config.ledger_address import ledger_url
from gateway.control.admin import books
from gateway.control.os_user import os_user
from ledger.attempt_flags import FLAGS
from ledger.budgets.open_claims import heal_windows
from ledger.database import URL_VARIABLE, DatabaseError, make_engine, migrate, schema_of, snapshot
from ledger.economics.cost import HOURS_OF_A_MONTH
from ledger.exports.verdict import verdict_csv
from ledger.fleet.scaling_retention import forget_scaling
from ledger.queries.reads import Scope
from ledger.reporting_zone import reporting_zone
from ledger.reports.month_outlook import month_outlook
from ledger.reports.report import report as report_of
from ledger.reports.verdict_read import MonthError, month_scope, read_verdict
from ledger.seals.compact import PostingCompactor
from ledger.seals.link_proof import SealMismatch
from ledger.seals.retire import LEAST_DAYS, AttemptRetirer, prospect
from ledger.seals.retire_hits import HitRetirer
from ledger.spans import DAY_US
from ledger.sums.rollups import RetiredError, Rollups
from ledger.verify.checks import CHECKS, Finding, VerifyResult
from ledger.verify.checks import verify as verify_books
from ledger.verify.heads import Heads, book_heads, heads_are_there, parse_heads
from ledger.verify.results import record_verification
from ledger.writing.lag import read_lag

if TYPE_CHECKING:
    from gateway.config.settings import Settings

BUSY_S = 0.1
SHORT = 60  # maximum characters of a value in a table


def report(
    days: Annotated[int, typer.Option(min=1, help="Number of days to report, up to now.")] = 30,
    month: Annotated[
        str | None, typer.Option(help="A calendar month of `timezone`: 2026-11.")
    ] = None,
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    csv: Annotated[
        Path | None, typer.Option(help="Write the verdict's options to this CSV file too.")
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show the verdict on own GPUs, spend by team and model, and API costs."""
    now_us = Clock().wall_us()
    settings = load_known_or_fail(config)
    with configured_reader(settings, config) as ledger, snapshot(ledger) as connection:
        zone, hours = reporting_zone(connection), HOURS_OF_A_MONTH
        scope = Scope.last(days * DAY_US, now_us, team)
        if month is not None:
            try:
                whole, hours = month_scope(zone, month, now_us)
            except MonthError as error:
                fail(f"--month: {error}")
            scope = replace(whole, team=team)
        found = report_of(connection, scope)
        judged = read_verdict(connection, scope, month_hours=hours)
        outlook = month_outlook(connection, now_us, zone, team)
    if csv is not None:
        csv.write_text(
            verdict_csv(judged.verdict, simulated=judged.simulated, even=judged.even),
            encoding="utf-8",
            newline="",
        )
    told, beside = judged.described(), judged.beside()
    said = {
        **asdict(found), "month": asdict(outlook), "books": told["books"],
        "verdict": told["verdict"], "break_even": beside["break_even"],
        "coverage": told["coverage"],
    }  # fmt: skip
    emit(
        said,
        as_json=as_json,
        show=lambda out: show_report(out, found, outlook, judged),
    )


def verify(
    config: Config = Path("breakeven.yaml"),
    seal: Annotated[
        str | None, typer.Option(help="Earlier output of `ledger seal` to compare with.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run all invariant checks over the ledger. Exits with 1 if one fails.

    The result is stored in the ledger for the dashboard, if the user may write.
    """
    noted = None if seal is None else _parse(seal)
    settings = load_known_or_fail(config)
    with ledger_reader(settings) as ledger, snapshot(ledger) as connection, bars() as bar:
        task = bar.add_task("verifies", total=len(CHECKS))
        result = verify_books(connection, partial(_advance_bar, bar, task))
        bar.update(task, completed=len(CHECKS))
        kept = noted is None or heads_are_there(connection, noted)
    found = [*result.findings, *_stalled(settings)]
    if not kept:
        lost = "the chain does not hold it: books are missing"
        found.append(Finding("seals_hold", f"seal {seal}", lost))
    result = replace(result, findings=tuple(found))
    _keep(ledger_url(settings, os.environ), result)
    emit(asdict(result), as_json=as_json, show=lambda out: _show_result(out, result))
    if result.findings:
        raise typer.Exit(1)


def _stalled(settings: "Settings") -> Iterator[Finding]:
    """Yield why a journal of this host cannot be read on: its rows are missing in the ledger.

    The writer notes it; no row shows it before the journal is given up.
    """
    lag = read_lag(settings.state.resolve() / "run")
    if lag is not None and lag.stalled:
        yield Finding("journals_are_whole", "this host", f"{lag.stalled}; rows behind it lack")


def _advance_bar(bar: Progress, task: TaskID, place: int, check: str) -> None:
    bar.update(task, completed=place, description=check.replace("_", " "))


def _keep(url: str, result: VerifyResult) -> None:
    """Store a result; skipped without write permission, and nothing is migrated."""
    engine = make_engine(url)
    try:
        record_verification(engine, result, actor=os_user(), at_us=Clock().wall_us())
    except DBAPIError:
        console(err=True).print(
            "The result was not stored for the dashboard: the ledger is read-only here."
        )
    finally:
        engine.dispose()


def seal(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Print the heads of all hash chains, for a later `verify --seal`."""
    with ledger_reader(load_known_or_fail(config)) as ledger, snapshot(ledger) as connection:
        sealed_us, word = book_heads(connection)
    said = {"seal": word, "sealed_us": sealed_us}
    emit(said, as_json=as_json, show=lambda out: out.print(word, soft_wrap=True, highlight=False))


def migrate_(as_json: AsJson = False) -> None:
    """Migrate the schema to this version, at BREAKEVEN_LEDGER_URL.

    Hosts migrate when they start, unless their database role may not.
    """
    url = os.environ.get(URL_VARIABLE)
    if not url:
        fail(f"set {URL_VARIABLE} to the address of the ledger's database")
    try:
        migrate(url)
    except DBAPIError as error:
        fail(f"the ledger cannot be migrated: {error.orig}")
    except DatabaseError as error:
        fail(f"{URL_VARIABLE}: {error}")
    words, revision = "the ledger's schema is this version's, or a later one's", schema_of(url)
    emit({"schema": revision}, as_json=as_json, show=lambda out: out.print(f"{words}: {revision}"))


def changes_(
    limit: Annotated[
        int,
        typer.Option(min=1, max=books.LISTED_MOST, help="Maximum number of rows, newest first."),
    ] = books.LISTED,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """List changes of contracts, prices, policies, budgets and keys.

    The list contains no secrets.
    """
    found = run_query(config, books.changes_list, books.LedgerChangesInput(limit))["data"]
    rows = [
        [
            str(change["number"]), moment(change["at_us"]), change["actor"] or "-",
            f"{change['register']} {change['row']}", change["event"],
            "; ".join(f"{n}: {_short(old)} -> {_short(new)}" for n, old, new in change["fields"]),
        ]
        for change in found
    ]  # fmt: skip
    columns = (">entry", "=entered", "by", "=what", "event", "from -> to")
    emit(found, as_json=as_json, show=lambda out: out.print(table("Changes", columns, rows)))


def rebuild(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Rebuild the hourly and daily sums from all attempts.

    Pages read single rows until it is done.
    """
    with ledger_engine(load_known_or_fail(config)) as ledger, bars() as bar:
        rollups, task = Rollups(ledger), bar.add_task("adds up", total=None)
        try:
            while (seq := rollups.rebuild(partial(_show_rebuild, bar, task))) is None:
                time.sleep(BUSY_S)  # the ledger writer is writing
        except RetiredError as error:
            fail(str(error))
        healed = heal_windows(ledger)
    said = {"attempts_to": seq, "windows_healed": healed}
    text = f"Added up: attempts 1 to {seq:,}."
    if healed:
        text += f" What is claimed of {healed:,} budget windows is counted anew."
    emit(said, as_json=as_json, show=lambda out: out.print(text))


def _show_rebuild(bar: Progress, task: TaskID, done: int, of: int) -> None:
    bar.update(
        task, completed=done, total=of, description="adds up" if done < of else "packs the days"
    )


def retire(
    days: Annotated[
        int, typer.Option(min=LEAST_DAYS, help="Retire attempts older than this many days.")
    ],
    entries_days: Annotated[
        int | None,
        typer.Option(
            min=LEAST_DAYS,
            help="Retire older postings (into balances by account and day) and refusals too.",
        ),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Retire them; default: only show what would be retired.")
    ] = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Delete old single attempts; their sums and proofs stay."""
    now_us = Clock().wall_us()
    before_us = now_us - days * DAY_US
    with ledger_engine(load_known_or_fail(config)) as ledger:
        if not apply:
            with ledger.connect() as connection:
                seen = prospect(connection, before_us=before_us)
            what = f"Would retire about {seen.attempts:,} attempts; then {seen.waits_for}."
            emit(asdict(seen), as_json=as_json, show=lambda out: out.print(what))
            return
        gone = hits_gone = entries = refusals = 0
        retirer, condenser = AttemptRetirer(ledger), PostingCompactor(ledger)
        hits = HitRetirer(ledger)
        try:
            with bars() as bar:
                task = bar.add_task("attempts", total=None)
                while not (step := retirer.step(before_us=before_us, at_us=now_us)).waits_for:
                    gone += step.attempts
                    bar.update(task, completed=gone)
                while not (hit := hits.step(before_us=before_us, at_us=now_us)).waits_for:
                    hits_gone += hit.hits
                while forget_scaling(ledger, before_us=before_us):
                    pass
                if entries_days is not None:
                    oldest_us = now_us - entries_days * DAY_US
                    task = bar.add_task("postings", total=None)
                    while not (
                        result := condenser.step(before_us=oldest_us, at_us=now_us)
                    ).waits_for:
                        entries, refusals = entries + result.postings, refusals + result.refusals
                        bar.update(task, completed=entries)
        except SealMismatch as error:
            fail(str(error))
    said: dict[str, object] = {"attempts": gone, "waits_for": step.waits_for}
    more = ""
    if hits_gone:
        said["cache_hits"] = hits_gone
        more = f" Retired {hits_gone:,} answers from the cache."
    if entries_days is not None:
        said |= {"postings": entries, "refusals": refusals}
        more += f" Condensed {entries:,} postings and {refusals:,} refusals."
    emit(said, as_json=as_json, show=lambda out: out.print(
        f"Retired {gone:,} attempts; then {step.waits_for}.{more}"))  # fmt: skip


def _parse(word: str) -> Heads:
    """Return the heads of the seals and, if given, of changes and annex."""
    try:
        return parse_heads(word)
    except ValueError as error:
        form = "use the text NUMBER:HASH[:NUMBER:HASH] that `ledger seal` printed"
        raise typer.BadParameter(f'{form}; of a file: --seal "$(cat FILE)"') from error


def _short(value: object) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."


def _show_result(out: Console, result: VerifyResult) -> None:
    for finding in result.findings:
        out.print(f"{finding.check}: {finding.subject}: {finding.message}", markup=False)
    checks = len(result.checks)
    state = f"{len(result.findings)} findings" if result.findings else "all hold"
    out.print(f"{checks} checks: {state}.")
    if result.disputed:
        out.print(
            f"{result.disputed:,} attempts are disputed: {FLAGS['disputed']}. "
            "`breakeven ledger report` lists them by target."
        )
