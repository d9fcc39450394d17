"""Commands `breakeven anomalies`: mute and unmute series with unusual days."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, moment, print_result, table
from gateway.control.admin import muting as verbs
from gateway.control.admin.verb import NoInput

Group = Annotated[
    Literal["team", "key", "model", "backend"], typer.Argument(help="Grouping of the spend.")
]
Name = Annotated[str, typer.Argument(help="The group's name, as in the report.")]


def muted(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List the muted series, and who muted them."""
    found = run_query(config, verbs.anomalies_muted, NoInput())
    emit(found, as_json=as_json, show=lambda out: _show(out, found["data"]))


def mute(
    group: Group,
    name: Name,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Mute a series: its unusual days are not reported, but its spend counts."""
    given = verbs.SeriesInput(group, name, note)
    said = run_change(config, by, verbs.anomalies_mute, given)
    print_result(said, f"The series {said['name']} is muted.", as_json=as_json)


def unmute(
    group: Group,
    name: Name,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Report a series' unusual days again."""
    given = verbs.SeriesInput(group, name, note)
    said = run_change(config, by, verbs.anomalies_unmute, given)
    print_result(said, f"The series {said['name']} is not muted any more.", as_json=as_json)


def _show(out: Console, series: list[dict[str, Any]]) -> None:
    cells = [
        [line["name"], line["by"], moment(line["entered_us"]), line["note"] or "-"]
        for line in series
    ]
    out.print(table("Muted series", ("series", "by", "since", "note"), cells))
