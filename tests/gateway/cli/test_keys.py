"""`breakeven keys`: a key is shown once, listed without its secret, and revoked for good."""

import json
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from sqlalchemy import select
from typer.testing import CliRunner

from gateway.cli import keys as keys_command
from gateway.cli.app import app
from ledger.database import open_readonly
from ledger.orm.identity import KeyRow

MODELS = """
providers: {openai: {}}
models:
  chat: {targets: [openai/gpt-4o-mini]}
  code: {same_as: chat}
  openai/*: passthrough
"""


@pytest.fixture
def keys(tmp_path: Path):
    config = tmp_path / "breakeven.yaml"
    config.write_text(f"state_dir: {tmp_path / 'state'}\n{MODELS}")

    def run(*words: str):
        return CliRunner().invoke(app, ["keys", *words, "--config", str(config)])

    return run


@pytest.fixture
def made(keys):
    """Makes a key and returns what the program form says."""

    def make(*words: str) -> dict:
        answer = keys("create", "--name", "app", "--json", *words)
        assert answer.exit_code == 0, answer.output
        return json.loads(answer.stdout)

    return make


def listed(keys) -> list[dict]:
    return json.loads(keys("list", "--json").stdout)


def test_a_key_is_shown_once_and_only_its_hash_is_kept(keys, made, tmp_path):
    key = made("--team", "search", "--org", "acme")
    assert key["token"].startswith(f"gw_{key['key_id']}_")
    secret = key["token"].rpartition("_")[2]
    assert secret not in keys("list").output + keys("list", "--json").output
    kept = b"".join(path.read_bytes() for path in (tmp_path / "state").rglob("ledger.db*"))
    assert key["key_id"].encode() in kept
    assert secret.encode() not in kept


def test_a_key_asks_models_unless_it_is_made_to_read(keys, made):
    made()
    made("--scope", "usage:all")
    made("--scope", "inference", "--scope", "usage")
    assert [entry["scopes"] for entry in listed(keys)] == [
        ["inference"], ["usage:all"], ["inference", "usage"],
    ]  # fmt: skip
    assert "usage:all" in keys("list").output
    refused = keys("create", "--name", "app", "--scope", "everything")
    assert refused.exit_code == 2


def test_a_role_is_its_scopes_written_out(keys, made):
    made("--role", "developer")
    made("--role", "viewer")
    first, second = listed(keys)
    assert (first["role"], first["scopes"]) == ("developer", ["inference", "usage"])
    assert (second["role"], "keys:all" in second["scopes"]) == ("viewer", False)
    assert "developer" in keys("list").output
    both = keys("create", "--name", "app", "--role", "viewer", "--scope", "usage")
    assert (both.exit_code, "not both" in both.stderr) == (1, True)
    assert keys("create", "--name", "app", "--role", "root").exit_code == 2


def test_a_key_carries_its_tags(keys, made, tmp_path):
    made("--tag", "app=web", "--tag", "centre=a=b")
    engine = open_readonly(f"sqlite:///{tmp_path / 'state' / 'ledger.db'}")
    with engine.connect() as connection:
        (tags,) = connection.execute(select(KeyRow.tags)).scalars()
    assert tags == {"app": "web", "centre": "a=b"}
    answer = keys("create", "--name", "app", "--tag", "web")
    assert answer.exit_code == 1
    assert "invalid --tag `web`: write NAME=VALUE" in answer.output


def test_what_a_person_sees_begins_with_the_token(keys):
    answer = keys("create", "--name", "app")
    assert answer.stdout.startswith("gw_")
    assert "it is not shown again" in answer.stdout


def test_a_list_holds_every_key_with_its_team_and_state(keys, made):
    assert listed(keys) == []
    first = made("--team", "search", "--user", "ann", "--model", "chat", "--model", "code")
    made("--days", "30")
    item, other = listed(keys)
    assert item["key_id"] == first["key_id"]
    assert (item["team"], item["models"], item["state"]) == ("search", ["chat", "code"], "active")
    assert item["expires"] is None
    assert other["expires"] > other["created"]
    table = keys("list").stdout
    assert first["key_id"] in table
    assert "search" in table


def test_a_list_of_several_pages_is_shown_whole(keys, monkeypatch):
    names = [f"app {number}" for number in range(5)]
    for name in names:
        assert keys("create", "--name", name).exit_code == 0
    monkeypatch.setattr(
        keys_command.verbs, "ListKeysInput", partial(keys_command.verbs.ListKeysInput, limit=2)
    )
    assert [entry["name"] for entry in listed(keys)] == names


def test_a_revoked_key_stays_revoked(keys, made):
    key_id = made()["key_id"]
    assert "is revoked" in keys("revoke", key_id).stdout
    assert [entry["state"] for entry in listed(keys)] == ["revoked"]


def test_mistakes_are_told(keys):
    unknown = keys("revoke", "nobody")
    assert unknown.exit_code == 1
    assert "nobody" in unknown.stderr
    assert keys("create").exit_code == 2  # a name is needed
    assert keys("create", "--name", "x", "--days", "0").exit_code == 2


def test_a_team_belongs_to_one_organisation(keys, made):
    made("--team", "search", "--org", "acme")
    answer = keys("create", "--name", "b", "--team", "search", "--org", "other")
    assert answer.exit_code == 1
    assert "team `search` belongs to `acme`" in answer.stderr
    assert "(`--org acme`)" in answer.stderr
    assert len(listed(keys)) == 1


@pytest.mark.parametrize("name", ["ghost", "anthropic/*", "anthropic/claude", "*", "openai/"])
def test_a_key_for_a_model_that_is_not_there_is_refused(keys, name):
    answer = keys("create", "--name", "app", "--model", "chat", "--model", name)
    assert answer.exit_code == 1
    assert f"no model named `{name}`" in answer.stderr
    assert "has `chat`, `code`, `openai/*`" in answer.stderr
    assert listed(keys) == []


@pytest.mark.parametrize("name", ["chat", "code", "openai/*", "openai/gpt-4o"])
def test_a_key_for_models_that_are_there(keys, made, name):
    made("--model", name)
    assert listed(keys)[0]["models"] == [name]


def test_ids_can_be_copied_on_a_screen_of_80_columns(keys, made, monkeypatch):
    """As a terminal would show it, with names that leave no room."""
    words = ("--team", "a-team-with-a-long-name", "--org", "an-organisation-of-many-words")
    key_id = made("--days", "30", *words)["key_id"]
    monkeypatch.setattr(keys_command, "emit", partial(_shown, width=80))
    shown = keys("list").stdout.splitlines()
    assert any(line.startswith(f"{key_id} ") for line in shown)
    assert all(len(line) <= 80 for line in shown)


def _shown(_value, *, as_json, show, width):
    assert not as_json
    show(Console(highlight=False, soft_wrap=True, width=width))
