"""Commands `breakeven tags`: virtual tags by team, model, key or tag."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, print_result, table
from gateway.control.admin import virtualtags as verbs
from gateway.control.admin.verb import NoInput

Name = Annotated[str, typer.Argument(help="Name of the virtual tag, for example `product`.")]
Rules = Annotated[
    list[str],
    typer.Option(
        "--rule", help="Rule `VALUE: team=A|B, model=C`; the first match counts; may be repeated."
    ),
]


def list_tags(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List the virtual tags with their rules."""
    found = run_query(config, verbs.tags_list, NoInput())
    emit(found, as_json=as_json, show=lambda out: _show(out, found["data"]))


def enter(
    name: Name,
    rule: Rules,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Enter a virtual tag or replace its rules, for all past requests, too."""
    said = run_change(config, by, verbs.tags_enter, verbs.EnterTagInput(name, rule, note))
    print_result(said, f"The virtual tag {said['name']} is entered.", as_json=as_json)


def withdraw(
    name: Name,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Remove a virtual tag from the pages. No request changes."""
    said = run_change(config, by, verbs.tags_withdraw, verbs.WithdrawTagInput(name, note))
    print_result(said, f"The virtual tag {said['name']} is withdrawn.", as_json=as_json)


def _show(out: Console, found: list[dict[str, Any]]) -> None:
    cells = [[line["name"], "\n".join(line["says"]["rules"]), line["by"]] for line in found]
    out.print(table("Virtual tags", ("name", "rules", "by"), cells))
