"""Commands `breakeven metrics`: customers, tickets or orders by day, for unit costs."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from gateway.cli.admin_backend import By, Why, run_change, run_query
from gateway.cli.config import Config
from gateway.cli.output import AsJson, emit, fail, print_result, table
from gateway.control.admin import businessmetrics as verbs
from gateway.control.admin.verb import NoInput
from ledger.csvtable import CsvTableError
from ledger.reports.business_metric import MetricFileError, TagGroup, parse_metric

Name = Annotated[str, typer.Argument(help="The metric's name, for example `tickets`.")]
File = Annotated[
    Path, typer.Argument(help="CSV with the columns `day,value` and optionally `team` or `tag`.")
]


def list_metrics(config: Config = Path("breakeven.yaml"), as_json: AsJson = False) -> None:
    """List the metrics with their number of values, first and last day."""
    found = run_query(config, verbs.metrics_list, NoInput())
    emit(found, as_json=as_json, show=lambda out: _show(out, found["data"]))


def import_metric(
    name: Name,
    file: File,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Import a file's values of a metric.

    A later value of a day and group replaces the earlier one.
    """
    try:
        found = parse_metric(file.read_bytes(), file.name)
    except (OSError, MetricFileError, CsvTableError) as error:
        fail(str(error))
    lines = []
    for item in found:
        tag = item.group.text if isinstance(item.group, TagGroup) else None
        team = item.group if isinstance(item.group, str) else None
        lines.append(verbs.MetricLine(item.day, item.value, team, tag))
    given = verbs.EnterMetricInput(name, lines, note)
    said = run_change(config, by, verbs.metrics_enter, given)
    words = f"The metric {said['name']} has {said['lines']} values of {file.name}."
    print_result(said, words, as_json=as_json)


def withdraw(
    name: Name,
    note: Why = None,
    by: By = None,
    config: Config = Path("breakeven.yaml"),
    as_json: AsJson = False,
) -> None:
    """Remove a metric with all of its values."""
    given = verbs.WithdrawMetricInput(name, note)
    said = run_change(config, by, verbs.metrics_withdraw, given)
    print_result(said, f"The metric {said['name']} is withdrawn.", as_json=as_json)


def _show(out: Console, found: list[dict[str, Any]]) -> None:
    cells = []
    for metric in found:
        days = [line["day"] for line in metric["lines"]]
        cells.append([metric["name"], str(len(days)), min(days), max(days)])
    out.print(table("Metrics", ("name", "values", "from", "to"), cells))
