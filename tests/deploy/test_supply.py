"""What is installed says its licence, runs nothing at every start, reaches nobody when imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.supply import Package, packages, unexpected_files

ROOT = Path(__file__).parents[2]
SITE = next(Path(sys.prefix).glob("lib/python*/site-packages"))
OURS = ("gateway", "backends", "router", "ledger", "dashboard")
IMPORTS = """
import importlib, json, pkgutil, sys

reached = []

def watch(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event in ("socket.connect", "socket.sendto") and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if str(host) not in ("127.0.0.1", "::1", "localhost", "None", ""):
        reached.append([event, str(host)])

sys.addaudithook(watch)
seen = []
for top in sys.argv[1:]:
    package = importlib.import_module(top)
    for found in pkgutil.walk_packages(package.__path__, top + "."):
        if found.name == "dashboard.app":  # a script, which Streamlit runs
            continue
        try:
            seen.append(importlib.import_module(found.name).__name__)
        except ModuleNotFoundError as missing:
            ours = missing.name.partition(".")[0] in sys.argv
            if ours or not found.name.startswith("backends.engine."):
                raise  # in the engine's own environment there is more
print(json.dumps([len(seen), reached]))
"""


CALLS_HOME = """
import socket

try:
    socket.getaddrinfo("collect.invalid", 443)
except OSError:
    pass
"""


def imported(*tops: str, folder: Path = ROOT) -> tuple[int, list[list[str]]]:
    command = [sys.executable, "-c", IMPORTS, *tops]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    count, reached = json.loads(done.stdout.splitlines()[-1])
    return count, reached


def test_importing_all_of_it_reaches_nobody() -> None:
    count, reached = imported(*OURS)
    assert count > 400
    assert reached == []


def test_a_package_that_calls_home_when_imported_is_seen(tmp_path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "__init__.py").write_text("")
    (planted / "quiet.py").write_text(CALLS_HOME)
    assert imported("planted", folder=tmp_path) == (1, [["socket.getaddrinfo", "collect.invalid"]])


def test_nothing_here_runs_at_every_start() -> None:
    assert list(unexpected_files(SITE, ROOT)) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("litellm_init.pth", "import os; os.system('true')\n", "runs code at every start"),
        ("a.pth", "/tmp/elsewhere\n", "leads to /tmp/elsewhere"),
        ("_breakeven.pth", "/home/x\nimport\tos\n", "runs code at every start"),
    ],
)
def test_a_planted_file_is_named(tmp_path, name, text, told) -> None:
    (tmp_path / name).write_text(text)
    found = list(unexpected_files(tmp_path, tmp_path))
    assert found
    assert found[-1].startswith(f"{name}: {told}")


def test_our_own_folder_is_no_surprise(tmp_path) -> None:
    (tmp_path / "_breakeven.pth").write_text(f"{tmp_path}\n")
    assert list(unexpected_files(tmp_path, tmp_path)) == []


def test_every_package_says_its_licence() -> None:
    found = packages(SITE)
    assert len(found) > 50
    assert [finding.name for finding in found if finding.licence == "unknown"] == []


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT\nLicense: long\n", "MIT"),
        ("Classifier: License :: OSI Approved :: BSD License\n", "BSD License"),
        ("License: Apache-2.0\n", "Apache-2.0"),
        ("", "unknown"),
    ],
)
def test_a_licence_is_read_from_where_it_is_stated(tmp_path, metadata, licence) -> None:
    folder = tmp_path / "a-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: a\nVersion: 1\n{metadata}\n")
    assert packages(tmp_path) == [Package("a", "1", licence)]


def test_the_verb_lists_and_judges() -> None:
    command = [sys.executable, "-m", "deploy.supply"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"name", "version", "licence"} == set(json.loads(done.stdout)[0])
