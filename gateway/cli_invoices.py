"""`breakeven invoices`: what providers and clouds billed, beside what the books say."""

import getpass
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_output import AsJson, emit, fail, table
from gateway.clock import Clock
from gateway.settings import Settings
from ledger import invoices
from ledger.invoicefile import FORMATS, InvoiceError, InvoiceLine, parse
from ledger.invoices import GPU, PROVIDER, InvoiceStateError, Manner, Stored
from ledger.money import format_usd
from ledger.reconcile import Booked, Row, by_day_and_model, by_key, mapped, model_of

app = typer.Typer(help="Invoices beside the books.", no_args_is_help=True)
KEYS = {
    "model": (lambda line: model_of(line.item), lambda one: model_of(one.model)),
    "project": (lambda line: line.project or "", lambda one: one.project),
}
PLACES = 4
By = Annotated[str | None, typer.Option(help="Who does this; default: the user at this terminal.")]
Number = Annotated[int, typer.Argument(help="As `invoices list` shows it.")]


@app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="The invoice.")],
    provider: Annotated[str | None, typer.Option(help="The provider that sent it.")] = None,
    pool: Annotated[str | None, typer.Option(help="The pool whose GPUs it is for.")] = None,
    kind: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}; told from the file.")
    ] = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Read an invoice: OpenAI's costs as JSON, a CSV of days and amounts, or FOCUS of a cloud."""
    settings = load_or_fail(config)
    party = _party(settings, provider, pool)
    if kind is not None and kind not in FORMATS:
        fail(f"there is no format `{kind}`; there are {', '.join(FORMATS)}")
    try:
        text = file.read_text(encoding="utf-8-sig")
        found = parse(text, kind)
    except UnicodeDecodeError:
        fail(f"{file} is not UTF-8: save it as `CSV UTF-8`")
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}")
    except InvoiceError as error:
        fail(f"{file} is no invoice that can be read; nothing was imported\n{error}")
    with _refusing(), ledger_engine(settings) as engine:
        number = invoices.store(
            engine, found, party=party, name=file.name,
            by=by or getpass.getuser(), at_us=Clock().wall_us(),
        )  # fmt: skip
    said = {"invoice": number, "lines": len(found.lines), "total_pusd": found.total_pusd}
    words = (
        f"Invoice {number}: {len(found.lines)} lines, {format_usd(found.total_pusd)}. "
        f"See what differs: breakeven invoices show {number}"
    )
    emit(said, as_json=as_json, show=lambda out: out.print(words, markup=False))


