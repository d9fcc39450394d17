"""Commands `breakeven estimates`: learned estimates of texts and targets, and their reset.

Estimates belong to a host. A reset is stored in the ledger with author, time and reason, and all
gateways apply it.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, table
from gateway.control.admin import estimates as verbs
from gateway.followers import FOLLOW_S
from gateway.policies.overrides import instant

OfModel = Annotated[str | None, typer.Option("--model", help="Only this model; default: all.")]
OfTarget = Annotated[str | None, typer.Option("--target", help="Only this target.")]
OfTeam = Annotated[str | None, typer.Option("--team", help="Only this team; default: all.")]


def show(
    model: OfModel = None,
    team: OfTeam = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show learned bytes per token and output lengths by model and team."""
    found = run_query(config, verbs.estimates_show, verbs.ShowEstimatesInput(model, team))["data"]
    emit(
        found, as_json=as_json,
        show=lambda out: out.print(_table(found) if found else "No estimates yet."),
    )  # fmt: skip


def targets(
    target: OfTarget = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Show learned latencies, overruns and unseen output by target."""
    found = run_query(config, verbs.estimates_targets, verbs.ShowTargetEstimatesInput(target))
    known = found["data"]
    emit(
        known, as_json=as_json,
        show=lambda out: out.print(_target_table(known) if known else "No estimates yet."),
    )  # fmt: skip


def reset(
    model: OfModel = None,
    team: OfTeam = None,
    target: OfTarget = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Reset estimates of a model, team or target, or all, on every host."""
    given = verbs.ResetEstimatesInput(model, team, note, target)
    said = run_change(config, by, verbs.estimates_reset, given)
    emit(said, as_json=as_json, show=lambda out: out.print(_told(said), markup=False))


def _told(said: dict[str, Any]) -> str:
    whose = " and ".join(
        f"{what} {said[what]}" for what in ("model", "team", "target") if said[what] is not None
    )
    keys = said["keys"]
    here = "" if keys is None else f" On this host: {keys} key{'' if keys == 1 else 's'}."
    return (
        f"Estimates of {whose or 'all models, teams and targets'} are reset.{here}\n"
        f"Running gateways follow within {FOLLOW_S:g} s."
    )


def _table(found: list[dict[str, Any]]) -> Any:
    rows = [
        [
            known["model"] or "(long name)",
            known["team"] or "(long name)",
            f"{known['bytes_per_token']:.2f}",
            str(known["template_tokens"]),
            f"{known['context_margin']:.2f}",
            str(known["observations"]),
            _number(known["output_tokens"]),
            instant(known["seen_us"]),
        ]
        for known in found
    ]
    columns = (
        "model",
        "team",
        ">bytes/token",
        ">template",
        ">margin",
        ">observations",
        ">output",
        "last seen",
    )
    return table("Estimates of this host", columns, rows)


def _target_table(found: list[dict[str, Any]]) -> Any:
    rows = [
        [
            known["target"] or "(long name)",
            _number(known["ttft_ms"]),
            _number(known["tpot_ms"]),
            str(known["overrun_tokens"]),
            _raised(known),
            _number(known["tokens_per_s"]),
            _percent(known.get("cached_share")),
            "yes" if known["hides_reasoning"] else "no",
            "-" if known["seen_us"] is None else instant(known["seen_us"]),
        ]
        for known in found
    ]
    columns = (
        "target",
        ">TTFT ms",
        ">TPOT ms",
        ">overrun",
        ">prompt",
        ">tokens/s",
        ">cached",
        "hides",
        "last seen",
    )
    return table("Targets as this host knows them", columns, rows)


def _raised(known: dict[str, Any]) -> str:
    """Describe how far the target's prompts are held above their bounds."""
    words = [
        f"{known[name]:.1f}x {what}"
        for name, what in (("picture_factor", "pictures"), ("sound_factor", "sound"))
        if known.get(name)
    ]
    if known.get("context_tokens"):
        words.append(f"{known['context_tokens']} context")
    return ", ".join(words) or "-"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _number(number: float | None) -> str:
    return "-" if number is None else f"{number:.1f}"
