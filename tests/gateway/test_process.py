"""What every process of a host begins with, and what it says of a word that is missing."""

import logging
from pathlib import Path

import pytest

from gateway import logs
from gateway.config.settings import load
from gateway.process import start_process
from gateway.runtime import RuntimePorts, resolve_runtime

CONFIG = "models: {chat: {targets: [openai/x]}}\nproviders: {openai: {}}\n"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Of a command line that names a configuration and what a start resolved of it."""
    config = tmp_path / "config.yaml"
    config.write_text(f"{CONFIG}state_dir: {tmp_path}\n")
    (tmp_path / "run").mkdir()
    url = f"sqlite:///{tmp_path}/ledger.db"
    runtime = resolve_runtime(
        load(config), RuntimePorts({}, {}), ledger_url=url, policy_version="v", host="h"
    )
    return ["--config", str(config), "--runtime", str(runtime.save())]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of logs that were started; none is, for this process goes on."""
    names: list[str] = []

    def start(name: str, wanted: logs.LogFormat, secrets: object) -> logging.Handler:
        names.append(name)
        return logging.NullHandler()

    monkeypatch.setattr("gateway.process.logs.start", start)
    return names


def test_it_has_its_words_the_configuration_and_a_log_of_its_name(words, started) -> None:
    further = {"worker": "its number", "fd": "a socket"}
    begun = start_process("m", "worker-{worker}", None, [*words, "--worker", "3", "--fd", "4"],
                          **further)  # fmt: skip
    assert started == ["worker-3"]
    assert (begun.given.worker, begun.given.fd) == ("3", "4")
    assert list(begun.settings.providers) == ["openai"]
    assert begun.runtime.host == "h"


@pytest.mark.parametrize("lacks", ["--config", "--runtime", "--address"])
def test_every_word_is_needed(words, started, lacks: str, capsys) -> None:
    given = [*words, "--address", "a:1"]
    place = given.index(lacks)
    with pytest.raises(SystemExit):
        start_process("m", "n", None, given[:place] + given[place + 2 :], address="where")
    assert lacks in capsys.readouterr().err
    assert started == []


def test_its_help_says_what_it_is_and_what_an_option_is(capsys) -> None:
    with pytest.raises(SystemExit):
        start_process("gateway.m", "n", "It does this.", ["--help"], address="where workers are")
    told = capsys.readouterr().out
    assert "python -m gateway.m" in told
    assert "It does this." in told
    assert "where workers are" in told
