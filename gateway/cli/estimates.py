"""`breakeven estimates`: what gateways learned of texts, and how they forget it.

Estimates are of one host. A reset is kept in the ledger with who, when and why, and every gateway
follows.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, table
from gateway.control.admin import estimates as verbs
from gateway.followers import FOLLOW_S

OfModel = Annotated[str | None, typer.Option("--model", help="This model; default: all.")]
OfTeam = Annotated[str | None, typer.Option("--team", help="This team; default: all.")]


def show(
    model: OfModel = None,
    team: OfTeam = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show bytes per token as this host has learned them, by model and team."""
    found = run_query(config, verbs.estimates_show, verbs.ShowEstimatesInput(model, team))["data"]
    emit(
        found, as_json=as_json,
        show=lambda out: out.print(_table(found) if found else "Nothing is learned yet."),
    )  # fmt: skip


def reset(
    model: OfModel = None,
    team: OfTeam = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Forget what was learned of prompts and output lengths, on every host."""
    said = run_change(
        config, by, verbs.estimates_reset, verbs.ResetEstimatesInput(model, team, note)
    )
    emit(said, as_json=as_json, show=lambda out: out.print(_told(said), markup=False))


def _told(said: dict[str, Any]) -> str:
    whose = " and ".join(
        f"{what} {said[what]}" for what in ("model", "team") if said[what] is not None
    )
    keys = said["keys"]
    here = "" if keys is None else f" On this host: {keys} key{'' if keys == 1 else 's'}."
    return (
        f"Estimates of {whose or 'all models and teams'} are reset.{here}\n"
        f"Running gateways follow within {FOLLOW_S:g} s."
    )


def _table(found: list[dict[str, Any]]) -> Any:
    rows = [
        [
            known["model"] or "(long name)",
            known["team"] or "(long name)",
            f"{known['bytes_per_token']:.2f}",
            str(known["template_tokens"]),
            str(known["observations"]),
            f"{datetime.fromtimestamp(known['seen_us'] / 1e6, UTC):%Y-%m-%d %H:%M UTC}",
        ]
        for known in found
    ]
    columns = ("model", "team", ">bytes/token", ">template", ">observations", "last seen")
    return table("Estimates of this host", columns, rows)
