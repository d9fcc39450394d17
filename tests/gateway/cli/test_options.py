"""The same options everywhere: the whole tree of commands is walked."""

from typing import Any

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.cli.commands import COMMANDS
from gateway.cli.lazy_commands import CommandGroupSpec, LazyCommand
from gateway.cli.options import CHANGING

EVERY: dict[str, str] = {
    f"{name} {verb}".strip(): place
    for name, entry in COMMANDS.items()
    for verb, place in (
        entry.commands if isinstance(entry, CommandGroupSpec) else {"": entry}
    ).items()
}
# Every other command, so that a new one is not taken for harmless by default.
READING = frozenset(
    {
        *("doctor:doctor", "fleet:status", "fleet:plan", "fleet:explain"),
        *("check:check", "claims:claims_", "estimates:show", "estimates:targets", "keys:list_keys"),
        *("enginebench:bench", "enginefit:fit", "engineplan:plan", "engineprobe:probe"),
        *("engineprofile:profile", "engineladder:ladder", "enginetune:tune"),
        *("enginequantize:quantize", "fleetplay:play", "budgets:list_budgets", "anomalies:muted"),
        *("virtualtags:list_tags", "businessmetrics:list_metrics"),
        *("engineops:status", "engineops:logs", "engineeval:evaluate", "engine:list_gpus"),
        *("policysets:show", "policysets:check", "policysets:diff", "policysets:history"),
        *("simulate:simulate", "policy:explain_command"),
        *("operate:list_targets", "operate:list_routes"),
        *("export:export", "ledger:report", "ledger:verify", "ledger:seal", "ledger:changes_"),
        "journals:findings",
        *("invoices:list_invoices", "invoices:show", "billing_claims:list_claims"),
        *("prices:show", "prices:check", "prices:diff", "rates:list_rates"),
        *("configuration:import_command", "configuration:schema_command"),
    }
)
CHANGES = [words for words, place in EVERY.items() if place in CHANGING]
NO_JSON = {"engine logs": "it prints an engine's own lines as they are"}
NOT_HERE = {  # of what changes something, what has no use for an option, and why
    "--config": {
        "engine install": "it works without a configuration", "engine pack": "likewise",
        "engine unpack": "likewise", "ledger migrate": "the address comes from the environment",
    },
    "--by": {
        "engine install": "files of this host", "engine pack": "likewise",
        "engine unpack": "likewise", "ledger migrate": "no entry of the books",
        "ledger rebuild": "likewise", "ledger retire": "likewise", "ledger drain": "likewise",
    },
    "--note": {
        "engine install": "files of this host", "engine pack": "likewise",
        "engine unpack": "likewise", "ledger migrate": "no entry of the books",
        "ledger rebuild": "likewise", "ledger retire": "likewise", "ledger drain": "likewise",
        "invoices import": "the file itself is kept", "invoices post": "the invoice says why",
        "invoices waive": "the claim says of what",
        "prices import": "the source is kept with each price",
    },
}  # fmt: skip
# They run until they are stopped, and print what happens meanwhile.
RUNNING = {"up:up", "up:demo", "serve:serve"}


def options(words: str) -> set[str]:
    command: Any = LazyCommand(words.rsplit(maxsplit=1)[-1], EVERY[words]).real()
    return {option for parameter in command.params for option in parameter.opts}


def test_every_command_is_of_one_kind() -> None:
    assert sorted(EVERY.values()) == sorted([*CHANGING, *READING, *RUNNING])


@pytest.mark.parametrize("words", CHANGES)
def test_what_changes_something_takes_the_same_options(words) -> None:
    expected = {"--yes", "--json", "--config", "--by", "--note"}
    expected -= {option for option, exempt in NOT_HERE.items() if words in exempt}
    assert expected - options(words) == set()


@pytest.mark.parametrize("words", EVERY)
def test_what_prints_a_result_prints_it_as_data_too(words) -> None:
    prints = EVERY[words] not in RUNNING and words not in NO_JSON
    assert ("--json" in options(words)) is prints


@pytest.mark.parametrize("words", EVERY)
def test_only_what_changes_something_takes_yes(words) -> None:
    assert ("--yes" in options(words)) is (EVERY[words] in CHANGING)


def test_yes_is_taken_on_the_command_line_and_told_in_the_help(tmp_path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(
        f"state_dir: {tmp_path / 'state'}\nmodels: {{a: {{targets: [openai/gpt-4o-mini]}}}}\n"
        "providers: {openai: {api_key_env: KEY}}\n"
    )
    for words in ("route force api --yes", "target disable openai --yes", "route release --yes"):
        answer = CliRunner().invoke(app, [*words.split(), "--config", str(path)])
        assert answer.exit_code == 0, answer.output
    assert "--yes" in CliRunner().invoke(app, ["route", "force", "--help"]).output
    assert CliRunner().invoke(app, ["route", "list", "--yes"]).exit_code == 2
