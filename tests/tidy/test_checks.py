"""Formatting, lint and strict types hold for the whole repository, as `make check` runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

BINARIES = Path(sys.executable).parent
COMMANDS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
}


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    line = [BINARIES / command[0], *command[1:]]
    return subprocess.run(line, cwd=folder, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_repository_passes(root: Path, name: str) -> None:
    answer = run(COMMANDS[name], root)
    assert answer.returncode == 0, answer.stdout[-4000:] + answer.stderr[-2000:]


@pytest.mark.parametrize("name", COMMANDS)
def test_make_check_runs_it(root: Path, name: str) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    check = makefile.partition("\ncheck:")[2].partition("\n\n")[0]
    assert f"$(VENV)/{' '.join(COMMANDS[name])}\n" in check + "\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("format", "x=1\n"),
        ("lint", '"""A."""\n\nimport os\n'),
        ("types", '"""A."""\n\n\ndef f(x: int) -> str:\n    """Wrong."""\n    return x\n'),
    ],
)
def test_a_fault_is_found(root: Path, tmp_path: Path, name: str, text: str) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(text, encoding="utf-8")
    command = [word for word in COMMANDS[name] if word != "."]
    options = {"types": ["--config-file"]}.get(name, ["--config"])
    answer = run([*command, *options, str(root / "pyproject.toml"), str(planted)], tmp_path)
    assert answer.returncode == 1, answer.stdout + answer.stderr
