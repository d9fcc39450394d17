"""Tables of prices, their changes and doubts, from the JSON results."""

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


def kind_text(amount: PriceAmount) -> str:
    """Return a price kind as text: `batch output >200k`, `request (USD)`."""
    tier = "" if amount.tier == STANDARD else f"{amount.tier} "
    above = (
        f" >{amount.above_tokens // 1000}k"
        if amount.above_tokens % 1000 == 0
        else (f" >{amount.above_tokens}")
    )
    unit = {PER_TOKEN: "", SHARE: " (%)"}.get(amount.unit, " (USD)")
    return f"{tier}{amount.kind}{above if amount.above_tokens else ''}{unit}"


def show_plan(out: Console, plan: dict[str, Any], now_us: int) -> None:
    """Show old and new prices in USD per million tokens, unless the kind has another unit.

    `plan` is a result of `plan_json`.
    """
    rows = [row for entry in plan["entries"] for row in _entry_rows(entry, now_us)]
    if rows:
        columns = ("=name", "status", "kind", ">old", ">new", ">change", "=from", "price of")
        out.print(table("USD per million tokens", columns, rows))
        out.print()
    show_doubts(out, plan)
    out.print(summary(plan), markup=False)


def show_doubts(out: Console, plan: dict[str, Any]) -> None:
    """Show doubts about prices before their approval."""
    if plan["implausible"]:
        rows = [[item["name"], item["detail"]] for item in plan["implausible"]]
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
    for place, price in enumerate(entry["prices"]):
        change = "-" if price["percent"] is None else f"{price['percent']:+g} %"
        kind = PriceAmount(
            price["tier"], price["above_tokens"], price["kind"], price["unit"], None, None
        )
        cells = [kind_text(kind), price["old"] or "-", price["new"] or "-"]
        yield [*(first if place == 0 else ["", ""]), *cells, change,
               *(last if place == 0 else ["", ""])]  # fmt: skip


def _us(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp()) * 1_000_000


def _books(entry: dict[str, Any]) -> str:
    before = entry["before"]["book"] if entry["before"] else None
    after = entry["after"]["book"] if entry["after"] else "nothing"
    return str(after) if before in (None, after) else f"{before}, then {after}"


def show_list(out: Console, shown: Sequence[dict[str, Any]]) -> None:
    """Show one line per name, with the standard prices."""
    rows = []
    for shown_value in shown:
        kinds = {item["kind"]: item["price"] for item in shown_value.get("prices", ())
                 if item["tier"] == STANDARD and not item["above_tokens"]}  # fmt: skip
        more = "+" if len(shown_value.get("prices", ())) > len(kinds) else ""
        rows.append(
            [
                shown_value["asked"],
                *(kinds.get(kind, "-") for kind in ("input", "cached", "output")),
                more,
                str(shown_value.get("version", "-")),
                shown_value.get("book", "-"),
                shown_value.get("source_date") or "-",
                ", ".join(flag["flag"] for flag in shown_value["flags"]) or "-",
            ]
        )
    columns = ("=name", ">input", ">cached", ">output", "tiers", ">version", "book", "=read",
               "flags")  # fmt: skip
    out.print(table("USD per million tokens", columns, rows))


def show_price(out: Console, entry: dict[str, Any], history: Sequence[dict[str, Any]]) -> None:
    """Show all details of one name."""
    if entry["name"] is None:
        out.print(f"{entry['asked']} has no price in force.", markup=False)
    else:
        also = "" if entry["name"] == entry["asked"] else f" (priced as {entry['name']})"
        until = f" until {entry['until']}" if entry["until"] else ""
        out.print(
            f"{entry['asked']}{also}: version {entry['version']} of {entry['book']}", markup=False
        )
        out.print(f"in force from {entry['from'] or 'the beginning'}{until}", markup=False)
        read = f", read {entry['source_date']}" if entry["source_date"] else ""
        out.print(f"source: {entry['source'] or 'none'}{read}", markup=False)
        if entry.get("tier"):
            out.print(
                f"service tier of its requests: {entry['tier']}, unless a client names another",
                markup=False,
            )
        out.print()
        rows = [
            [item["kind"], item["tier"], str(item["above_tokens"] or "-"), item["price"],
             item["unit"]]
            for item in entry["prices"]
        ]  # fmt: skip
        out.print(table("", ("kind", "tier", ">above tokens", ">price", "unit"), rows))
        if entry.get("reasoning") == "outside":
            most = entry["max_reasoning"]
            limit = (
                f"at most {most} tokens" if most else "at most as many tokens as its longest answer"
            )
            out.print(f"reasoning: outside `max_tokens`, {limit} a choice", markup=False)
        if entry.get("image_tokens"):
            out.print(
                f"image tokens of a prompt: counted by the rule `{entry['image_tokens']}`",
                markup=False,
            )
    for flag in entry["flags"]:
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
