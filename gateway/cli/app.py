"""`breakeven`: the command line. One file per noun; this one holds what starts."""

import asyncio
import os
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from gateway import logs
from gateway.admin.remote import API_KEY, GATEWAY, TOKEN, TOKEN_COMMAND
from gateway.cli import (
    check,
    claims,
    configuration,
    engine,
    invoices,
    keys,
    ledger,
    operate,
    policy,
    prices,
    rates,
    up,
)
from gateway.cli.config import Config, name_gateway, start_or_fail
from gateway.cli.output import fail, watched
from gateway.config.credentials import known_secrets
from gateway.errors import ConfigError
from gateway.host.serve import run
from ledger.database import DatabaseError

app = typer.Typer(
    name="breakeven",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(keys.app, name="keys")
app.add_typer(engine.app, name="engine")
app.add_typer(policy.app, name="policy")
app.add_typer(operate.target, name="target")
app.add_typer(operate.route, name="route")
app.add_typer(ledger.app, name="ledger")
app.add_typer(invoices.app, name="invoices")
app.add_typer(prices.app, name="prices")
app.add_typer(rates.app, name="rates")
app.add_typer(configuration.app, name="config")
app.command("check")(check.check)
app.command("claims")(claims.claims_)
app.command("up")(up.up)
app.command("demo")(up.demo)


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
            f"the key comes from {API_KEY} in the environment, or a person's token from {TOKEN} "
            f"or the command in {TOKEN_COMMAND}.",
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
    for_programs = settings.logs.format == "json"
    logs.start("serve", settings.logs, known_secrets(settings, os.environ), printed=for_programs)
    try:
        asyncio.run(run(settings, config, watched().say))
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))


def main() -> None:
    app()
