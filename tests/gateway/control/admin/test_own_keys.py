"""Self-service over HTTP: own keys, what they spend of, how many, how long, and with whom they end.

One host whose keys may spend a little each: a key that makes keys has no more for that.
"""

import json
from typing import Any

import pytest

from gateway.clock import Clock
from gateway.control.people import may_make_keys
from ledger.identity.vouchers import HEADER, KEY_FILE, VouchedRequest, vouch

ORG = "/v1/organization"
OWN = f"{ORG}/own/keys"
PEOPLE = """
[proxy]
secret_file = "proxy.secret"
[people."ann@example.com"]
role = "viewer"
teams = ["search"]
keys = {team = "search", models = ["api"], days = 7, tags = {app = "web"}}
[people."bob@example.com"]
role = "viewer"
[people."ada@example.com"]
role = "admin"
"""
BUDGETS = [
    {"scope": "key:*", "usd": "0.002", "period": "month", "hard": True},
    {"scope": "user:*", "usd": "5", "period": "month", "hard": True},
    {"scope": "team:search", "usd": "50", "period": "month", "hard": True},
    {"scope": "global", "usd": "900", "period": "month", "hard": True},
]
MEMBER = ("inference", "usage", "keys:own")


@pytest.fixture(scope="module")
def stack(running, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    (folder / "access.toml").write_text(PEOPLE)

    def adjust(found: dict[str, Any], _ports: Any) -> None:
        retired = {"retires": "2026-01-31", "successor": "api"}
        found["models"]["old"] = {"same_as": "api", "retirement": retired}

    changes: dict[str, Any] = {
        "adjust": adjust,
        "budgets": BUDGETS,
        "limits": [{"scope": "key:*", "requests_per_minute": 1000}],
        "dashboard": {"access_file": str(folder / "access.toml")},
        "self_service": {"keys": 4, "keys_per_day": 12},
    }
    with running(folder, **changes) as found:
        found.access = folder / "access.toml"
        found.app.hot._keys._is_member = may_make_keys(found.settings)  # as a worker's ring has it
        yield found


@pytest.fixture
def ask(stack):
    """`ask(name, path, body)`: as the dashboard asks for somebody; a body makes it a POST."""

    def ask(name: str, path: str, body: Any = None) -> Any:
        method, sent = ("GET", b"") if body is None else ("POST", json.dumps(body).encode())
        key = (stack.state / KEY_FILE).read_bytes()
        word = vouch(key, name, VouchedRequest(method, path), sent, Clock().wall_us())
        headers = {HEADER: word}
        return stack.client.request(method, stack.url + path, content=sent, headers=headers)

    return ask


def maker(stack, name: str, **spec: Any) -> str:
    return stack.key(name, **{"scopes": MEMBER, **spec}).token


def make(stack, token: str, **given: Any) -> Any:
    return stack.post(OWN, {"name": "app", **given}, token)


def spend_all(stack, token: str) -> int:
    """Requests until the budget refuses."""
    for count in range(60):
        answer = stack.chat("api", token, max_tokens=200)
        if answer.status_code == 429:
            assert answer.json()["error"]["code"] == "budget_exceeded"
            return count
        assert answer.status_code == 200
    raise AssertionError("no budget held")


def test_a_key_sees_what_it_may_and_what_it_used_and_nothing_of_others(stack, patiently) -> None:
    mine = stack.key("sees", user="ann", models=("api",), tags=(("app", "web"),))
    other = stack.key("is not seen", user="bob")
    for key in (mine, other):
        stack.settled(stack.chat("api", key.token, max_tokens=5))
    shown = patiently(
        lambda: (
            (found := stack.get(f"{ORG}/key", mine.token).json())["usage"]["day"]["attempts"]
            and found
        )
    )
    assert (shown["key_id"], shown["models"], shown["usable_models"]) == (
        mine.key_id, ["api"], ["api"],
    )  # fmt: skip
    assert shown["tags"] == {"app": "web"}
    assert shown["usage"]["day"]["attempts"] == shown["usage"]["month"]["attempts"] == 1
    assert float(shown["usage"]["day"]["cost_usd"]) > 0
    budgets = {line["scope"]: line for line in shown["budgets"]}
    own = budgets[f"key:{mine.key_id}"]
    assert float(own["spent_usd"]) + float(own["left_usd"]) + float(own["held_usd"]) == 0.002
    team, house = budgets["team:search"], budgets["global"]
    assert (team["spent_usd"], team["left_usd"] is not None) == (None, True)
    assert (house["limit_usd"], house["left_usd"], house["exhausted"]) == (None, None, False)
    assert {"scope": f"key:{mine.key_id}", "requests_per_minute": 1000,
            "tokens_per_minute": None} in shown["rate_limits"]  # fmt: skip
    told = json.dumps(shown)
    assert other.key_id not in told
    assert "bob" not in told
    assert mine.token.rpartition("_")[2] not in told


def test_a_model_that_is_retired_is_none_that_a_key_may_use(stack) -> None:
    """Red before: it was listed, and each request of it refused."""
    mine = maker(stack, "has an old model", models=("api",))
    assert stack.chat("old", mine).status_code == 404
    for path in (f"{ORG}/key", f"{ORG}/own"):
        assert stack.get(path, mine).json()["usable_models"] == ["api"]


def test_a_key_of_a_key_spends_of_the_same_budget(stack, patiently) -> None:
    root = maker(stack, "spends", team="spends")
    child = make(stack, root, scopes=["inference", "keys:own"]).json()
    grandchild = make(stack, child["token"]).json()
    assert spend_all(stack, grandchild["token"]) > 0
    for token in (root, child["token"]):
        assert stack.chat("api", token, max_tokens=200).status_code == 429
    turned = stack.post(f"{OWN}/rotate", {"key_id": child["key_id"]}, root).json()
    assert stack.chat("api", turned["token"], max_tokens=200).status_code == 429
    fresh = maker(stack, "has its own", team="spends")  # the control: another key has its own
    assert stack.chat("api", fresh, max_tokens=200).status_code == 200


def test_own_keys_are_listed_and_those_of_others_are_not_there(stack, patiently) -> None:
    one, two = maker(stack, "one", team="two"), maker(stack, "two", team="two")
    made = make(stack, one, note="for the app").json()
    ids = {key["key_id"] for key in stack.get(OWN, one).json()["data"]}
    assert made["key_id"] in ids
    assert len(ids) == 2  # and itself
    assert made["key_id"] not in {key["key_id"] for key in stack.get(OWN, two).json()["data"]}
    for verb in ("rotate", "revoke"):
        answer = stack.post(f"{OWN}/{verb}", {"key_id": made["key_id"]}, two)
        unknown = stack.post(f"{OWN}/{verb}", {"key_id": "none"}, two)
        assert (answer.status_code, unknown.status_code) == (404, 404)
        assert answer.json()["error"]["code"] == unknown.json()["error"]["code"]
    secret = made["token"].rpartition("_")[2]
    assert secret not in stack.get(OWN, one).text
    admin = stack.key("reads changes", team="platform", scopes=("changes", "keys:all"))
    changes = patiently(  # the writer enters them into the log
        lambda: made["key_id"] in (text := stack.get(f"{ORG}/changes", admin.token).text) and text
    )
    for told, there in ((made["key_id"], True), ("for the app", True), (secret, False)):
        assert (told in changes) is there


def test_how_many_and_how_often_counts_keys_of_keys(stack) -> None:
    root = maker(stack, "many", team="many")
    child = make(stack, root, scopes=["inference", "keys:own"]).json()
    for token in (root, child["token"], child["token"]):
        assert make(stack, token).status_code == 200
    for token in (root, child["token"]):
        refused = make(stack, token)
        assert (refused.status_code, "4 keys are in force" in refused.text) == (403, True)
    assert stack.get(f"{ORG}/own", root).json()["keys"] == {"limit": 4, "in_force": 4}
    for _ in range(8):  # one goes, one comes, until enough came within a day
        listed = stack.get(OWN, root).json()["data"]
        last = [key for key in listed if key["state"] == "active"][-1]
        assert stack.post(f"{OWN}/revoke", {"key_id": last["key_id"]}, root).status_code == 200
        if (answer := make(stack, root)).status_code != 200:
            raise AssertionError(answer.text)
    last = [key for key in stack.get(OWN, root).json()["data"] if key["state"] == "active"][-1]
    stack.post(f"{OWN}/revoke", {"key_id": last["key_id"]}, root)
    refused = make(stack, root)
    assert (refused.status_code, refused.headers["x-should-retry"]) == (429, "false")
    assert 86_000 < int(refused.headers["retry-after"]) <= 86_400
    assert "12 keys were made within 24 hours, of 12" in refused.text


def test_what_a_key_made_ends_with_it(stack, patiently) -> None:
    root = stack.key("ends", team="ends", scopes=MEMBER)
    child = make(stack, root.token, scopes=["inference", "keys:own"]).json()
    grandchild = make(stack, child["token"]).json()
    admin = stack.key("ends others", team="platform", scopes=(*MEMBER, "keys:all"))
    turned = stack.post(f"{ORG}/keys/rotate", {"key_id": root.key_id, "overlap": "1h"}, admin.token)
    gone = stack.post(f"{ORG}/keys/revoke", {"key_id": root.key_id}, admin.token).json()
    assert "also" not in gone  # the key in its place is its maker now
    assert stack.chat("api", grandchild["token"], max_tokens=2).status_code == 200
    successor = turned.json()["key_id"]
    gone = stack.post(f"{ORG}/keys/revoke", {"key_id": successor}, admin.token).json()
    assert set(gone["also"]) == {child["key_id"], grandchild["key_id"]}
    for made in (child, grandchild):
        patiently(lambda made=made: stack.chat("api", made["token"]).status_code == 401)


def test_models_are_spelled_as_they_are_asked_for_and_no_other_is_told_of(stack) -> None:
    mine = stack.key("spells", scopes=MEMBER, models=("api",))
    made = stack.post(OWN, {"name": "x", "models": [" api "]}, mine.token).json()
    assert made["models"] == ["api"]
    assert stack.chat("api", made["token"], max_tokens=2).status_code == 200
    unknown = stack.post(OWN, {"name": "x", "models": ["nobody"]}, mine.token)
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "models")
    told = unknown.json()["error"]["message"]
    assert "`api`" in told
    assert "`own`" not in told


