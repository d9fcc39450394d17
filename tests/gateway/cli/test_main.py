"""The program keeps its bytecode and starts without what a command that runs a host reads twice."""

import os
import subprocess
import sys

import pytest

KEEPS = """
import os, sys
from pathlib import Path
sys.prefix = sys.argv[1]
from gateway.cli.main import keep_bytecode
keep_bytecode()
import gateway.followers
print(sys.dont_write_bytecode, os.environ.get("PYTHONPYCACHEPREFIX"))
"""


@pytest.mark.parametrize(
    ("installed", "environ", "kept"),
    [
        (True, {"PYTHONDONTWRITEBYTECODE": "1"}, True),
        (False, {"PYTHONDONTWRITEBYTECODE": "1"}, False),  # a wheel in an image: compiled already
        (True, {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": "/nowhere"}, False),
        (True, {}, False),  # beside the sources, as ever
    ],
)
def test_a_command_keeps_its_bytecode_where_the_installation_keeps_it(
    tmp_path, installed, environ, kept
):
    """Each command compiled a thousand modules anew, for two seconds and more."""
    folder = tmp_path / "bytecode"
    if installed:
        folder.mkdir()
    names = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    clean = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", KEEPS, str(tmp_path)],
        check=True, capture_output=True, text=True, env=clean | environ,
    )  # fmt: skip
    assert bool(list(folder.rglob("followers.*.pyc"))) is kept
    assert (done.stdout.split()[1] == str(folder)) is kept


VERSION = """
import os, sys
from gateway.cli.main import main
sys.argv = ["breakeven", "--version"]
try:
    main()
finally:
    print(os.environ["PYDANTIC_DISABLE_PLUGINS"])
"""


@pytest.mark.parametrize(
    ("environ", "disabled"), [({}, "__all__"), ({"PYDANTIC_DISABLE_PLUGINS": "logfire"}, "logfire")]
)
def test_plugins_of_pydantic_are_looked_for_where_somebody_asks(environ, disabled) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYDANTIC")}
    done = subprocess.run(
        [sys.executable, "-c", VERSION],
        check=True, capture_output=True, text=True, env=clean | environ,
    )  # fmt: skip
    told = done.stdout.split()
    assert (told[0], told[-1]) == ("breakeven", disabled)
