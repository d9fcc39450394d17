"""The entrance for lines is shut to everybody but this host's runner."""

import json
import time

import httpx
import pytest

from gateway import intake
from gateway.batches.authority import Authority, Ticket, load_authority
from gateway.batches.entrance import PREFIX, Entrance

PATH = f"{PREFIX}/v1/chat/completions"
BODY = {"model": "own", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}


def ticket(stack, **changes) -> Ticket:
    fields = {
        "key_id": stack.key("owner", team="owners").key_id, "batch_id": "batch_e",
        "request_id": f"batch_e-1-{time.monotonic_ns()}",
        "expires_us": time.time_ns() // 1000 + 10**7,
    }  # fmt: skip
    return Ticket(**{**fields, **changes})


def knock(stack, token: str, path: str = PATH, body: dict = BODY) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    return stack.client.post(stack.url + path, json=body, headers=headers)


@pytest.fixture(scope="module")
def authority(stack) -> Authority:
    return load_authority(stack.runtime.run_dir)


def test_a_ticket_asks_as_its_key(stack, authority) -> None:
    mine = ticket(stack)
    answer = knock(stack, authority.sign(mine))
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-request-id"] == mine.request_id
    (row,) = stack.settled(answer)
    assert (row["team_id"], row["key_id"]) == ("owners", mine.key_id)


def test_to_clients_the_path_is_not_there(stack, authority) -> None:
    unknown = stack.post("/nowhere", BODY)
    old = authority.sign(ticket(stack, expires_us=1))
    forged = Authority(b"x" * 32).sign(ticket(stack))
    for token in (stack.token, old, forged, "gw_1_2"):
        answer = knock(stack, token)
        assert answer.status_code == 404
        told = answer.json()["error"]
        assert told["code"] == unknown.json()["error"]["code"]
    bare = stack.client.post(stack.url + PATH, json=BODY)
    assert bare.status_code == 404


def test_a_ticket_is_no_key_on_the_public_paths(stack, authority) -> None:
    token = authority.sign(ticket(stack))
    for path in ("/v1/chat/completions", "/v1/files"):
        assert knock(stack, token, path).status_code == 401


def test_a_ticket_of_no_key_is_refused(stack, authority) -> None:
    assert knock(stack, authority.sign(ticket(stack, key_id="gone"))).status_code == 401
    for path in ("/v1/nowhere", "/v1/models", "/v1/messages"):
        assert knock(stack, authority.sign(ticket(stack)), PREFIX + path).status_code == 404


@pytest.mark.parametrize(
    ("client", "server", "open_"),
    [
        (("127.0.0.1", 5), ("0.0.0.0", 80), True),
        (("10.0.0.5", 5), ("10.0.0.5", 80), True),
        (("10.0.0.6", 5), ("10.0.0.5", 80), False),
        (None, None, False),
    ],
)
def test_only_this_host_may_knock(client, server, open_: bool) -> None:
    authority = Authority(b"s" * 32)
    held = Ticket("k", "b", "r", expires_us=10**18)
    scope = {
        "path": PATH, "client": client, "server": server,
        "headers": [(b"authorization", f"Bearer {authority.sign(held)}".encode())],
    }  # fmt: skip
    clock = type("Now", (), {"wall_us": staticmethod(lambda: 1)})
    entrance = Entrance(None, None, authority, None, clock)
    assert (entrance.ticket_of(scope) == held) is open_


def test_busy_engines_turn_a_line_away_without_a_trace(stack, authority, monkeypatch) -> None:
    monkeypatch.setattr("router.idle.SHARE", 0.0)
    mine = ticket(stack)
    answer = knock(stack, authority.sign(mine))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_idle_engine")
    assert answer.headers["retry-after"]
    assert stack.rows("request_id = :name", name=mine.request_id) == []
    assert stack.chat("own", max_tokens=2).status_code == 200, "live requests go on"


@pytest.mark.parametrize("patient", [True, False])
def test_only_engines_that_serve_by_priority_are_told_one(
    stack, authority, monkeypatch, patient: bool
) -> None:
    sent, usual = [], intake.body_for

    def recording(*given, **named):
        sent.append(usual(*given, **named))
        return sent[-1]

    monkeypatch.setattr("gateway.dispatch.body_for", recording)
    pools = frozenset({"main", "embed"}) if patient else frozenset()
    planner = stack.app.entrance.hot._dispatcher.planner._held.value
    monkeypatch.setattr(planner, "_patient", pools)
    assert knock(stack, authority.sign(ticket(stack))).status_code == 200
    embedding = {"model": "embed", "input": "hello"}
    answer = knock(stack, authority.sign(ticket(stack)), f"{PREFIX}/v1/embeddings", embedding)
    assert answer.status_code == 200
    told = [json.loads(body).get("priority") for body in sent]
    assert told == [1 if patient else None, None]