def test_a_person_makes_keys_within_what_the_file_says_until_it_says_so_no_more(
    stack, ask, patiently
) -> None:
    assert ask("bob@example.com", OWN).status_code == 403
    assert ask("ada@example.com", OWN).status_code == 403
    assert ask("ann@example.com", f"{ORG}/keys").status_code == 403
    for wide, param in (
        ({"models": ["own"]}, "models"),
        ({"days": 8}, "days"),
        ({"scopes": ["keys:own"]}, "scopes"),
        ({"scopes": ["usage:all"]}, "scopes"),
    ):
        answer = ask("ann@example.com", OWN, {"name": "x", **wide})
        assert (answer.status_code, answer.json()["error"]["param"]) == (403, param)
    made = ask("ann@example.com", OWN, {"name": "mine"}).json()
    assert (made["user"], made["team"], made["models"], made["tags"], made["made_by"]) == (
        "ann@example.com", "search", ["api"], {"app": "web"}, "ann@example.com",
    )  # fmt: skip
    assert made["expires"] is not None
    assert stack.chat("api", made["token"], max_tokens=2).status_code == 200
    assert stack.chat("own", made["token"]).status_code == 403
    shown = ask("ann@example.com", f"{ORG}/own").json()
    assert (shown["keys"]["in_force"], shown["days"]) == (1, 7)
    assert "user:ann@example.com" in {line["scope"] for line in shown["budgets"]}
    known = stack.access.read_text()
    stack.access.write_text("not TOML [")  # a fault of the file is nobody's word
    assert stack.chat("api", made["token"], max_tokens=2).status_code == 200
    stack.access.write_text(known.replace('[people."ann', '[people."former'))
    assert stack.chat("api", made["token"], max_tokens=2).status_code == 401
    stack.access.write_text(known)
    assert stack.chat("api", made["token"], max_tokens=2).status_code == 200
    assert ask("ann@example.com", f"{OWN}/revoke", {"key_id": made["key_id"]}).status_code == 200
    patiently(lambda: stack.chat("api", made["token"]).status_code == 401)


def test_people_hold_no_key_to_be_told_of(ask) -> None:
    assert ask("ann@example.com", f"{ORG}/key").status_code == 403
