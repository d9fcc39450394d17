"""`breakeven prices`: what counts, what to doubt, and imports that a person approves."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from gateway.cli_config import Config, ledger_engine, ledger_reader, load_or_fail
from gateway.cli_output import AsJson, console, emit, fail, table
from gateway.clock import Clock
from gateway.following import FOLLOW_S
from gateway.prices import names_in_use, price_aliases
from gateway.pricesources import Source, read_source
from gateway.pricetables import (
    flag_json,
    plan_json,
    price_json,
    record_json,
    show_doubts,
    show_list,
    show_plan,
    show_price,
    summary,
)
from gateway.settings import Settings
from ledger.book import (
    BookMovedError,
    import_approved,
    load_price_book,
    read_days,
    records_of,
    stored_prices,
)
from ledger.drafts import BUNDLED_RANK
from ledger.pricebook import bundled_seed
from ledger.pricediff import Entry, Plan, Status, planned
from ledger.priceflags import Flag, PriceFlag, flags
from ledger.prices import Price, PriceBook, PriceError

app = typer.Typer(help="The price book: prices in force, doubts, imports.", no_args_is_help=True)
From = Annotated[
    str, typer.Option("--from", help="litellm, genai-prices, or a .csv, .yaml or .json file.")
]
Only = Annotated[
    list[str] | None, typer.Option(help="Only names like this, such as `openai/*`; repeatable.")
]
Book = Annotated[
    str | None, typer.Option(help="Name of a file's prices in the book; default: the file's.")
]


@app.command()
def show(
    name: Annotated[
        str | None, typer.Argument(help="provider/model, or a pattern such as `openai/*`.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All names, not only what the configuration uses.")
    ] = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """The prices in force: version, source, dates, doubts; of one name also its versions."""
    settings = load_or_fail(config)
    now_us = Clock().wall_us()
    with ledger_reader(settings) as engine:
        book = load_price_book(engine, price_aliases(settings))
        single = name is not None and "*" not in name
        names = [name] if name is not None and single else _names(settings, book, everything)
        if name is not None and not single:
            names = [one for one in book.names() if _like(one, [name])]
        doubts: dict[str, list[PriceFlag]] = {}
        for flag in _doubts(engine, book, names, now_us):
            doubts.setdefault(flag.name, []).append(flag)
        shown = [price_json(one, book.find(one, now_us), doubts.get(one, ())) for one in names]
        if not single:
            emit(shown, as_json=as_json, show=lambda out: show_list(out, shown))
            return
        priced = shown[0]["name"] or names[0]
        history = [record_json(one) for one in records_of(engine, priced)]
    whole = {**shown[0], "versions": history}
    emit(whole, as_json=as_json, show=lambda out: show_price(out, whole, history))


@app.command()
def check(
    everything: Annotated[
        bool, typer.Option("--all", help="All names, not only what the configuration uses.")
    ] = False,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Stale, expired, source-less, implausible, missing, unapproved: status 1 for any of them."""
    settings = load_or_fail(config)
    now_us = Clock().wall_us()
    with ledger_reader(settings) as engine:
        book = load_price_book(engine, price_aliases(settings))
        names = _names(settings, book, everything)
        found = _doubts(engine, book, names, now_us)
    rows = [[one.name, one.flag.value, one.detail] for one in found]
    words = f"{len(names)} prices: {len(found) or 'no'} doubts."
    emit(
        {"checked": len(names), "flags": [flag_json(one) for one in found]},
        as_json=as_json,
        show=lambda out: out.print(
            *((table("Doubts", ("=name", "=flag", "why"), rows), "\n") if rows else ()), words
        ),
    )
    if found:
        raise typer.Exit(1)


