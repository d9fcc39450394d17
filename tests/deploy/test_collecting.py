"""A run's collection: nothing of it is looked through for garbage, no grammar is read for it."""

import subprocess
import sys
from pathlib import Path

import pytest

TEST = """
import gc
import sys

import jsonschema

COLLECTED = {"collecting": not gc.isenabled(), "grammar": "lark" in sys.modules}

def test_it():
    assert COLLECTED == {"collecting": %(collecting)s, "grammar": %(grammar)s}
    assert gc.isenabled()
    assert (gc.get_freeze_count() > 0) == %(collecting)s

def test_addresses_are_checked_as_ever():
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    assert checker.conforms("https://example.org/ä", "iri")
    assert not checker.conforms("no address", "iri")
    assert "lark" in sys.modules
"""
LEFT = """
import gc

HELD = [[] for _ in range(10_000)]

def test_it():
    pass
"""
LOOKED = """
import gc

def test_it():
    found = sum(isinstance(held, list) and not held for held in gc.get_objects())
    assert (found < 5_000) == %(saves)s
"""
PLUGIN = """
from deploy import collecting

def pytest_configure(config):
    collecting.register(config)
"""


def run(folder: Path, root: Path, plugin: str, **expected: bool) -> str:
    (folder / "test_a.py").write_text(TEST % expected)
    return run_files(folder, root, plugin)


def run_files(folder: Path, root: Path, plugin: str) -> str:
    (folder / "plugged.py").write_text(plugin)
    (folder / "pytest.ini").touch()
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "plugged", "-p", "no:cacheprovider", folder],
        cwd=folder, check=False, capture_output=True, text=True,
        env={"PYTHONPATH": f"{folder}:{root}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    return answer.stdout


@pytest.mark.parametrize(
    ("plugin", "saves"), [(PLUGIN, True), pytest.param("", False, marks=pytest.mark.long)]
)
def test_collection_looks_for_no_garbage_and_reads_no_grammar(
    pytestconfig: pytest.Config, tmp_path: Path, plugin: str, saves: bool
) -> None:
    """The control: without it both are done."""
    said = run(tmp_path, pytestconfig.rootpath, plugin, collecting=saves, grammar=not saves)
    assert "2 passed" in said, said


@pytest.mark.parametrize(
    ("plugin", "saves"), [(PLUGIN, True), pytest.param("", False, marks=pytest.mark.long)]
)
def test_what_a_file_leaves_is_looked_through_once(
    pytestconfig: pytest.Config, tmp_path: Path, plugin: str, saves: bool
) -> None:
    (tmp_path / "test_b.py").write_text(LOOKED % {"saves": saves})
    (tmp_path / "test_a.py").write_text(LEFT)
    said = run_files(tmp_path, pytestconfig.rootpath, plugin)
    assert "2 passed" in said, said
