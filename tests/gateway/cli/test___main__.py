"""The package is a program, too."""

import subprocess
import sys


def test_the_package_runs_as_the_program_does() -> None:
    """Red before: "No module named gateway.cli.__main__"."""
    command = [sys.executable, "-m", "gateway.cli", "--version"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert told.stdout.startswith("breakeven ")
