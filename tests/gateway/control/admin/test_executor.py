"""The desk's bounds: what it reads, how many it lets wait, and the errors that it tells."""

import threading
from types import SimpleNamespace

import msgspec
import pytest

from gateway.control.access import caller_of
from gateway.control.admin import executor, overrides
from gateway.control.admin.executor import AT_ONCE, EACH, actor
from gateway.control.operations import OPERATIONS
from gateway.control.roles import ROLES, KeyRole

FOR = "/v1/organization"


@pytest.fixture(scope="module")
def admin(stack) -> str:
    return stack.key("desk", scopes=tuple(ROLES[KeyRole.ADMIN])).token


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
    "rules": ["x: team=x"], "lines": [{"day": "2026-01-02", "value": 1}],
    "turned": {}, "currency": "EUR", "per_usd": "0.9", "day": "2026-01-02",
    "scope": "team:x", "usd": "5", "by": "team", "attempts": ["none"], "tokens_per_minute": 1_000,
    "prices": [{"gpu": "L4", "usd_per_hour": "1", "day": "2026-01-02", "source": "a list"}],
}  # fmt: skip


@pytest.mark.parametrize(
    "verb", [named for named in OPERATIONS if named.method == "POST"], ids=lambda named: named.name
)
def test_no_value_of_a_member_is_an_error_of_ours(stack, admin, verb) -> None:
    """Numbers that no ledger has, texts that PostgreSQL does not store."""
    members = msgspec.structs.fields(verb.given)
    least = {member.name: LEAST[member.name] for member in members if member.required}
    for member in members:
        odd_numbers = ("NaN", "-Infinity", "1e-99999") if "Decimal" in str(member.type) else ()
        for odd in (2**63, "\0", *odd_numbers):
            answer = stack.post(FOR + verb.path, {**least, member.name: odd}, admin)
            assert answer.status_code == 400, (member.name, odd, answer.text)
            assert answer.json()["error"]["param"] == member.name


def test_a_note_is_one_line_that_steers_no_terminal(stack, admin) -> None:
    for note in ("a\nb", "\x1b[2J", "\u202e"):
        given = {"target": "alpha", "note": note}
        answer = stack.post(FOR + "/targets/disable", given, admin)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "note")


def test_bodies_are_bounded(stack, admin) -> None:
    large = {"target": "x" * overrides.targets_disable.largest}
    assert stack.post(FOR + "/targets/disable", large, admin).status_code == 413


@pytest.fixture
def slow(monkeypatch):
    """A verb that goes on until it is let go; `at_once` says how many were in work with it."""
    begun, go, at_once = [], threading.Event(), []

    def working(place, given):
        begun.append(1)
        at_once.append(len(begun))
        go.wait(20)
        begun.pop()
        return {"object": "list", "data": []}

    monkeypatch.setitem(overrides.routes_list.__dict__, "work", working)
    yield SimpleNamespace(go=go, at_once=at_once, asking=[])
    go.set()


def _ask(stack, slow, token: str, times: int, found: list[int]) -> None:
    def ask() -> None:
        found.append(stack.get(FOR + "/routes", token).status_code)

    for _ in range(times):
        slow.asking.append(threading.Thread(target=ask))
        slow.asking[-1].start()


def test_one_works_at_a_time_and_few_wait(stack, admin, slow, patiently) -> None:
    """Few of a team, too: another's keys are revoked while one asks without end."""
    found, others, third = [], [], []
    scopes = tuple(ROLES[KeyRole.ADMIN])
    another, last = (stack.key(name, team=name, scopes=scopes).token for name in ("two", "three"))
    _ask(stack, slow, admin, EACH + 3, found)
    patiently(lambda: found == [503] * 3)
    _ask(stack, slow, another, AT_ONCE - EACH + 1, others)
    patiently(lambda: others == [503])
    assert stack.get(FOR + "/routes", last).status_code == 503
    assert stack.get("/healthz").status_code == 200  # the loop is free
    slow.go.set()
    for item in slow.asking:
        item.join()
    assert found.count(200) == EACH
    assert others.count(200) == AT_ONCE - EACH
    assert set(slow.at_once) == {1}
    _ask(stack, slow, admin, EACH, third)
    for item in slow.asking:
        item.join()
    assert third == [200] * EACH


def test_who_acts_is_the_keys_user_or_the_key(stack) -> None:
    class Identity:
        user_id, key_id = None, "k1"

    assert actor(Identity()) == "key:k1"
    Identity.user_id = "ann"
    assert actor(Identity()) == "ann"


def test_a_long_answer_is_written_beside_the_loop(stack, admin, monkeypatch) -> None:
    """All prices are 2.4 MB, whose writing took 55 ms from every stream of the worker."""
    wrote, loops, usual = [], [], executor.encode

    def noting(told) -> bytes:
        wrote.append(threading.current_thread())
        return usual(told)

    def answering(scope) -> object:
        loops.append(threading.current_thread())
        return caller_of(scope)

    monkeypatch.setattr(executor, "encode", noting)
    monkeypatch.setattr(executor, "caller_of", answering)
    assert stack.get(FOR + "/targets", admin).status_code == 200
    assert len(wrote) == len(loops) == 1
    assert wrote != loops
