"""`breakeven prices`: what counts, what to doubt, and imports that a person approves."""

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
    list[str] | None, typer.Option(help="Only names like this, such as `openai/*`; repeatable.")
]
Book = Annotated[
    str | None, typer.Option(help="Name of a file's prices in the book; default: the file's.")
]
Everything = Annotated[
    bool, typer.Option("--all", help="All names, not only what the configuration uses.")
]


def show(
    name: Annotated[
        str | None, typer.Argument(help="provider/model, or a pattern such as `openai/*`.")
    ] = None,
    everything: Everything = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """The prices in force: version, source, dates, doubts; of one name also its versions."""
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
    """Stale, expired, source-less, implausible, missing, unapproved: status 1 for any of them."""
    found = run_query(config, verbs.prices_check, verbs.CheckPricesInput(everything))
    rows = [[flag["name"], flag["flag"], flag["detail"]] for flag in found["flags"]]
    words = f"{found['checked']} prices: {len(rows) or 'no'} doubts."
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
    """Show the old and new price of each change of an import; store nothing."""
    with open_backend(config) as desk:
        found = desk.do(verbs.prices_diff, _read_source(source, only, book))
    now_us = Clock().wall_us()
    emit(found, as_json=as_json, show=lambda out: show_plan(out, found, now_us))


def import_prices(
    source: From,
    only: Only = None,
    book: Book = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without being asked.")] = False,
    by: Annotated[str | None, typer.Option(help="Who approves; default: user@host.")] = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show what changes, ask, and store it as new versions; running gateways follow by themselves.

    Prices that cannot well be right, such as one per 1K tokens for one per 1M, are pointed out.
    Nothing that is stored is edited: requests under way keep the version they began with.
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
    """Ends the command unless a person at a terminal says yes."""
    count, doubts = seen["new_versions"], seen["implausible"]
    if not count:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{summary(seen)} There is no terminal to ask on: look with `diff`, then use --yes")
    show_plan(console(), seen, now_us)
    wrong = f", {len(doubts)} of them implausible" if doubts else ""
    if not typer.confirm(f"Store {count} new versions{wrong}?", err=True):
        fail("nothing was stored")


def _read_source(source: str, only: list[str] | None, book: str | None) -> verbs.PriceSourceInput:
    """With the file that is named, where one is."""
    try:
        text = read_text(source)
    except PriceError as error:
        fail(str(error))
    if text is None:
        return verbs.PriceSourceInput(source, only=only or None, book=book)
    return verbs.PriceSourceInput(text.name, text.data, text.read_on, only or None, book)
