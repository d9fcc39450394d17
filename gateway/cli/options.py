"""Common options of commands, equal for all commands of a kind.

Commands that change something take `--yes`. Most of them ask nothing, but scripts can always pass
it.
"""

from collections.abc import Collection
from typing import Annotated, Any

import typer
import typer.main

YES = "--yes"
# Commands by their place (`gateway.cli.commands`): those that change shared state, and others.
CHANGING = frozenset(
    {
        *("keys:create", "keys:rotate", "keys:revoke", "keyimport:import_"),
        *("fleet:pause", "fleet:resume"),
        *("engineops:drain", "engineops:resume", "engineops:restart"),
        *("engine:install", "enginepack:pack", "enginepack:unpack"),
        *("policysets:apply", "policysets:rollback", "estimates:reset"),
        *("operate:disable", "operate:enable", "operate:force", "operate:release"),
        *("ledger:migrate_", "ledger:rebuild", "ledger:retire"),
        *("invoices:import_file", "invoices:project", "invoices:post"),
        "billing_claims:waive",
        *("journals:acknowledge", "journals:salvage", "journals:drain"),
        "prices:import_prices",
        *("rates:enter", "rates:withdraw", "rates:currency"),
        *("offers:gpus", "offers:reserve"),
        *("budgets:enter", "budgets:end", "budgets:withdraw"),
        *("anomalies:mute", "anomalies:unmute"),
        *("virtualtags:enter", "virtualtags:withdraw"),
        *("businessmetrics:import_metric", "businessmetrics:withdraw"),
    }
)


def with_common_options(command: Any, place: str) -> Any:
    """Return the command with the common options that it does not define itself."""
    if place in CHANGING and not _has(command.params, YES):
        (option,) = (each for each in _options_command().params if YES in each.opts)
        option.expose_value = False  # not passed to the command's function
        command.params.append(option)
    return command


def _options_command() -> Any:
    """Define a command with the common options; Typer creates options only for commands."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command()(_common)
    return typer.main.get_command(made)


def _common(
    yes: Annotated[
        bool,
        typer.Option("--yes", help="No effect: this command never asks. Accepted for scripts."),
    ] = False,
) -> None:
    del yes


def _has(parameters: Collection[Any], option: str) -> bool:
    return any(option in parameter.opts for parameter in parameters)
