"""The desk's bounds: what it reads, how many it lets wait, and the errors that it tells."""

import threading

import msgspec
import pytest

from gateway.admin import overrides
from gateway.admin.desk import AT_ONCE, actor
from gateway.admin.every import VERBS
from gateway.roles import ROLES, Role

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def admin(stack) -> str:
    return stack.key("desk", scopes=tuple(ROLES[Role.ADMIN])).token


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/targets/disable", {}, "target"),
        ("/targets/disable", {"target": 3}, "target"),
        ("/targets/disable", {"target": "alpha", "more": 1}, "more"),
        ("/targets/disable", {"target": "alpha", "note": "x" * 501}, "note"),
        ("/routes/force", {"to": "nowhere"}, "to"),
        ("/policies/history?limit=0", None, "limit"),
        ("/policies/history?limit=x", None, "limit"),
        ("/policies/history?wat=1", None, "wat"),
        ("/policies/history?limit=1&limit=2", None, "limit"),
    ],
)
def test_an_error_names_the_member_at_fault(stack, admin, path, body, param) -> None:
    asked = stack.get(FOR + path, admin) if body is None else stack.post(FOR + path, body, admin)
    assert asked.status_code == 400
    assert asked.json()["error"]["param"] == param


LEAST = {
    "policies": "policies: []", "name": "x", "target": "alpha", "to": "own", "engine": "pool:main",
    "key_id": "none", "source": "a.csv", "content": "YQ==", "invoice": 1, "approves": "x",
    "pool": "main", "usd_per_hour": "2", "provider": "up", "project": "p", "page": "plan",
    "turned": {}, "currency": "EUR", "per_usd": "0.9", "day": "2026-01-02",
}  # fmt: skip


@pytest.mark.parametrize(
    "verb", [one for one in VERBS if one.method == "POST"], ids=lambda one: one.name
)
def test_no_value_of_a_member_is_an_error_of_ours(stack, admin, verb) -> None:
    """Numbers that no ledger has, texts that PostgreSQL does not store."""
    members = msgspec.structs.fields(verb.given)
    least = {one.name: LEAST[one.name] for one in members if one.required}
    for one in members:
        for odd in (2**63, "\0"):
            answer = stack.post(FOR + verb.path, {**least, one.name: odd}, admin)
            assert answer.status_code == 400, (one.name, odd, answer.text)
            assert answer.json()["error"]["param"] == one.name


def test_a_note_is_one_line_that_steers_no_terminal(stack, admin) -> None:
    for note in ("a\nb", "\x1b[2J", "\u202e"):
        given = {"target": "alpha", "note": note}
        answer = stack.post(FOR + "/targets/disable", given, admin)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "note")


def test_bodies_are_bounded(stack, admin) -> None:
    large = {"target": "x" * overrides.DISABLE.largest}
    assert stack.post(FOR + "/targets/disable", large, admin).status_code == 413


def test_one_works_at_a_time_and_few_wait(stack, admin, monkeypatch, patiently) -> None:
    begun, go, at_once = [], threading.Event(), []

    def slow(place, given):
        begun.append(1)
        at_once.append(len(begun))
        go.wait(20)
        begun.pop()
        return {"object": "list", "data": []}

    monkeypatch.setitem(overrides.ROUTES.__dict__, "work", slow)
    found = []
    asking = [
        threading.Thread(target=lambda: found.append(stack.get(FOR + "/routes", admin).status_code))
        for _ in range(AT_ONCE + 3)
    ]
    for one in asking:
        one.start()
    patiently(lambda: found.count(503) == 3)
    assert stack.get("/healthz").status_code == 200  # the loop is free
    go.set()
    for one in asking:
        one.join()
    assert found.count(200) == AT_ONCE
    assert set(at_once) == {1}


def test_who_acts_is_the_keys_user_or_the_key(stack) -> None:
    class Identity:
        user_id, key_id = None, "k1"

    assert actor(Identity()) == "key:k1"
    Identity.user_id = "ann"
    assert actor(Identity()) == "ann"
