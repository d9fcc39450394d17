"""Commands `breakeven rates`: costs of own GPUs and operations, entered over the file's."""

from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, fail, moment, print_result, table
from gateway.control.admin import entries as entered
from gateway.control.admin import rates as verbs
from gateway.control.admin.verb import NoInput

Pool = Annotated[str, typer.Argument(help="Pool of the configuration.")]


def list_rates(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List the rates of each pool: configured, entered, and future."""
    found = run_query(config, verbs.rates_list, NoInput())
    emit(found, as_json=as_json, show=lambda out: _show(out, found["data"]))


def enter(
    pool: Pool,
    source: Annotated[str, typer.Option(help="Source of the rates: a contract, HR.")],
    gpu: Annotated[
        str | None, typer.Option("--usd-per-hour", help="Cost of one GPU for an hour, in USD.")
    ] = None,
    hours: Annotated[
        str | None, typer.Option("--ops-hours", help="Hours of work on this pool in a week.")
    ] = None,
    ops: Annotated[
        str | None, typer.Option("--ops-usd-per-hour", help="Cost of one hour of work, in USD.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="First UTC day, YYYY-MM-DD; default: now.")
    ] = None,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enter a pool's rates; omitted ones stay as they are.

    They also stay in later entries.
    """
    gpu_usd, ops_hours, ops_usd = (
        None if name is None else _decimal(name) for name in (gpu, hours, ops)
    )
    day = None if since is None else _day(since)
    given = verbs.EnterRateInput(pool, source, gpu_usd, ops_hours, ops_usd, day, note)
    said = run_change(config, by, verbs.rates_enter, given)
    begins = "at once" if since is None else f"from {since} on"
    pools = ", ".join(item["pool"] for item in said["entered"])
    lines = [f"Entered for {pools}: it counts {begins}."]
    carried = {entry["number"] for entry in said["carried"]}
    lines += [
        _later_text(entry, is_carried=entry["number"] in carried) for entry in said["to_come"]
    ]
    print_result(said, "\n".join(lines), as_json=as_json)


def withdraw(
    pool: Pool,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Withdraw entered rates: those of the configuration apply again."""
    said = run_change(config, by, verbs.rates_withdraw, verbs.WithdrawRateInput(pool, note))
    print_result(said, f"The configuration's rates of {pool} count again.", as_json=as_json)


def currency(
    code: Annotated[str, typer.Argument(help="ISO 4217 code, for example EUR.")],
    per_usd: Annotated[str, typer.Argument(help="Units of the currency for one dollar.")],
    day: Annotated[str, typer.Option(help="Day of the rate, YYYY-MM-DD.")],
    source: Annotated[
        str, typer.Option(help="Source of the rate: a central bank, your own accounts.")
    ],
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enter an exchange rate, to show money in another currency."""
    given = entered.QuoteCurrencyInput(code, _decimal(per_usd), _day(day), source, note)
    said = run_change(config, by, entered.currencies_quote, given)
    words = f"1 USD is {said['says']['per_usd']} {code} on {day}, says {source}."
    if (stands := said["in_force"])["day"] > day:
        words += f" The newer rate of {stands['day']} stays in force: {stands['per_usd']}."
    print_result(said, words, as_json=as_json)


def _show(out: Console, pools: list[dict[str, Any]]) -> None:
    columns = ("pool", "=GPUs", ">USD/h of one", "source", ">ops h/week", ">USD/h", "source of ops",
               "entered by", "to come")  # fmt: skip
    cells = []
    for pool in pools:
        terms, said = pool["in_force"], pool["entered"]
        cells.append([
            pool["pool"], f"{pool['gpus']} {pool['gpu_type']}", _plain(terms["usd_per_hour"]),
            terms["source"] or "-", *_ops(terms), pool["ops_source"] or "-",
            "-" if said is None else f"{said['by']}, {moment(said['entered_us'])}",
            "; ".join(_coming(entry) for entry in pool["to_come"]) or "-",
        ])  # fmt: skip
    out.print(table("Rates", columns, cells))


def _ops(terms: dict[str, Any]) -> tuple[str, str]:
    """Return hours per week and dollars per hour; zeros in both mean no entry."""
    hours, usd = terms["ops_hours_per_week"], Decimal(terms["ops_usd_per_hour"])
    if not hours and not usd:
        return "not entered", "-"
    return f"{hours:g}", _plain(terms["ops_usd_per_hour"]) if usd else "not entered"


def _coming(entry: dict[str, Any]) -> str:
    says, day = entry["says"], moment(entry["from_us"])[:10]
    hours, usd = _ops(says)
    ops = f"{hours} h/week at {usd}" if hours != "not entered" else hours
    return f"{_plain(says['usd_per_hour'])} from {day}, ops {ops}"


def _later_text(entry: dict[str, Any], *, is_carried: bool) -> str:
    """Describe rates that apply from a later day on."""
    says = entry["says"]
    hours, usd = _ops(says)
    rate = says["usd_per_hour"]
    gpu = "an unknown rate" if rate is None else f"{_plain(rate)} USD an hour of one GPU"
    ops = "no ops are entered" if hours == "not entered" else f"ops {hours} h a week at {usd} USD"
    why = ", with this change." if is_carried else ", as entered for that day."
    return f"From {moment(entry['from_us'])[:10]} on {entry['pool']} costs {gpu}, and {ops}{why}"


def _plain(usd: str | None) -> str:
    return "enter the rate" if usd is None else f"{Decimal(usd).normalize():f}"


def _decimal(word: str) -> Decimal:
    try:
        return Decimal(word)
    except InvalidOperation:
        fail(f"invalid number `{word}`: write digits, for example 2.50")


def _day(word: str) -> date:
    try:
        return date.fromisoformat(word)
    except ValueError:
        fail(f"invalid date `{word}`: write YYYY-MM-DD")
