"""Commands `breakeven up` and `breakeven demo`: a running fleet without a configuration.

`up` starts gateway and dashboard first, while the engine's environment is installed. The engine
joins when it is healthy; until then, requests spill.
"""

import asyncio
import os
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from backends.engine import install as installation
from gateway.cli.output import fail, watching_console
from gateway.cli.start_config import start_or_fail
from gateway.config.starter import USUAL_PORTS, wanted_ports
from gateway.demo.start import DemoStart
from gateway.errors import ConfigError
from gateway.host.start import DONE, StartSequence
from ledger.database import DatabaseError

ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", help="Your configuration; default: a new one with a tiny model."
    ),
]
GatewayPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        show_default="8080, or the next free port",
        help="The gateway's port. Dashboard and engines take the ports after it.",
    ),
]
DashboardPort = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65535,
        show_default="8501 or --port + 1, or the next free port",
        help="The dashboard's port.",
    ),
]


def up(
    config: ConfigFile = None,
    keys: Annotated[
        bool,
        typer.Option(help="Use the provider keys of the environment, under $1 a day in all."),
    ] = False,
    port: GatewayPort = None,
    dashboard_port: DashboardPort = None,
) -> None:
    """Start everything for a first look, without a configuration.

    Gateway, ledger and dashboard start first; an engine joins when it is healthy.
    """
    if config is not None and (port or dashboard_port):
        fail(f"the ports are {config}'s: server.port and dashboard.port there")
    if config is not None:
        start_or_fail(config)
    with _Display() as display:
        _run(
            StartSequence(
                config,
                keys=keys,
                ports=USUAL_PORTS if config else wanted_ports(port, dashboard_port),
                say=display.print_line,
                report=display.report,
                environ=dict(os.environ),
            )
        )


def demo(port: GatewayPort = None, dashboard_port: DashboardPort = None) -> None:
    """Start simulated engines, 30 replayed days and live traffic; no keys."""
    with _Display() as display:
        _run(
            DemoStart(
                wanted_ports(port, dashboard_port), say=display.print_line, environ=dict(os.environ)
            )
        )


def _run(start: StartSequence | DemoStart) -> None:
    try:
        asyncio.run(start.run())
    except ConfigError as error:
        fail("\n".join(error.faults))
    except (DatabaseError, TimeoutError) as error:
        fail(str(error))


class _Display:
    """Printed lines with a progress bar below during an installation (on a terminal)."""

    def __init__(self) -> None:
        self._console = watching_console()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("engine: {task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._stage = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_bar()

    def print_line(self, line: str) -> None:
        self._console.print_line(line)

    def report(self, news: installation.InstallProgress) -> None:
        if news.stage == DONE:
            self._end_bar()
            return
        if news.stage != self._stage:
            self._stage = news.stage
            self.print_line(f"   engine: {news.stage}: {news.message}")
        if not self._console.is_terminal:
            return
        if self._task is None:
            self._bar.start()
            self._task = self._bar.add_task(news.message, total=None)
        done = news.fraction
        self._bar.update(
            self._task,
            description=f"{news.stage}: {news.message}",
            total=None if done is None else 1.0,
            completed=done or 0.0,
        )

    def _end_bar(self) -> None:
        """Stop the bar if it was started; otherwise stopping prints an empty line."""
        if self._task is not None:
            self._bar.stop()
