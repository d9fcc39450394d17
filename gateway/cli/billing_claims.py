"""Commands `breakeven invoices claims | waive`: provider claims beyond the booked cost."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.admin_backend import run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, moment, print_result, table
from gateway.control.admin import open_claims as verbs
from ledger.money import format_usd

By = Annotated[
    str | None, typer.Option(help="Name recorded as the author; default: the user's name.")
]

NO_CLAIM = "No claim is open; `--all` lists those that were resolved, too."


def list_claims(
    team: Annotated[str | None, typer.Option(help="Only this team.")] = None,
    whole: Annotated[bool, typer.Option("--all", help="Include resolved claims.")] = False,
    limit: Annotated[
        int,
        typer.Option(min=1, max=verbs.LISTED_MOST, help="Maximum number of claims, latest first."),
    ] = verbs.LISTED,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """List provider claims beyond the booked cost.

    Also shows the part of each claim that counts against budgets.
    """
    given = verbs.ListClaimsInput(team, whole, limit)
    found = run_query(config, verbs.claims_list, given)["data"]
    columns = (
        "=attempt", "=when", "team", "target", ">booked", ">claimed", ">narrows budgets", "resolved"
    )  # fmt: skip
    cells = [
        [
            claim["attempt"],
            moment(claim["settled_us"]),
            claim["team"],
            claim["target"],
            *(_dollars(claim[f"{name}_usd"]) for name in ("booked", "claimed", "counted")),
            f"open: {claim['waits_for']}"
            if claim["resolution"] is None
            else f"{claim['resolution']}, by {claim['resolved_by']}",
        ]
        for claim in found
    ]
    none = "No provider claims more than what was booked, and none did." if whole else NO_CLAIM
    shown = table("Claims", columns, cells) if found else none
    emit(found, as_json=as_json, show=lambda out: out.print(shown))


def waive(
    attempts: Annotated[list[str], typer.Argument(help="Ids, as `invoices claims` lists them.")],
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Waive claims: budgets no longer count them, and the ledger keeps them."""
    said = run_change(config, by, verbs.claims_waive, verbs.WaiveClaimsInput(attempts))
    count, pusd = said["claims"], said["no_longer_counted_pusd"]
    claims = "1 claim" if count == 1 else f"{count} claims"
    print_result(said, f"{claims} waived: {format_usd(pusd)} of budgets is free.", as_json=as_json)


def _dollars(exact: str) -> str:
    """Return an exact amount without trailing zeros, with at least cents."""
    whole, _, part = exact.partition(".")
    return f"${whole}.{part.rstrip('0').ljust(2, '0')}"
