"""Commands `breakeven prices`: active prices, doubts, and imports that a person approves."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.admin_backend import open_backend, open_writing_backend, run_query
from gateway.cli.config import Config
from gateway.cli.ledger_access import priced_ledger
from gateway.cli.output import AsJson, console, emit, fail, table
from gateway.cli.pricetables import show_doubts, show_list, show_plan, show_price, summary
from gateway.clock import Clock
from gateway.control.admin import prices as verbs
from gateway.control.admin.gateway_address import gateway_url
from gateway.control.pricing.configured import actor
from gateway.control.pricing.sources import read_text
from gateway.followers import FOLLOW_S
from ledger.prices.book import PriceError

From = Annotated[
    str, typer.Option("--from", help="litellm, genai-prices, or a .csv, .yaml or .json file.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Only names that match this pattern, for example `openai/*`; may be repeated."
    ),
]
Book = Annotated[str | None, typer.Option(help="Name of the price book; default: the file's name.")]
Everything = Annotated[
    bool, typer.Option("--all", help="All names, instead of those that the configuration uses.")
]


def show(
    name: Annotated[
        str | None, typer.Argument(help="PROVIDER/MODEL, or a pattern such as `openai/*`.")
    ] = None,
    everything: Everything = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show active prices: version, source, dates, doubts.

    With a name, also its versions.
    """
    found = run_query(config, verbs.prices_show, verbs.ShowPricesInput(name, everything))
    if "data" in found:
        emit(found["data"], as_json=as_json, show=lambda out: show_list(out, found["data"]))
    else:
        emit(found, as_json=as_json, show=lambda out: show_price(out, found, found["versions"]))


def check(
    everything: Everything = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Check prices: stale, expired, implausible, missing, unapproved.

    Also checks for prices without a source. Exits with 1 for any finding.
    """
    found = run_query(config, verbs.prices_check, verbs.CheckPricesInput(everything))
    rows = [[flag["name"], flag["flag"], flag["detail"]] for flag in found["flags"]]
    words = f"{found['checked']} prices checked: {len(rows) or 'no'} findings."
    emit(
        found,
        as_json=as_json,
        show=lambda out: out.print(
            *((table("Doubts", ("=name", "=flag", "why"), rows), "\n") if rows else ()), words
        ),
    )
    if rows:
        raise typer.Exit(1)


def diff(
    source: From,
    only: Only = None,
    book: Book = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show old and new prices of an import. Stores nothing."""
    with open_backend(config) as desk:
        found = desk.do(verbs.prices_diff, _read_source(source, only, book))
    now_us = Clock().wall_us()
    emit(found, as_json=as_json, show=lambda out: show_plan(out, found, now_us))


def import_prices(
    source: From,
    only: Only = None,
    book: Book = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Approve without asking for confirmation.")
    ] = False,
    by: Annotated[
        str | None, typer.Option(help="Name recorded as the approver; default: user@host.")
    ] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show changes of prices, ask, and store them as new versions.

    Running gateways load them. Implausible prices are marked, such as one per 1K tokens entered per
    1M. Stored prices are never edited: open requests keep their version.
    """
    with open_writing_backend(
        config, by if by or gateway_url() else actor(), priced_ledger
    ) as desk:
        given = _read_source(source, only, book)
        seen, now_us = desk.do(verbs.prices_diff, given), Clock().wall_us()
        if not yes:
            _confirm_import(seen, now_us)
        elif not as_json:
            show_plan(console(), seen, now_us)
        else:
            show_doubts(console(err=True), seen)
        wanted = verbs.ImportPricesInput(
            given.source, given.content, given.read_on, given.only, given.book, seen["approves"]
        )
        done = desk.do(verbs.prices_import, wanted)
    count = done["stored"]
    emit(
        done,
        as_json=as_json,
        show=lambda out: out.print(
            f"{count} new versions stored. Running gateways use them within {FOLLOW_S:g} s."
            if count
            else "Nothing to store."
        ),
    )


def _confirm_import(seen: dict[str, Any], now_us: int) -> None:
    """Exit unless the user at a terminal confirms."""
    count, doubts = seen["new_versions"], seen["implausible"]
    if not count:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(
            f"{summary(seen)} There is no terminal for a confirmation: review with "
            "`breakeven prices diff`, then use --yes"
        )
    show_plan(console(), seen, now_us)
    wrong = f", {len(doubts)} of them implausible" if doubts else ""
    if not typer.confirm(f"Store {count} new versions{wrong}?", err=True):
        fail("nothing was stored")


def _read_source(source: str, only: list[str] | None, book: str | None) -> verbs.PriceSourceInput:
    """Return the import's input, with the content of a named file."""
    try:
        text = read_text(source)
    except PriceError as error:
        fail(str(error))
    if text is None:
        return verbs.PriceSourceInput(source, only=only or None, book=book)
    return verbs.PriceSourceInput(text.name, text.data, text.read_on, only or None, book)
