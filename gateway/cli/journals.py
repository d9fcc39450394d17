"""Commands `breakeven ledger findings | acknowledge | salvage | drain` for journals."""

import asyncio
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from sqlalchemy import Engine

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config, ledger_engine, load_known_or_fail
from gateway.cli.output import AsJson, emit, fail, moment, print_result, table
from gateway.clock import Clock
from gateway.config.statedir import hold
from gateway.control.admin import journal_findings as verbs
from gateway.control.os_user import os_user
from gateway.errors import ConfigError
from ledger import hosts
from ledger.journals.homes import FOLDER, list_journals
from ledger.salvage import SalvageSource, apply_remains, find_remains
from ledger.writer import LedgerWriter, WriterRunningError

if TYPE_CHECKING:
    from gateway.config.settings import Settings

JOURNALS = "journal"  # in the state directory


def findings(
    journal: Annotated[str | None, typer.Option(help="Only this journal.")] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """List gaps in the ledger from damaged journals, until acknowledged."""
    found = run_query(config, verbs.findings_list, verbs.ListFindingsInput(journal))["data"]
    cells = [[each["place"], moment(each["at_us"]), each["host"] or "-", each["text"]]
             for each in found]  # fmt: skip
    columns = ("=place", "=found", "host", "what")
    emit(found, as_json=as_json, show=lambda out: out.print(table("Findings", columns, cells)))


def acknowledge(
    places: Annotated[
        list[str] | None,
        typer.Argument(help="Places, as `ledger findings` and `ledger verify` show them."),
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="All open findings.")] = False,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Acknowledge findings in journals; `ledger changes` shows who did."""
    given = verbs.AcknowledgeInput(places or [], whole, note)
    said = run_change(config, by, verbs.findings_acknowledge, given)
    count = len(said["acknowledged"])
    counted = "1 finding" if count == 1 else f"{count} findings"
    words = f"{counted} acknowledged by {said['by']}." if count else "No finding is open."
    print_result(said, words, as_json=as_json)


def salvage(
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Write the records to the ledger; default: only show them."),
    ] = False,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show what damaged journals still hold, and book it with --apply.

    Includes the quarantine. Records with one wrong bit are repaired by their checksums. Repeating
    the command adds nothing.
    """
    settings = load_known_or_fail(config)
    with ledger_engine(settings) as ledger:
        try:
            sources = find_remains(ledger, settings.state.resolve() / JOURNALS)
        except OSError as error:
            fail(f"{error.filename} cannot be read: {error.strerror}. Nothing was applied.")
        said: dict[str, object] = {"sources": [_source_document(each) for each in sources]}
        text = "Nothing was applied: `--apply` does."
        if apply:
            host, at_us = _host_name(ledger, settings), Clock().wall_us()
            who = by or os_user()
            done = apply_remains(ledger, host, sources, by=who, note=note, at_us=at_us)
            said |= {"applied": {"attempts": done.attempts, "settled": done.settled,
                                 "refusals": done.refusals}}  # fmt: skip
            text = (
                f"Added {done.attempts} attempts and {done.refusals} refusals, settled "
                f"{done.settled}."
            )
    emit(said, as_json=as_json, show=lambda out: _show_sources(out, sources, text))


def drain(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Book all journals of this host, before an earlier version is started.

    The host must be stopped. Exits with 1 while something is left.
    """
    settings = load_known_or_fail(config)
    try:
        held = hold(settings)
    except ConfigError as error:
        fail("\n".join(error.faults))
    journals = settings.state.resolve() / JOURNALS
    try:
        before = len(list_journals(journals))
        with ledger_engine(settings) as ledger:
            stalled = asyncio.run(_drain(ledger, settings, journals))
        left = [str(journal.home) for journal in list_journals(journals)]
        if not left:
            with suppress(OSError):  # missing, or left by a killed start
                (journals / FOLDER).rmdir()
    except (hosts.HostConflict, WriterRunningError, OSError) as error:
        fail(f"the journals cannot be drained: {error}")
    finally:
        held.release()
    if left:
        why = "" if stalled is None else f"\n{stalled}. Put that right, then drain again."
        fail("these journals are not completely in the ledger: " + ", ".join(left) + why)
    said = {"journals": before, "left": 0}
    print_result(said, f"{before} journals are in the books; none is left.", as_json=as_json)


async def _drain(ledger: Engine, settings: "Settings", journals: Path) -> str | None:
    """Run the ledger writer until it is done; return why a journal cannot be read on."""
    state = settings.state.resolve()
    writer = LedgerWriter(
        ledger, journals=journals, run_dir=state / "run", host=_host_name(ledger, settings)
    )
    stop = asyncio.Event()
    stop.set()  # ends when nothing changes any more
    await writer.run(stop)
    return writer.lag().stalled


def _host_name(ledger: Engine, settings: "Settings") -> str:
    return hosts.claim_name(ledger, hosts.claim_of(settings.state.resolve()), socket.gethostname())


def _source_document(source: SalvageSource) -> dict[str, object]:
    return {
        "source": source.name, "journal": source.journal, "new": len(source.new),
        "known": source.known, "repaired": source.repaired, "orphans": source.orphans,
        "retired": source.retired, "lost_bytes": source.lost_bytes,
    }  # fmt: skip


def _show_sources(out: Console, sources: Sequence[SalvageSource], text: str) -> None:
    cells = [
        [os.path.relpath(each.name) if "/" in each.name else each.name, str(len(each.new)),
         str(each.known), str(each.repaired), str(each.orphans + each.retired),
         f"{each.lost_bytes:,}"]
        for each in sources
    ]  # fmt: skip
    columns = ("=source", ">new records", ">in the books", ">put right", ">left out", ">lost bytes")
    out.print(table("What is left of damaged journals", columns, cells))
    out.print(text)
