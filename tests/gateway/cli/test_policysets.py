"""`breakeven policy show | check | diff | apply | history | rollback`."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

CONFIG = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: default, slo: {{ttft_ms: 900}}}}]
"""
CALM = "policies: [{name: calm, slo: {ttft_ms: 5000}}]\n"
KEEN = "policies: [{name: keen, slo: {ttft_ms: 100}}]\n"


@pytest.fixture
def policy(tmp_path):
    config = tmp_path / "breakeven.yaml"
    config.write_text(CONFIG.format(state=tmp_path / "state"))

    def run(*words: str, typed: str | None = None):
        command = ["policy", *words, "--config", str(config)]
        return CliRunner().invoke(app, command, input=typed)

    return run


@pytest.fixture
def given(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "new.yaml"
        path.write_text(text)
        return str(path)

    return write


def names(answer) -> str:
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)["policies"]


def test_a_set_is_put_in_force_and_taken_back(policy, given) -> None:
    applied = policy("apply", given(CALM), "--yes", "--by", "ann", "--note", "calmer", "--json")
    assert applied.exit_code == 0, applied.output
    document = json.loads(applied.stdout)
    assert (document["set"], document["by"]) == (1, "ann")
    assert "-- name: default" in document["changes"]
    assert "+- name: calm" in document["changes"]
    assert "name: calm" in names(policy("show", "--json"))
    assert policy("apply", given(KEEN), "--yes").exit_code == 0
    assert "name: calm" in policy("rollback", "--yes").stdout
    assert "name: calm" in names(policy("show", "--json"))
    assert "Set 4 is in force" in policy("rollback", "2", "--yes").stdout
    assert "name: keen" in names(policy("show", "--json"))
    assert policy("rollback", "--to-file", "--yes").exit_code == 0
    assert "name: default" in names(policy("show", "--json"))
    history = json.loads(policy("history", "--json").stdout)
    assert [item["set"] for item in history] == [5, 4, 3, 2, 1]
    assert (history[-1]["by"], history[-1]["note"]) == ("ann", "calmer")
    assert history[-1]["version"] == document["version"] == history[2]["version"]


def test_the_first_is_taken_back_to_the_file(policy, given) -> None:
    policy("apply", given(CALM), "--yes")
    assert "+- name: default" in policy("rollback", "--yes").stdout
    assert "from the configuration file" in policy("show").stdout


def test_nothing_is_stored_that_changes_nothing(policy, given) -> None:
    policy("apply", given(CALM), "--yes")
    assert "Nothing changes." in policy("apply", given(CALM), "--yes").stdout
    assert len(json.loads(policy("history", "--json").stdout)) == 1


@pytest.mark.parametrize("command", ["check", "diff", "apply"])
def test_every_fault_of_a_set_is_told_and_nothing_changes(policy, given, command) -> None:
    policy("apply", given(CALM), "--yes")
    bad = given("policies:\n  - {name: a, match: {models: [none]}}\n  - {name: b, wat: 1}\n")
    answer = policy(command, bad)
    assert answer.exit_code == 1
    assert "cannot be used: 2 errors" in answer.stderr
    assert len(json.loads(policy("history", "--json").stdout)) == 1


def test_nobody_is_asked_where_nobody_sits(policy, given) -> None:
    answer = policy("apply", given(CALM), typed="y\n")
    assert answer.exit_code == 1
    assert "use --yes" in answer.stderr
    assert policy("show").exit_code == 0
    assert json.loads(policy("history", "--json").stdout) == []


def test_a_difference_is_shown_without_being_stored(policy, given) -> None:
    policy("apply", given(KEEN), "--yes")
    assert "+  slo:" not in policy("diff", given(KEEN)).stdout
    said = policy("diff", given(CALM)).stdout
    assert "-    ttft_ms: 100.0" in said
    assert "+    ttft_ms: 5000.0" in said
    assert "): 1 policy.\n" in policy("check", given(CALM)).stdout
    assert json.loads(policy("check", given(CALM), "--json").stdout)["valid"] is True


def test_there_must_be_something_to_go_back_to(policy, given) -> None:
    policy("apply", given(CALM), "--yes")
    policy("rollback", "--yes")
    assert "there is no policy set 9" in policy("rollback", "9", "--yes").stderr
    assert "No such file" in policy("apply", "none.yaml", "--yes").stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [((), 0, "is valid"), (("--strict",), 1, "does not pass --strict: 1 warning")],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_warnings_fail_when_they_are_asked_to(policy, given, words, status, said, form) -> None:
    hidden = "policies: [{name: all}, {name: never, slo: {ttft_ms: 100}}]\n"
    answer = policy("check", given(hidden), *words, *form)
    assert answer.exit_code == status, answer.output
    if form:
        assert json.loads(answer.stdout)["valid"] is True
    else:
        assert said in answer.output
