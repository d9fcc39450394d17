"""Commands `breakeven invoices`: bills of providers and clouds, compared with the ledger."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.console import Console

from gateway.cli.admin_backend import Why, open_writing_backend, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, fail, moment, print_result, table
from gateway.control.admin import entries as entered
from gateway.control.admin import invoices as verbs
from gateway.control.admin.verb import NoInput
from ledger.invoices.files import FORMATS
from ledger.money import format_usd

PLACES = 4
By = Annotated[
    str | None, typer.Option(help="Name recorded as the author; default: the user's name.")
]
Number = Annotated[int, typer.Argument(help="Number of the invoice, as `invoices list` shows it.")]


def import_file(
    file: Annotated[Path, typer.Argument(help="File of the invoice.")],
    provider: Annotated[str | None, typer.Option(help="The provider that sent it.")] = None,
    pool: Annotated[str | None, typer.Option(help="The pool whose GPUs it is for.")] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help=f"{', '.join(FORMATS)}; default: detected from the file."),
    ] = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Import an invoice: OpenAI costs (JSON), a CSV by day, or a FOCUS file."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        fail(f"the invoice {file} is not UTF-8: save it as `CSV UTF-8`")
    except OSError as error:
        fail(f"cannot read the invoice {file}: {error.strerror}")
    said = run_change(
        config,
        by,
        verbs.invoices_import,
        verbs.ImportInvoiceInput(text, file.name, provider, pool, kind),
    )
    number = said["invoice"]
    words = (
        f"Invoice {number}: {said['lines']} lines, {format_usd(said['total_pusd'])}. "
        f"See what differs: breakeven invoices show {number}"
    )
    print_result(said, words, as_json=as_json)


def list_invoices(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List all imported invoices, latest first."""
    found = run_query(config, verbs.invoices_list, NoInput())["data"]
    columns = ("=invoice", "from", "file", "=days", ">total", "imported by", "posted by")
    cells = [
        [
            str(finding["id"]),
            finding["party"],
            finding["name"],
            _days(finding),
            format_usd(finding["total_pusd"]),
            f"{finding['imported_by']}, {moment(finding['imported_us'])}",
            "-"
            if finding["posted_us"] is None
            else f"{finding['posted_by']}, {moment(finding['posted_us'])}",
        ]
        for finding in found
    ]
    emit(found, as_json=as_json, show=lambda out: out.print(table("Invoices", columns, cells)))


def show(
    number: Number,
    by: Annotated[str, typer.Option(help="Compare by day, model or project.")] = "day",
    project: Annotated[
        list[str] | None,
        typer.Option(help="PROJECT=TEAM: team of a project on the invoice; may be repeated."),
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show where an invoice differs from the ledger, and why."""
    teams = dict(_pair(name) for name in project or ())
    chosen: verbs.By | None = next(
        (argument for argument in get_args(verbs.By) if argument == by), None
    )
    if chosen is None:
        fail(f"`--by {by}`: day, {' or '.join(verbs.KEYS)}")
    found = run_query(
        config, verbs.invoices_compare, verbs.CompareInvoiceInput(number, chosen, teams)
    )
    emit(found, as_json=as_json, show=lambda out: _show(out, found, by))


def project(
    provider: Annotated[str, typer.Argument(help="Provider of the configuration.")],
    name: Annotated[str, typer.Argument(help="Project, as its bills name it.")],
    team: Annotated[
        str | None, typer.Argument(help="Team of the project; without it the project has no team.")
    ] = None,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Assign a project on a provider's bills to a team, for all comparisons."""
    said = run_change(
        config, by, entered.projects_map, entered.MapProjectInput(provider, name, team, note)
    )
    print_result(
        said,
        f"{said['name']}: {'nobody' if team is None else team}, by {said['by']}.",
        as_json=as_json,
    )


def post(
    number: Number,
    adds: Annotated[
        bool,
        typer.Option(
            "--adds", help="Post it in addition to earlier invoices, for example a credit note."
        ),
    ] = False,
    replaces: Annotated[
        bool,
        typer.Option("--replaces", help="Post it in place of an invoice that was posted before."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Approve an invoice: post adjustments, one per day. Edits nothing."""
    if adds and replaces:
        fail("use --adds or --replaces, not both")
    wanted = verbs.PostInvoiceInput(number, "adds" if adds else "replaces" if replaces else "whole")
    with open_writing_backend(config, by) as desk:
        seen = desk.do(
            verbs.invoices_post, verbs.PostInvoiceInput(number, wanted.manner, look=True)
        )
        planned, invoice = seen["posted_pusd"], seen["of"]
        note = seen["zone"]["note"]
        if not yes and note is not None:
            typer.echo(note, err=True)
        if seen.get("dropped") and invoice["posted_us"] is None:
            typer.echo(seen["dropped"], err=True)
        if not yes and invoice["posted_us"] is None:
            change = f"{format_usd(sum(planned.values()))} on {_count(planned)}"
            typer.confirm(
                f"Invoice {number} of {invoice['party']} is {format_usd(invoice['total_pusd'])}; "
                f"posting it changes what is owed by {change}. Post it?",
                abort=True,
            )
        said = desk.do(verbs.invoices_post, wanted)
    posted = said["posted_pusd"]
    words = (
        f"Adjusted: {_count(posted)}, by {format_usd(sum(posted.values()))} in all."
        if posted
        else "The books agree with it: nothing was to be adjusted."
    )
    print_result(said, words, as_json=as_json)


def _show(out: Console, found: dict[str, Any], by: str) -> None:
    invoice, rows = found["invoice"], found["rows"]
    columns = [by if by != "day" else "model", ">invoiced", ">booked", ">difference", ">attempts"]
    columns = ["=day", *columns, "may be explained by"] if by == "day" else columns
    cells = []
    for row in rows:
        sums = (row["invoiced_pusd"], row["booked_pusd"], row["difference_pusd"])
        amounts = [format_usd(sum_, PLACES) for sum_ in sums]
        line = [row["key"] or "-", *amounts, f"{row['attempts']:,}"]
        why = ", ".join(row["causes"]) or "-"
        cells.append([row["day"], *line, why] if by == "day" else line)
    booked = sum(row["booked_pusd"] for row in rows)
    number, total_pusd = invoice["id"], invoice["total_pusd"]
    out.print(table(f"Invoice {number} of {invoice['party']}, {_days(invoice)}", columns, cells))
    difference = total_pusd - booked
    out.print(
        f"\nInvoiced {format_usd(total_pusd)}, booked {format_usd(booked)}, "
        f"difference {format_usd(difference)}.", markup=False,
    )  # fmt: skip
    if found["zone"]["note"] is not None:
        out.print(found["zone"]["note"], markup=False)
    if found["advice"] is not None and difference:
        out.print(f"To adjust the ledger to this invoice: {found['advice']}", markup=False)


def _count(days: Collection[str]) -> str:
    return "1 day" if len(days) == 1 else f"{len(days)} days"


def _pair(word: str) -> tuple[str, str]:
    project, equals, team = word.partition("=")
    if not (project and equals and team):
        fail(f"`--project {word}`: write PROJECT=TEAM")
    return project, team


def _days(invoice: dict[str, Any]) -> str:
    return f"{invoice['first_day']} to {invoice['last_day']}"
