"""Prices, their changes and doubts, as tables for people; made of what programs are told."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console

from gateway.cli.output import table
from ledger.prices.diff import PER_TOKEN, SHARE, PriceAmount, PriceStatus
from ledger.prices.rates import STANDARD

_NOTES = {
    PriceStatus.SHADOWED: "another book's price stays in force",
    PriceStatus.DROPPED: "no longer listed there; its price stays",
}


def kind_text(one: PriceAmount) -> str:
    """`batch output >200k`, `request (USD)`."""
    tier = "" if one.tier == STANDARD else f"{one.tier} "
    above = (
        f" >{one.above_tokens // 1000}k"
        if one.above_tokens % 1000 == 0
        else (f" >{one.above_tokens}")
    )
    unit = {PER_TOKEN: "", SHARE: " (%)"}.get(one.unit, " (USD)")
    return f"{tier}{one.kind}{above if one.above_tokens else ''}{unit}"


def show_plan(out: Console, plan: dict[str, Any], now_us: int) -> None:
    """Old and new in USD per million tokens, but where the kind says otherwise.

    `plan`: as `plan_json` tells it.
    """
    rows = [row for entry in plan["entries"] for row in _entry_rows(entry, now_us)]
    if rows:
        columns = ("=name", "status", "kind", ">old", ">new", ">change", "=from", "price of")
        out.print(table("USD per million tokens", columns, rows))
        out.print()
    show_doubts(out, plan)
    out.print(summary(plan), markup=False)


def show_doubts(out: Console, plan: dict[str, Any]) -> None:
    """What cannot well be right, before anybody approves it."""
    if plan["implausible"]:
        rows = [[one["name"], one["detail"]] for one in plan["implausible"]]
        out.print(table("Look again: these cannot well be right", ("=name", "why"), rows))
        out.print()


def summary(plan: dict[str, Any]) -> str:
    stated = [entry["status"] for entry in plan["entries"]]
    counts = [
        f"{count} {status}" for status in PriceStatus if (count := stated.count(status.value))
    ]
    counts.append(f"{plan['unchanged']} unchanged")
    if plan["implausible"]:
        counts.append(f"{len(plan['implausible'])} implausible")
    return f"{plan['book']}: {', '.join(counts)}."


def _entry_rows(entry: dict[str, Any], now_us: int) -> Iterable[list[str]]:
    since = "now" if _us(entry["from"]) <= now_us else entry["from"][:10]
    note = _NOTES.get(PriceStatus(entry["status"])) or _books(entry)
    first = [entry["name"], entry["status"]]
    last = [since, note]
    if not entry["prices"]:
        yield [*first, "-", "-", "-", "-", *last]
    for place, one in enumerate(entry["prices"]):
        change = "-" if one["percent"] is None else f"{one['percent']:+g} %"
        kind = PriceAmount(one["tier"], one["above_tokens"], one["kind"], one["unit"], None, None)
        cells = [kind_text(kind), one["old"] or "-", one["new"] or "-"]
        yield [*(first if place == 0 else ["", ""]), *cells, change,
               *(last if place == 0 else ["", ""])]  # fmt: skip


def _us(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp()) * 1_000_000


def _books(entry: dict[str, Any]) -> str:
    before = entry["before"]["book"] if entry["before"] else None
    after = entry["after"]["book"] if entry["after"] else "nothing"
    return str(after) if before in (None, after) else f"{before}, then {after}"


def show_list(out: Console, shown: Sequence[dict[str, Any]]) -> None:
    """One line a name, with the standard prices."""
    rows = []
    for one in shown:
        kinds = {item["kind"]: item["price"] for item in one.get("prices", ())
                 if item["tier"] == STANDARD and not item["above_tokens"]}  # fmt: skip
        more = "+" if len(one.get("prices", ())) > len(kinds) else ""
        rows.append(
            [
                one["asked"], *(kinds.get(kind, "-") for kind in ("input", "cached", "output")),
                more, str(one.get("version", "-")), one.get("book", "-"),
                one.get("source_date") or "-",
                ", ".join(flag["flag"] for flag in one["flags"]) or "-",
            ]
        )  # fmt: skip
    columns = ("=name", ">input", ">cached", ">output", "tiers", ">version", "book", "=read",
               "flags")  # fmt: skip
    out.print(table("USD per million tokens", columns, rows))


def show_price(out: Console, one: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Everything about one name."""
    if one["name"] is None:
        out.print(f"{one['asked']} has no price in force.", markup=False)
    else:
        also = "" if one["name"] == one["asked"] else f" (priced as {one['name']})"
        until = f" until {one['until']}" if one["until"] else ""
        out.print(f"{one['asked']}{also}: version {one['version']} of {one['book']}", markup=False)
        out.print(f"in force from {one['from'] or 'the beginning'}{until}", markup=False)
        read = f", read {one['source_date']}" if one["source_date"] else ""
        out.print(f"source: {one['source'] or 'none'}{read}\n", markup=False)
        rows = [
            [item["kind"], item["tier"], str(item["above_tokens"] or "-"), item["price"],
             item["unit"]]
            for item in one["prices"]
        ]  # fmt: skip
        out.print(table("", ("kind", "tier", ">above tokens", ">price", "unit"), rows))
    for flag in one["flags"]:
        out.print(f"{flag['flag']}: {flag['detail']}", markup=False)
    if history:
        rows = [
            [str(item["version"]), item["book"], item["from"] or "-", item["until"] or "-",
             "withdrawn" if item["withdrawn"] else "", item["recorded"], item["by"] or "-",
             item["origin"] or "-"]
            for item in history
        ]  # fmt: skip
        columns = (">version", "book", "=from", "=until", "", "=stored", "by", "out of")
        out.print()
        out.print(table("Versions", columns, rows))
