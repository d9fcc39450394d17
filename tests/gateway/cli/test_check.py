"""`breakeven check`: every fault at once, by line for people, as data for programs."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app

GOOD = """
state_dir: {state}
models: {{chat: {{targets: [openai/gpt-4o-mini]}}}}
providers: {{openai: {{api_key_env: OPENAI_API_KEY}}}}
policies: [{{name: default}}]
"""
BAD = "models:\n  a: {targets: [pool:none]}\n  b: {targets: [nobody/x], wat: 1}\n"
PROVIDER = "providers: {openai: {api_key_env: KEY}}\n"
UNPRICED = "models: {a: {targets: [openai/our-own]}}\n" + PROVIDER


def invoke(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the files here: a variable that is not set is a warning."""
    for name in ("OPENAI_API_KEY", "KEY"):
        monkeypatch.setenv(name, "sk-test")


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "file.yaml"
        path.write_text(text.format(state=tmp_path / "state") if text is GOOD else text)
        return path

    return write


def test_a_valid_file_is_summed_up_and_nothing_is_started(written, tmp_path):
    answer = invoke("check", "--strict", "--config", written(GOOD))
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "is valid" in answer.stdout
    assert "1 model, 0 pools, 1 provider, 1 policy" in answer.stdout
    assert not (tmp_path / "state").exists()


def test_a_valid_file_is_data_too(written):
    answer = invoke("check", "--config", written(GOOD), "--json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["valid"], document["faults"]) == (0, True, [])
    assert (document["models"], document["policies"]) == (["chat"], ["default"])
    assert len(document["version"]) == 12


def test_every_fault_is_a_line_on_stderr(written):
    answer = invoke("check", "--config", written(BAD))
    assert (answer.exit_code, answer.stdout) == (1, "")
    head, *lines = answer.stderr.splitlines()
    assert head.endswith("file.yaml cannot be used: 4 errors")
    assert [line.partition("file.yaml:")[2].partition(": ")[0] for line in lines] == [
        "2", "2", "3", "3",
    ]  # fmt: skip


def test_faults_are_data_on_stdout(written):
    answer = invoke("check", "--config", written(BAD), "--json")
    assert (answer.exit_code, answer.stderr) == (1, "")
    document = json.loads(answer.stdout)
    assert document["valid"] is False
    assert all(
        set(fault) == {"path", "line", "message", "severity"} for fault in document["faults"]
    )
    last = document["faults"][-1]
    assert last.pop("message").startswith("unknown key; there are `adapter`, `compare_with`, ")
    assert last == {"path": "models.b.wat", "line": 3, "severity": "error"}


@pytest.mark.parametrize(
    ("text", "words", "status"),
    [(UNPRICED, (), 0), (UNPRICED, ("--strict",), 1), (BAD, (), 1), (BAD, ("--strict",), 1)],
)
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_warnings_fail_when_they_are_asked_to(written, text, words, status, form):
    assert invoke("check", "--config", written(text), *words, *form).exit_code == status


def test_a_warning_is_shown_beside_the_summary(written):
    answer = invoke("check", "--config", written(UNPRICED))
    assert "file.yaml:1: warning: models.a.targets[0]: no price for" in answer.stderr
    assert "is valid" in answer.stdout


def test_an_empty_file_is_told_what_to_hold(written):
    answer = invoke("check", "--config", written(""))
    assert answer.exit_code == 1
    assert "nothing is served" in answer.stderr


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_missing_file_is_a_fault_like_others(tmp_path, form):
    answer = invoke("check", "--config", tmp_path / "nowhere.yaml", *form)
    assert answer.exit_code == 1
    assert "nowhere.yaml" in answer.output
    assert "No such file" in answer.output


@pytest.mark.parametrize("text", [BAD, UNPRICED.replace("openai/our-own", "pool:none")])
def test_serve_refuses_with_the_same_list(written, text):
    checked, served = (invoke(word, "--config", written(text)) for word in ("check", "serve"))
    assert checked.exit_code == served.exit_code == 1
    assert checked.stderr == served.stderr


def test_a_variable_that_is_not_set_is_a_warning(written, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    answer = invoke("check", "--config", written(GOOD))
    assert answer.exit_code == 0
    assert "warning: providers.openai.api_key_env: `OPENAI_API_KEY` is not set" in answer.stderr
    assert invoke("check", "--strict", "--config", written(GOOD)).exit_code == 1


def test_a_team_that_no_key_has_is_a_warning(written, tmp_path):
    path = written(GOOD)
    assert (
        invoke("keys", "create", "--name", "laptop", "--team", "search", "-c", path).exit_code == 0
    )
    policies = "policies: [{name: a, match: {teams: [serach]}}]"
    path.write_text(path.read_text().replace("policies: [{name: default}]", policies))
    words = "no key of the ledger has the team `serach`; did you mean `search`?"
    assert words in invoke("check", "--config", path).stderr
    sets = tmp_path / "set.yaml"
    sets.write_text(policies)
    assert words in invoke("policy", "check", sets, "--config", path).stderr


def test_a_provider_in_a_private_network_is_a_warning(written):
    text = UNPRICED.replace("{api_key_env: KEY}", "{base_url: 'http://vllm.internal:8000/v1'}")
    answer = invoke("check", "--config", written(text))
    assert "providers.openai.base_url: `vllm.internal` looks like a name of a pri" in answer.stderr


def test_a_set_is_checked_before_there_is_a_ledger(written, tmp_path):
    sets = tmp_path / "set.yaml"
    sets.write_text("policies: [{name: a, match: {teams: [search]}}]")
    answer = invoke("policy", "check", sets, "--config", written(GOOD))
    assert (answer.exit_code, answer.stderr) == (0, "")
