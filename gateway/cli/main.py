"""The program `breakeven`: what comes before its command line is imported.

A command that runs a host executes itself anew (`preload`), so what it imports before that it
imports twice.
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
    # Pydantic would read what each installed distribution says, in a twentieth of a command's time.
    os.environ.setdefault(_PLUGINS, "__all__")
    preload()
    gc.disable()  # until the command is imported, and what is imported is looked through no more
    command_line: Any = importlib.import_module("gateway.cli.app")
    command_line.app()


def keep_bytecode() -> None:
    """Keep bytecode in the environment of `make install`, for who wants none beside the sources.

    Without any, each command and each process of a host compiles a thousand modules anew, which
    trebles its CPU time.
    """
    kept = Path(sys.prefix) / "bytecode"
    if sys.dont_write_bytecode and sys.pycache_prefix is None and kept.is_dir():
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(kept)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(kept)
