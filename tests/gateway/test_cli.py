"""The command line as a whole: every command explains itself, `check` names every fault at once."""

import json
import socket
from pathlib import Path

import click
import pytest
import typer.main
from typer.testing import CliRunner

from gateway.cli import app


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], click.Command]:
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*path, name))
        else:
            found[(*path, name)] = command
    return found


COMMANDS = commands(typer.main.get_command(app))


def invoke(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_commands_are_there():
    assert {
        ("serve",), ("demo",), ("up",), ("check",),
        ("keys", "create"), ("keys", "list"), ("keys", "revoke"),
        ("engine", "install"), ("engine", "list"), ("engine", "plan"),
        ("policy", "explain"), ("ledger", "report"), ("ledger", "verify"),
    } <= COMMANDS.keys()  # fmt: skip


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_a_command_explains_itself_and_each_of_its_options(path):
    answer = invoke(*path, "--help")
    assert answer.exit_code == 0
    command = COMMANDS[path]
    assert command.help.strip()
    for parameter in command.params:
        if parameter.name != "help":
            assert parameter.help, parameter.name


@pytest.mark.parametrize("path", set(COMMANDS) - {("serve",), ("demo",), ("up",)}, ids=" ".join)
def test_what_prints_results_prints_json_too(path):
    assert "--json" in [name for one in COMMANDS[path].params for name in one.opts]


def test_without_words_it_shows_its_help():
    assert "Usage" in invoke().output


GOOD = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{}}}}
policies: [{{name: default}}]
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.format(state=tmp_path / "state"))
    return path


def test_check_says_what_a_valid_file_holds_and_starts_nothing(good):
    answer = invoke("check", "--config", good)
    assert answer.exit_code == 0
    assert "is valid" in answer.output
    assert "1 models, 0 pools, 1 providers, 1 policies" in answer.output
    assert not (good.parent / "state").exists()
    document = json.loads(invoke("check", "--config", good, "--json").stdout)
    assert document["models"] == ["chat"]
    assert document["policies"] == ["default"]
    assert len(document["version"]) == 12


def test_check_names_every_fault_at_once(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("models: {a: {targets: [pool:none]}, b: {targets: [nobody/x]}}\n")
    answer = invoke("check", "--config", path)
    assert answer.exit_code == 1
    assert "none" in answer.stderr
    assert "nobody" in answer.stderr
    assert answer.stdout == ""


def test_the_configuration_may_come_from_the_environment(good):
    answer = CliRunner().invoke(app, ["check"], env={"BREAKEVEN_CONFIG": str(good)})
    assert answer.exit_code == 0


def test_serve_on_a_taken_port_is_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        path = tmp_path / "taken.yaml"
        port = taken.getsockname()[1]
        path.write_text(f"state_dir: {tmp_path / 'state'}\nserver: {{port: {port}}}\n")
        answer = invoke("serve", "--config", path)
    assert answer.exit_code == 1
    assert len(answer.stderr.splitlines()) == 1
    assert "server.port: cannot listen" in answer.stderr
