"""People at the admin API of a running gateway, with tokens of a provider that runs beside it."""

import re
import time

import httpx
import pytest
from typer.testing import CliRunner

from gateway.cli.app import app
from gateway.control.access import PUBLIC, list_operations
from gateway.control.operations import ROUTES
from gateway.control.people import MAY
from gateway.control.roles import expand_scopes
from ledger.identity.people import DashboardRole

VARIABLE = re.compile(r"\{[^}]*\}")
HOUR_S = 3600
PEOPLE = """
[proxy]
secret_file = "proxy.secret"
[oidc]
hours = 2
[people."ada@example.com"]
role = "admin"
[people."fay@example.com"]
role = "finance"
[people."*@example.com"]
role = "viewer"
[people."eve@example.com"]
role = "viewer"
teams = ["search"]
[people."out@example.com"]
role = "admin"
disabled = true
"""
CHANGES = "/v1/organization/changes"


@pytest.fixture(scope="module")
def access(tmp_path_factory):
    path = tmp_path_factory.mktemp("who") / "access.toml"
    path.write_text(PEOPLE)
    return path


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory, provider, access):
    oidc = {"issuer": provider.url, "audiences": ["breakeven-cli"], "algorithms": ["RS256"]}
    shown = {"access_file": str(access)}
    with running(tmp_path_factory.mktemp("host"), oidc=oidc, dashboard=shown) as found:
        yield found


@pytest.fixture(scope="module")
def token(provider):
    return lambda who="ada", **changes: provider.token(email=f"{who}@example.com", **changes)


def asked(stack, name: str, token: str, client: httpx.Client) -> int:
    method, _, path = name.partition(" ")
    given = {"json": {"model": "nothing-here"}} if method == "POST" else {}
    url, headers = stack.url + VARIABLE.sub("none", path), {"authorization": f"Bearer {token}"}
    return client.request(method, url, headers=headers, **given).status_code


def test_every_person_on_every_route(stack, token) -> None:
    """The matrix of `test_access`, for people: models are for keys, the rest is their role's."""
    people = {
        "ada": MAY[DashboardRole.ADMIN],
        "fay": MAY[DashboardRole.FINANCE],
        "joe": MAY[DashboardRole.VIEWER],
    }
    people |= {"eve": frozenset(), "out": frozenset()}
    tokens = {who: token(who) for who in people}
    found, told = {}, {}
    with httpx.Client(trust_env=False, timeout=60) as client:
        for name, route in list_operations(stack.app):
            for who, scopes in people.items():
                status = asked(stack, name, tokens[who], client)
                found[name, who] = {401: "who", 403: "no"}.get(status, "yes")
                needed = ROUTES[name]
                yes = needed == PUBLIC or needed in expand_scopes(scopes)
                told[name, who] = "who" if route is None else "yes" if yes else "no"
    assert found == told
    for who, words in (("ada", {"who", "yes", "no"}), ("eve", {"who", "yes", "no"})):
        assert {said for (_, item), said in told.items() if item == who} == words


def test_the_books_name_the_person(stack, token, patiently) -> None:
    made = stack.post("/v1/organization/keys/any", {"name": "named"}, token())
    assert made.status_code == 200, made.text

    def about() -> list[str]:
        said = stack.get(CHANGES, token("fay")).json()["data"]
        return [str(line) for line in said if made.json()["key_id"] in str(line)]

    assert any("ada@example.com" in item for item in patiently(about))


def test_the_command_line_sends_what_the_sign_in_s_own_program_prints(stack, token, tmp_path):
    said, mine = tmp_path / "token", {"BREAKEVEN_GATEWAY": stack.url}
    said.write_text(token() + "\n")
    for env in ({"BREAKEVEN_TOKEN_COMMAND": f"cat {said}"}, {"BREAKEVEN_TOKEN": token("joe")}):
        done = CliRunner().invoke(app, ("policy", "show"), env=mine | env)
        assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ("keys", "list"), env=mine | {"BREAKEVEN_TOKEN": token("joe")})
    assert (done.exit_code, "joe@example.com does not have the scope" in done.stderr) == (1, True)
    made = CliRunner().invoke(
        app, ("keys", "create", "--name", "x"), env=mine | {"BREAKEVEN_TOKEN": token()}
    )
    assert "a signed-in person has no team" in made.stderr


