"""The command line as data: all commands are there, and words are judged without running."""

import re
from pathlib import Path

import pytest

from deploy.docsite.command_tree import INCOMPLETE, commands, fault_of, root_options
from gateway.cli.commands import COMMANDS
from gateway.cli.lazy_commands import CommandGroupSpec


def test_every_command_of_the_registry_is_there() -> None:
    expected = set()
    for name, item in COMMANDS.items():
        below = item.commands if isinstance(item, CommandGroupSpec) else [None]
        expected |= {(name, sub) if sub else (name,) for sub in below}
    found = list(commands())
    assert {entry.words for entry in found} == expected
    assert all(entry.command.help for entry in found)
    assert found[0].name.startswith("breakeven ")


def test_options_before_the_command_are_known() -> None:
    assert {"--gateway", "--version"} <= {name for item in root_options() for name in item.opts}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["check", "--config", "x.yaml", "--strict"], None),
        (["--gateway", "http://localhost", "policy", "show"], None),
        (["keys", "create", "--nam", "a"], "No such option"),
        (["nope"], "No such command"),
        (["keys"], INCOMPLETE),
        (["keys", "rotate"], "Missing parameter: key_id"),
        (["ledger", "export", "--from", "2026-11-01", "--format", "nope"], "is not one of"),
        (["check", "--help"], None),
    ],
)
def test_words_are_judged(words: list[str], fault: str | None, capsys) -> None:
    found = fault_of(words)
    assert (found is None) if fault is None else re.search(fault, found or "")


def test_nothing_runs(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert fault_of(["keys", "create", "--name", "a"]) is None
    assert list(tmp_path.iterdir()) == []