@app.command()
def diff(
    source: From,
    only: Only = None,
    book: Book = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """What an import would change: old and new price of every kind; stores nothing."""
    settings = load_or_fail(config)
    now_us = Clock().wall_us()
    with ledger_reader(settings) as engine:
        found, plan = _look(engine, settings, source, only, book, now_us)
    document = {**plan_json(plan), "refused": len(found.refused)}
    emit(document, as_json=as_json, show=lambda out: show_plan(out, plan, now_us))


@app.command("import")
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
    settings = load_or_fail(config)
    with ledger_engine(settings) as engine:
        now_us = Clock().wall_us()
        found, plan = _look(engine, settings, source, only, book, now_us)
        if not yes:
            _ask(plan, now_us)
        elif not as_json:
            show_plan(console(), plan, now_us)
        else:
            show_doubts(console(err=True), plan)
        stamp = found.stamp if by is None else replace(found.stamp, actor=by)
        if only:
            stamp = replace(stamp, read_on=None)
        again = partial(_planned, found, only)
        try:
            done = import_approved(engine, again, plan, stamp=stamp, at_us=Clock().wall_us())
        except (BookMovedError, PriceError) as error:
            fail(str(error))
    count = len(done.changes.rows)
    emit(
        {**plan_json(done), "stored": count, "by": stamp.actor},
        as_json=as_json,
        show=lambda out: out.print(
            f"{count} new versions stored. Running gateways use them within {FOLLOW_S:g} s."
            if count
            else "Nothing to store."
        ),
    )


def _ask(plan: Plan, now_us: int) -> None:
    """Ends the command unless a person at a terminal says yes."""
    if not plan.changes.rows:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{summary(plan)} There is no terminal to ask on: look with `diff`, then use --yes")
    show_plan(console(), plan, now_us)
    wrong = f", {len(plan.doubts)} of them implausible" if plan.doubts else ""
    if not typer.confirm(f"Store {len(plan.changes.rows)} new versions{wrong}?", err=True):
        fail("nothing was stored")


def _look(
    engine: Engine,
    settings: Settings,
    source: str,
    only: Sequence[str] | None,
    book: str | None,
    now_us: int,
) -> tuple[Source, Plan]:
    stored = stored_prices(engine)
    try:
        found = read_source(source, book, settings.prices, stored, now_us)
        return found, _planned(found, only, stored, now_us)
    except PriceError as error:
        fail(str(error))


def _planned(
    found: Source, only: Sequence[str] | None, stored: Sequence[Price], at_us: int
) -> Plan:
    return planned(
        stored, found.drafts, book=found.book, only=partial(_like, patterns=only), at_us=at_us
    )


def _like(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name.lower(), one.lower()) for one in patterns)


def _names(settings: Settings, book: PriceBook, everything: bool) -> list[str]:
    """What the configuration uses and what files and people have stated; or all there is."""
    used = names_in_use(settings)
    if everything:
        return sorted({*used, *book.names()})
    stated = [
        name
        for name in book.names()
        if any(price.rank > BUNDLED_RANK for versions in book.books_of(name) for price in versions)
    ]
    return sorted({*used, *stated})


def _doubts(engine: Engine, book: PriceBook, names: Sequence[str], now_us: int) -> list[PriceFlag]:
    found = flags(book, names, now_us, read_on=read_days(engine))
    wanted = {price.name for name in names if (price := book.find(name, now_us))}
    seed = [one for one in bundled_seed().drafts if one.name in wanted]
    try:
        plan = planned(stored_prices(engine), seed, book="litellm",
                       only=wanted.__contains__, at_us=now_us)  # fmt: skip
    except PriceError as error:
        fail(str(error))
    changed = {one.name: one for one in plan.entries if one.status is Status.CHANGED}
    for name in names:
        price = book.find(name, now_us)
        if price is not None and price.name in changed:
            words = f"{_moved(changed[price.name])}: `breakeven prices diff --from litellm`"
            found.append(PriceFlag(name, price.version, Flag.PENDING, words))
    return sorted(found, key=lambda one: (one.name, one.flag))


def _moved(entry: Entry) -> str:
    kinds = ", ".join(sorted({one.kind for one in entry.amounts}))
    return f"the bundled map states another price ({kinds})"
