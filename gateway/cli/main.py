"""Program `breakeven`: steps before the command line is imported.

A command that runs a host executes itself again (`preload`), so anything imported before that is
imported twice.
"""

import gc
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from gateway.host.preload import preload

_PLUGINS = "PYDANTIC_DISABLE_PLUGINS"


def main() -> None:
    """Run the command line of this process."""
    keep_bytecode()
    # Without this, pydantic reads all installed distributions: 5 % of a command's time.
    os.environ.setdefault(_PLUGINS, "__all__")
    preload()
    gc.disable()  # until the command is imported and its objects are frozen
    command_line: Any = importlib.import_module("gateway.cli.app")
    command_line.app()


def keep_bytecode() -> None:
    """Write bytecode to the environment of `make install` if it is off beside the sources.

    Without bytecode, each command and process compiles a thousand modules, which triples its CPU
    time.
    """
    kept = Path(sys.prefix) / "bytecode"
    if sys.dont_write_bytecode and sys.pycache_prefix is None and kept.is_dir():
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(kept)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(kept)
