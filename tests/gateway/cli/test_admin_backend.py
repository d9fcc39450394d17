"""The same command on the host and from elsewhere: the same output, the same status."""

import json

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.control.roles import ROLES, KeyRole

CALM = "policies: [{name: calm, slo: {ttft_ms: 5000}}]\n"
DEAL = "name,input_usd_per_million,output_usd_per_million\nopenai/gpt-4o,1,2\n"
BAD = "policies: [{name: calm, match: {when: 'prompt_tokens >'}}]\n"


@pytest.fixture(scope="module")
def admin(stack) -> str:
    return stack.key("admin", user="ann", scopes=tuple(ROLES[KeyRole.ADMIN])).token


@pytest.fixture
def here(stack):
    config = str(stack.state / "breakeven.yaml")
    return lambda *words: CliRunner().invoke(app, words, env={"BREAKEVEN_CONFIG": config})


@pytest.fixture
def there(stack, admin):
    """Without a configuration at all."""
    env = {"BREAKEVEN_GATEWAY": stack.url, "BREAKEVEN_API_KEY": admin}
    return lambda *words: CliRunner().invoke(app, words, env=env)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "calm.yaml").write_text(CALM)
    (tmp_path / "bad.yaml").write_text(BAD)
    (tmp_path / "deal.csv").write_text(DEAL)
    return {
        name: str(path) for name in ("calm", "bad", "deal") for path in tmp_path.glob(f"{name}.*")
    }


@pytest.mark.parametrize(
    "words",
    [
        ("policy", "show"),
        ("policy", "history", "--json"),
        ("policy", "check", "calm"),
        ("policy", "check", "bad"),
        ("policy", "diff", "calm", "--json"),
        ("policy", "diff", "bad"),
        ("policy", "rollback", "99", "--yes"),
        ("target", "list"),
        ("target", "list", "--json"),
        ("target", "disable", "pool:none"),
        ("target", "enable", "alpha"),
        ("route", "list"),
        ("route", "force", "own", "--model", "api"),
        ("prices", "show", "openai/gpt-4o-mini"),
        ("prices", "check"),
        ("prices", "diff", "--from", "deal"),
        ("prices", "diff", "--from", "none.csv"),
        ("ledger", "changes"),
        ("invoices", "list"),
        ("invoices", "show", "9"),
        ("invoices", "import", "deal", "--provider", "alpha"),
        ("engine", "drain", "pool:main", "--timeout", "a while"),
        ("keys", "list"),
        ("keys", "list", "--json"),
        ("keys", "revoke", "none"),
        ("keys", "rotate", "none"),
        ("keys", "create", "--name", "x", "--model", "ghost"),
    ],
    ids=" ".join,
)
def test_what_is_told_is_the_same(here, there, files, words) -> None:
    given = [files.get(word, word) for word in words]
    item, other = here(*given), there(*given)
    assert item.output
    assert (item.exit_code, item.stdout, item.stderr) == (
        other.exit_code,
        other.stdout,
        other.stderr,
    )


def test_a_change_from_elsewhere_is_in_force_here(stack, here, there, files, patiently) -> None:
    put = there("policy", "apply", files["calm"], "--yes", "--note", "calmer")
    assert put.exit_code == 0, put.stderr
    assert "Set 1 is in force" in put.stdout
    patiently(lambda: stack.chat("own").headers["x-breakeven-policy"] == "calm")
    assert "by ann" in here("policy", "show").stdout
    assert there("target", "disable", "alpha/m", "--for", "1h").exit_code == 0
    assert "alpha/m" in here("route", "list").stdout
    assert there("target", "enable", "alpha").exit_code == 0
    assert there("policy", "rollback", "--to-file", "--yes").exit_code == 0


def test_a_key_from_elsewhere_is_of_the_team_of_ones_own(stack, there, patiently) -> None:
    made = json.loads(there("keys", "create", "--name", "app", "--json").stdout)
    assert made["team"] == "search"
    assert stack.chat("own", made["token"], max_tokens=2).status_code == 200
    other = json.loads(there("keys", "create", "--name", "app", "--team", "ads", "--json").stdout)
    assert other["team"] == "ads"
    turned = there("keys", "rotate", made["key_id"], "--overlap", "1s")
    assert "it is not shown again" in turned.stdout
    patiently(lambda: stack.chat("own", made["token"], max_tokens=2).status_code == 401)
    assert there("keys", "revoke", other["key_id"]).stdout == f"Key {other['key_id']} is revoked.\n"


def test_who_acts_is_said_by_the_key_alone(there) -> None:
    answer = there("target", "disable", "alpha", "--by", "bob")
    assert (answer.exit_code, "leave --by out" in answer.stderr) == (1, True)


def test_a_key_is_needed_and_must_do(stack) -> None:
    def ask(token: str):
        env = {"BREAKEVEN_API_KEY": token}
        return CliRunner().invoke(app, ["--gateway", stack.url, "route", "list"], env=env)

    assert "set BREAKEVEN_API_KEY" in ask("").stderr
    assert "this API key is unknown, revoked or expired" in ask("gw_0_0").stderr
    assert "does not have the scope `operations`" in ask(stack.token).stderr
    assert ask("").exit_code == ask("gw_0_0").exit_code == ask(stack.token).exit_code == 1


@pytest.mark.parametrize("words", [("ledger", "verify"), ("serve",), ("ledger", "seal")])
def test_what_works_on_its_host_alone_does_nothing_here_instead(there, words) -> None:
    answer = there(*words)
    assert (answer.exit_code, "works where the gateway runs" in answer.stderr) == (1, True)