@app.command("list")
def list_invoices(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """Every imported invoice, the latest first."""
    with ledger_reader(load_or_fail(config)) as engine, engine.connect() as connection:
        found = invoices.stored(connection)
    columns = ("=invoice", "from", "file", "=days", ">total", "imported by", "posted by")
    cells = [
        [str(one.id), one.party, one.name, _days(one), format_usd(one.total_pusd),
         f"{one.imported_by}, {_moment(one.imported_us)}",
         "-" if one.posted_us is None else f"{one.posted_by}, {_moment(one.posted_us)}"]
        for one in found
    ]  # fmt: skip
    emit(
        [asdict(one) for one in found],
        as_json=as_json,
        show=lambda out: out.print(table("Invoices", columns, cells)),
    )


@app.command()
def show(
    number: Number,
    by: Annotated[str, typer.Option(help="day, model or project.")] = "day",
    project: Annotated[
        list[str] | None,
        typer.Option(help="PROJECT=TEAM: whose an invoice's project is; may be repeated."),
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """What differs from the books, where, and what explains it."""
    teams = dict(_pair(one) for one in project or ())
    if by != "day" and by not in KEYS:
        fail(f"`--by {by}`: day, {' or '.join(KEYS)}")
    with _refusing(), ledger_reader(load_or_fail(config)) as engine, engine.connect() as connection:
        invoice = invoices.find(connection, number)
        lines = mapped(invoices.lines_of(connection, number), teams)
        booked = invoices.booked(connection, invoice.party, invoice.first_day, invoice.last_day)
    if invoice.party.startswith(GPU):  # a resource of a cloud is no model: days are compared
        lines = [replace(line, item=invoice.party.removeprefix(GPU)) for line in lines]
    rows = _rows(invoice, lines, booked, by)
    emit(
        {"invoice": asdict(invoice), "by": by, "rows": [_told(*row) for row in rows]},
        as_json=as_json,
        show=lambda out: _show(out, invoice, by, rows),
    )


@app.command()
def post(
    number: Number,
    adds: Annotated[
        bool, typer.Option("--adds", help="It is owed beside what the books have: a credit note.")
    ] = False,
    replaces: Annotated[
        bool, typer.Option("--replaces", help="It corrects an invoice that was posted before.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Approve: bring the books to the invoice by adjustments, one a day. Nothing is edited."""
    if adds and replaces:
        fail("--adds or --replaces, not both")
    manner = Manner.ADDS if adds else Manner.REPLACES if replaces else Manner.WHOLE
    settings = load_or_fail(config)
    with _refusing(), ledger_engine(settings) as engine:
        with engine.connect() as connection:
            invoice = invoices.find(connection, number)
            planned = invoices.differences(connection, invoice, manner)
        if not yes and invoice.posted_us is None:
            change = f"{format_usd(sum(planned.values()))} on {_count(planned)}"
            typer.confirm(
                f"Invoice {number} of {invoice.party} is {format_usd(invoice.total_pusd)}; posting "
                f"it changes what is owed by {change}. Post it?",
                abort=True,
            )
        at_us = Clock().wall_us()
        posted = invoices.post(
            engine, number, by=by or getpass.getuser(), at_us=at_us, manner=manner
        )
    said = {"invoice": number, "posted_pusd": {str(day): pusd for day, pusd in posted.items()}}
    words = (
        f"Adjusted: {_count(posted)}, by {format_usd(sum(posted.values()))} in all."
        if posted
        else "The books agree with it: nothing was to be adjusted."
    )
    emit(said, as_json=as_json, show=lambda out: out.print(words, markup=False))


def _party(settings: Settings, provider: str | None, pool: str | None) -> str:
    if (provider is None) == (pool is None):
        fail("say whose invoice it is: --provider NAME, or --pool NAME for GPUs")
    if provider is not None:
        if provider not in settings.providers:
            fail(f"there is no provider `{provider}` in the configuration")
        return f"{PROVIDER}{provider}"
    if pool not in settings.pools:
        fail(f"there is no pool `{pool}` in the configuration")
    return f"{GPU}{pool}"


def _rows(
    invoice: Stored, lines: list[InvoiceLine], booked: list[Booked], by: str
) -> list[tuple[str, Row]]:
    if by in KEYS:
        return [("", row) for row in by_key(lines, booked, KEYS[by])]
    days = by_day_and_model(lines, booked, places=invoice.places)
    return [(str(day), row) for day, rows in days.items() for row in rows]


def _told(day: str, row: Row) -> dict[str, Any]:
    told = asdict(row) | {"difference_pusd": row.difference_pusd}
    return {"day": day, **told} if day else told


def _show(out: Console, invoice: Stored, by: str, rows: Sequence[tuple[str, Row]]) -> None:
    columns = [by if by != "day" else "model", ">invoiced", ">booked", ">difference", ">attempts"]
    columns = ["=day", *columns, "may be explained by"] if by == "day" else columns
    cells = []
    for day, row in rows:
        sums = (row.invoiced_pusd, row.booked_pusd, row.difference_pusd)
        line = [row.key or "-", *(format_usd(one, PLACES) for one in sums), f"{row.attempts:,}"]
        why = ", ".join(row.causes) or "-"
        cells.append([day, *line, why] if by == "day" else line)
    booked = sum(row.booked_pusd for _, row in rows)
    out.print(table(f"Invoice {invoice.id} of {invoice.party}, {_days(invoice)}", columns, cells))
    difference = invoice.total_pusd - booked
    out.print(
        f"\nInvoiced {format_usd(invoice.total_pusd)}, booked {format_usd(booked)}, "
        f"difference {format_usd(difference)}.", markup=False,
    )  # fmt: skip
    if invoice.posted_us is None and difference:
        out.print(f"To bring the books to it: breakeven invoices post {invoice.id}", markup=False)


def _count(days: Collection[date]) -> str:
    return "1 day" if len(days) == 1 else f"{len(days)} days"


def _pair(word: str) -> tuple[str, str]:
    project, equals, team = word.partition("=")
    if not (project and equals and team):
        fail(f"`--project {word}`: write PROJECT=TEAM")
    return project, team


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except InvoiceStateError as error:
        fail(str(error))


def _days(invoice: Stored) -> str:
    return f"{invoice.first_day} to {invoice.last_day}"


def _moment(at_us: int) -> str:
    return f"{datetime.fromtimestamp(at_us / 1e6, UTC):%Y-%m-%d %H:%M}"
