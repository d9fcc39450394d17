"""Commands `breakeven budgets`: spending limits entered over those of the configuration."""

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, fail, moment, print_result, table
from gateway.control.admin import budgets as verbs
from gateway.control.admin.verb import NoInput
from ledger.money import PUSD_PER_USD, format_usd, usd_text, usd_to_pusd

Scope = Annotated[
    str, typer.Argument(help="Scope: `team:search`, `user:*`, `provider:openai` or `global`.")
]
Period = Annotated[Literal["day", "month"], typer.Option(help="The calendar window.")]


def list_budgets(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List all budgets in their current window, and entered changes."""
    found = run_query(config, verbs.budgets_terms, NoInput())
    emit(found, as_json=as_json, show=lambda out: _show(out, found["data"]))


def enter(
    scope: Scope,
    usd: Annotated[str, typer.Argument(help="Limit of one period.")],
    period: Period = "month",
    soft: Annotated[
        bool, typer.Option("--soft", help="Send alerts only; refuse no request.")
    ] = False,
    timezone: Annotated[
        str | None, typer.Option(help="IANA time zone; default: `timezone`.")
    ] = None,
    alert_at: Annotated[
        list[float] | None,
        typer.Option(help="Send an alert at this share of the limit; may be repeated."),
    ] = None,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enter a budget or change one; applies at once."""
    try:
        limit = Decimal(usd)
    except InvalidOperation:
        fail(f"invalid amount `{usd}`: write dollars, for example 400 or 0.50")
    given = verbs.EnterBudgetInput(scope, limit, period, not soft, timezone, alert_at or None, note)
    said = run_change(config, by, verbs.budgets_enter, given)
    words = f"The budget {said['budget']} is entered: ${limit:f} a {period}."
    print_result(said, words, as_json=as_json)


def end(
    scope: Scope,
    period: Period = "month",
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """End a budget, including one of the configuration."""
    said = run_change(config, by, verbs.budgets_end, verbs.BudgetInput(scope, period, note))
    print_result(said, f"The budget {said['budget']} is ended.", as_json=as_json)


def withdraw(
    scope: Scope,
    period: Period = "month",
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Withdraw an entry: the configuration's budget applies again, if any."""
    said = run_change(config, by, verbs.budgets_withdraw, verbs.BudgetInput(scope, period, note))
    words = f"What was entered for {said['budget']} is taken back."
    print_result(said, words, as_json=as_json)


def _show(out: Console, budgets: list[dict[str, Any]]) -> None:
    # Provider claims reduce few budgets; without this column the rest does not add up.
    claimed = any(Decimal((line["in_force"] or {}).get("claimed_usd", 0)) for line in budgets)
    amounts = ("limit", "spent", "held", *(["claimed"] if claimed else []), "left")
    columns = ("budget", "kind", *(f">{name}" for name in amounts), ">configured", "entered by")
    cells = [
        [
            line["budget"],
            _kind(line),
            *(shown_dollars(line["in_force"], f"{name}_usd") for name in amounts),
            shown_dollars(line["configured"], "limit_usd"),
            _who(line["entered"]),
        ]
        for line in budgets
    ]
    out.print(table("Budgets", columns, cells))


def _kind(line: dict[str, Any]) -> str:
    """Return `hard` or `soft`, as active or in the file; `-` for an ended budget."""
    entry = line["entered"]
    terms = line["in_force"] or (None if entry and entry["ended"] else line["configured"])
    if terms is None:
        return "-"
    return "hard" if terms["hard"] else "soft"


def shown_dollars(terms: dict[str, Any] | None, name: str) -> str:
    """Return an amount with cents, or three digits below one dollar; `--json` is exact."""
    if terms is None:
        return "-"
    pusd = usd_to_pusd(Decimal(terms[name]))
    return format_usd(pusd, 2) if abs(pusd) >= PUSD_PER_USD else usd_text(pusd)


def _who(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "-"
    ended = ", ended" if entry["ended"] else ""
    return f"{entry['by']}, {moment(entry['entered_us'])}{ended}"
