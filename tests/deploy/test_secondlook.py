"""What failed beside others is asked again alone: green where it holds, named, and once only."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import pathlib
import pytest

@pytest.mark.parametrize("number", range({tests}))
{mark}
def test_it(number):
    looks = pathlib.Path(__file__).with_suffix(f".{{number}}")
    looks.write_text(looks.read_text() + "x" if looks.exists() else "x")
    assert number >= {failing} or len(looks.read_text()) > {times}
"""
INI = """
[pytest]
addopts = -m "not long"
markers = long: left out
"""
PLUGIN = """
from deploy.secondlook import SecondLook

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SecondLook(large=8))
"""


def ask(folder: Path, root: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run pytest without what would be loaded for nothing: a half of its start."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "plugged", "-p", "no:cacheprovider", *words],
        cwd=root, check=False, capture_output=True, text=True,
        env={"PYTHONPATH": f"{folder}:{root}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip


def run(folder: Path, root: Path, *more: str, tests: int = 8, mark: str = "", **broken: int):
    """The run's answer, and how often each test was looked at."""
    how = {"failing": 1, "times": 1} | broken
    (folder / "test_a.py").write_text(TESTS.format(tests=tests, mark=mark, **how))
    (folder / "plugged.py").write_text(PLUGIN)
    (folder / "pytest.ini").write_text(INI)
    answer = ask(folder, root, folder / "test_a.py", *more)
    looks = [len((folder / f"test_a.{number}").read_text()) for number in range(tests)]
    return answer, looks


def test_what_holds_alone_is_green_and_named(pytestconfig: pytest.Config, tmp_path: Path):
    answer, looks = run(tmp_path, pytestconfig.rootpath, "-p", "xdist", "-n", "2")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert looks == [2, 1, 1, 1, 1, 1, 1, 1]
    _, _, named = answer.stdout.partition("UNSTEADY: failed beside others, passed alone")
    assert "test_a.py::test_it[0]" in named
    assert "1 failed, 7 passed" in answer.stdout, "the first failure is not hidden"


@pytest.mark.parametrize(
    ("change", "looks"),
    [
        ({"times": 2}, 2),  # it fails again
        ({"failing": 4}, 1),  # too many for a pause of the machine
        ({"tests": 7}, 1),  # a run of chosen tests
    ],
)
def test_what_is_broken_stays_red(
    pytestconfig: pytest.Config, tmp_path: Path, change: dict[str, int], looks: int
):
    answer, seen = run(tmp_path, pytestconfig.rootpath, **change)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert seen[0] == looks
    assert "UNSTEADY" not in answer.stdout


def test_a_run_that_was_broken_off_stays_red(pytestconfig: pytest.Config, tmp_path: Path):
    """Nobody knows of those that were not run. Large all the same: the first seven passed."""
    (tmp_path / "plugged.py").write_text(PLUGIN)
    tests = TESTS.format(tests=10, mark="", failing=0, times=1)
    (tmp_path / "test_a.py").write_text(tests.replace("number >= 0", "number != 7"))
    answer = ask(tmp_path, pytestconfig.rootpath, "-x", tmp_path / "test_a.py")
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert (tmp_path / "test_a.7").read_text() == "x", "it is not asked again"


def test_long_ones_that_were_asked_for_are_looked_at_again(
    pytestconfig: pytest.Config, tmp_path: Path
):
    """By themselves they would be left out, and nothing left is nothing that holds."""
    every = ("-m", "long or not long")
    answer, looks = run(tmp_path, pytestconfig.rootpath, *every, mark="@pytest.mark.long")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert looks[0] == 2
