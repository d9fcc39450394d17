"""Commands `breakeven target` and `breakeven route`: temporary overrides of policies.

They are stored in the ledger with author, time and reason. Running gateways apply them within 2 s
and end them on time. Open requests continue where they are.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, table
from gateway.control.admin import overrides as verbs
from gateway.control.admin.verb import NoInput
from gateway.followers import FOLLOW_S
from ledger.overrides import API, EVERY, NOTHING, OWN

Name = Annotated[
    str, typer.Argument(help="Target: pool:NAME, pool:NAME/0, a provider, or PROVIDER/MODEL.")
]
For = Annotated[
    str | None,
    typer.Option("--for", help="Duration: 90s, 30m, 2h or 7d; default: until it is removed."),
]
OfModel = Annotated[str | None, typer.Option("--model", help="This model; default: all.")]


class RouteTarget(StrEnum):
    OWN = OWN
    API = API


_SAID: dict[RouteTarget, Literal["own", "api"]] = {RouteTarget.OWN: "own", RouteTarget.API: "api"}


def list_targets(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List all targets that can be disabled, and the active overrides."""
    found = run_query(config, verbs.targets_list, NoInput())
    emit(
        found, as_json=as_json,
        show=lambda out: _print_list(out, found["targets"], found["overrides"]),
    )  # fmt: skip


def disable(
    name: Name,
    lasts: For = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Disable a target: no new requests; open ones end there."""
    said = run_change(
        config, by, verbs.targets_disable, verbs.DisableTargetInput(name, lasts, note)
    )
    _print_overrides(said, as_json=as_json)


def enable(
    name: Name,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enable a target for requests again."""
    said = run_change(config, by, verbs.targets_enable, verbs.EnableTargetInput(name, note))
    _print_overrides(said, as_json=as_json)


def force(
    where: Annotated[RouteTarget, typer.Argument(help="own: use no API; api: use no own engine.")],
    model: OfModel = None,
    lasts: For = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Route to own engines only, or to APIs only; internal-only stays inside."""
    said = run_change(
        config, by, verbs.routes_force, verbs.ForceRouteInput(_SAID[where], model, lasts, note)
    )
    _print_overrides(said, as_json=as_json)


def release(
    model: OfModel = None,
    by: By = None,
    note: Why = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Remove a forced route, so that policies decide again."""
    said = run_change(config, by, verbs.routes_release, verbs.ReleaseRouteInput(model, note))
    _print_overrides(said, as_json=as_json)


def list_routes(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List the active overrides of routes."""
    stands = run_query(config, verbs.routes_list, NoInput())["data"]
    emit(
        stands, as_json=as_json,
        show=lambda out: out.print(_table(stands) if stands else "No route is forced."),
    )  # fmt: skip


def _print_overrides(said: dict[str, Any], *, as_json: bool) -> None:
    """Print the overrides in force, and the models that they leave without a target."""
    for name in said["unserved"]:
        typer.echo(
            f"warning: model `{name}` has no enabled target: its requests are refused", err=True
        )
    words = "\n".join(
        f"{_subject(override)}: {_describe_override(override)}." for override in said["overrides"]
    )
    emit(
        said, as_json=as_json,
        show=lambda out: out.print(
            f"{words}\nRunning gateways follow within {FOLLOW_S:g} s.", markup=False
        ),
    )  # fmt: skip


def _print_list(out: Console, names: Sequence[str], stands: Sequence[dict[str, Any]]) -> None:
    for name in names:
        out.print(name, markup=False)
    out.print()
    out.print(_table(stands) if stands else "No override is active.")


def _table(stands: Sequence[dict[str, Any]]) -> Any:
    rows = [
        [
            _subject(stand),
            stand["says"],
            f"until {stand['until'] or 'taken back'}",
            stand["by"],
            stand["note"] or "",
        ]
        for stand in stands
    ]
    return table("Held over the policies", ("what", "says", "until", "by", "note"), rows)


def _describe_override(entry: dict[str, Any]) -> str:
    if entry["says"] == NOTHING:
        return "nothing is held over it"
    return f"{entry['says']}{' until ' + entry['until'] if entry['until'] else ''}"


def _subject(entry: dict[str, Any]) -> str:
    if "target" in entry:
        return str(entry["target"])
    if "fleet" in entry:
        return "every fleet" if entry["fleet"] == EVERY else f"fleet of pool {entry['fleet']}"
    return "all models" if entry["model"] == EVERY else f"model {entry['model']}"
