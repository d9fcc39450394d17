"""`breakeven up` and `breakeven demo`: from nothing to a running fleet, saying what happens.

`up` starts gateway and dashboard first; the engine's environment is made beside them and the
engine joins when it is healthy. Until then requests spill, which is the first thing to see.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli_output import console, fail
from gateway.errors import ConfigError
from gateway.start import Start
from gateway.start_demo import DemoStart
from ledger.database import DatabaseError

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Your configuration; without one a tiny model is made."),
]


def up(
    config: ConfigFile = None,
    keys: Annotated[
        bool,
        typer.Option(help="Use the provider keys of the environment, under $1 a day in all."),
    ] = False,
) -> None:
    """Start everything for a first look: engine, gateway, ledger and dashboard."""
    _run(Start(config, keys=keys, say=_say, environ=dict(os.environ)))


def demo() -> None:
    """Simulated engines and providers, 30 replayed days, live traffic: no GPU, no keys."""
    _run(DemoStart(say=_say, environ=dict(os.environ)))


def _run(start: Start | DemoStart) -> None:
    try:
        asyncio.run(start.run())
    except ConfigError as error:
        fail("\n".join(error.faults))
    except DatabaseError as error:
        fail(str(error))


def _say(line: str) -> None:
    console().print(line, markup=False)
    sys.stdout.flush()
