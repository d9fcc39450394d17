"""Root of the command line; `commands` lists its commands."""

import os
from typing import Annotated, Any

import typer

from gateway.cli.commands import COMMANDS
from gateway.cli.lazy_commands import CommandGroupSpec, LateGroup, LazyCommand, group_of
from gateway.cli.main import main
from gateway.control.admin.gateway_address import API_KEY, GATEWAY, TOKEN, TOKEN_COMMAND

__all__ = ["app", "main"]


class RootCommand(LateGroup):
    """Root command with all groups."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, item in COMMANDS.items():
            self.add_command(
                group_of(name, item)
                if isinstance(item, CommandGroupSpec)
                else LazyCommand(name, item)
            )


app = typer.Typer(
    name="breakeven",
    cls=RootCommand,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version  # noqa: PLC0415  (a tenth of what a list costs)

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
            help="Use the gateway at this URL instead of this host's; "
            f"the key comes from {API_KEY} in the environment, or a person's token from {TOKEN} "
            f"or the command in {TOKEN_COMMAND}.",
        ),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Run your own GPUs and external APIs as one fleet, with the cost of each request."""
    if gateway is not None:
        _name_gateway(context, gateway)


def _name_gateway(context: typer.Context, url: str) -> None:
    """Set the gateway of this command, as the environment variable does for a shell."""
    before = os.environ.get(GATEWAY)
    os.environ[GATEWAY] = url

    def restore() -> None:
        del os.environ[GATEWAY]
        os.environ.update({} if before is None else {GATEWAY: before})

    context.call_on_close(restore)
