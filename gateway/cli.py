"""`breakeven`: the command line. One file per noun; this one holds what starts."""

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gateway import (
    cli_check,
    cli_claims,
    cli_configuration,
    cli_engine,
    cli_invoices,
    cli_keys,
    cli_ledger,
    cli_operate,
    cli_policy,
    cli_prices,
    cli_up,
)
from gateway.admin.remote import API_KEY, GATEWAY
from gateway.cli_config import Config, name_gateway, start_or_fail
from gateway.cli_output import console, fail
from gateway.errors import ConfigError
from gateway.serve import run
from ledger.database import DatabaseError

app = typer.Typer(
    name="breakeven",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(cli_keys.app, name="keys")
app.add_typer(cli_engine.app, name="engine")
app.add_typer(cli_policy.app, name="policy")
app.add_typer(cli_operate.target, name="target")
app.add_typer(cli_operate.route, name="route")
app.add_typer(cli_ledger.app, name="ledger")
app.add_typer(cli_invoices.app, name="invoices")
app.add_typer(cli_prices.app, name="prices")
app.add_typer(cli_configuration.app, name="config")
app.command("check")(cli_check.check)
app.command("claims")(cli_claims.claims_)
app.command("up")(cli_up.up)
app.command("demo")(cli_up.demo)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"breakeven {version('breakeven')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    *,
    gateway: Annotated[
        str | None,
        typer.Option(
            envvar=GATEWAY,
            metavar="URL",
            help="Ask the gateway there instead of this host's; "
            f"the key comes from {API_KEY} in the environment.",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say which it is."),
    ] = False,
) -> None:
    """Run your own GPUs and the external APIs as one fleet, and see what every request cost."""
    if gateway is not None:
        name_gateway(context, gateway)


@app.command()
def serve(config: Config = Path("breakeven.yaml")) -> None:
    """Start the gateway and what this host runs; Ctrl-C stops it all."""
    settings = start_or_fail(config)
    out = console()
    try:
        asyncio.run(run(settings, config, lambda line: out.print(line, markup=False)))
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))


def main() -> None:
    app()
