"""The command line as a whole: every command explains itself, a mistake is one line."""

from importlib.metadata import version
from pathlib import Path

import click
import pytest
import typer.main
from typer.testing import CliRunner

from gateway.cli.app import app


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], click.Command]:
    found = {}
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found |= commands(command, (*path, name))
        else:
            found[(*path, name)] = command.real()
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


@pytest.mark.parametrize(
    "path",
    sorted(set(COMMANDS) - {("serve",), ("demo",), ("up",), ("engine", "logs")}),
    ids=" ".join,
)
def test_what_prints_results_prints_json_too(path):
    assert "--json" in [name for param in COMMANDS[path].params for name in param.opts]


@pytest.mark.parametrize("width", [40, 78])
@pytest.mark.parametrize("noun", [(), ("policy",), ("engine",)])
def test_each_line_of_an_overview_is_a_whole_sentence(noun, width):
    """Longer ones were cut in the middle of a word's thought: a terminal of 80 leaves 78."""
    overview = CliRunner().invoke(app, [*noun, "--help"], terminal_width=width).stdout
    assert "..." not in overview.partition("Commands:")[2]
    group = typer.main.get_command(app)
    for word in noun:
        group = group.commands[word]
    said = "".join(overview.split())
    sentences = {
        name: command.get_short_help_str(1_000) for name, command in group.commands.items()
    }
    whole = {name: "".join(sentence.split()) for name, sentence in sentences.items()}
    assert [name for name, sentence in whole.items() if sentence not in said] == []


def test_it_says_its_version():
    answer = invoke("--version")
    assert (answer.exit_code, answer.stdout) == (0, f"breakeven {version('breakeven')}\n")


def test_without_words_it_shows_its_help():
    assert "Usage" in invoke().output


GOOD = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: default}}]
"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.format(state=tmp_path / "state"))
    return path


def test_the_configuration_may_come_from_the_environment(good):
    answer = CliRunner().invoke(app, ["check"], env={"BREAKEVEN_CONFIG": str(good)})
    assert answer.exit_code == 0