def test_an_admin_makes_keys_for_programs_and_names_the_team(stack, token) -> None:
    made = stack.post("/v1/organization/keys/any", {"name": "app", "team": "search"}, token())
    assert made.status_code == 200, made.text
    assert stack.chat(token=made.json()["token"]).status_code == 200
    refused = stack.post("/v1/organization/keys", {"name": "app"}, token())
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "team")


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"aud": "another"}, 401, "`aud`"),
        ({"iss": "https://elsewhere"}, 401, "`iss`"),
        ({"exp": 1}, 401, "expired"),
        ({"by": "ec"}, 401, "ES256"),
        ({"by": "stranger"}, 401, "signature"),
        ({"by": "public"}, 401, "HS256"),
        ({"iat": int(time.time()) - 3 * HOUR_S}, 401, "This sign-in is too old."),
        ({"email_verified": None}, 403, "email_verified"),
        ({"email_verified": "true"}, 403, "email_verified"),
        ({"email": None}, 403, "does not say `email`"),
        ({"email": "joe@elsewhere.example"}, 403, "has no role"),
        ({"email": "out@example.com"}, 403, "has no role"),
        ({"email": "*@example.com"}, 403, "has no role"),
    ],
)
def test_who_is_not_let_in(stack, provider, changes, status, words) -> None:
    answer = stack.get(CHANGES, provider.token(**changes))
    assert (answer.status_code, words in answer.text) == (status, True), answer.text
    assert "not@all" not in answer.text


def test_a_claim_of_a_role_opens_nothing(stack, provider) -> None:
    """The provider says `role: admin` of everybody; the access file alone counts."""
    viewer = provider.token(email="joe@example.com", role="admin", scope="changes keys:all")
    assert stack.get(CHANGES, viewer).status_code == 403
    assert stack.get("/v1/organization/policies", viewer).status_code == 200


def test_who_is_struck_out_is_out_with_the_next_request(stack, token, access) -> None:
    asked = token("fay")
    assert stack.get(CHANGES, asked).status_code == 200
    access.write_text(PEOPLE.replace("fay@", "fey@"))
    try:
        assert stack.get(CHANGES, asked).status_code == 403
        access.write_text("wat")
        assert stack.get(CHANGES, token()).status_code == 403
    finally:
        access.write_text(PEOPLE)
    assert stack.get(CHANGES, asked).status_code == 200


def test_a_token_beside_a_voucher_is_nobody(stack, token) -> None:
    headers = {**stack.headers(token()), "x-breakeven-person": "v1.a.b.c.d"}
    assert stack.client.get(stack.url + CHANGES, headers=headers).status_code == 401


def test_keys_go_on_and_models_take_no_tokens(stack, token) -> None:
    assert stack.chat().status_code == 200
    assert stack.chat(token=token()).status_code == 401


def test_without_an_issuer_a_token_is_no_key(run_stack, provider) -> None:
    with run_stack() as plain:
        assert plain.get(CHANGES, provider.token()).status_code == 401


def test_while_the_provider_is_away_nobody_is_let_in_and_keys_work(
    running, tmp_path, make_provider, access
) -> None:
    gone = make_provider()
    signed = gone.token()
    oidc = {"issuer": gone.url, "audiences": ["breakeven-cli"]}
    with running(tmp_path, oidc=oidc, dashboard={"access_file": str(access)}) as stack:
        gone.stop()
        answer = stack.get(CHANGES, signed)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert stack.chat().status_code == 200
