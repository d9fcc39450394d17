"""Clients that cancel, delete, send twice, leave sockets and move keys: nothing of it is free."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from billing_provider import honest
from hostile_scripts import breaks_whole, counts_prompt, filtered, slow
from sqlalchemy import update
from websockets.sync.client import connect

from ledger.identity.keys import bump_generation, revoke_key
from ledger.orm.identity import KeyRow

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ASK = {"model": "first", "max_tokens": 20, "messages": [{"role": "user", "content": "hello there"}]}
NAME = re.compile(rb"resp_\w+")
WORDS_READ = 6  # of a stream before it is left: its provider tells no usage, text is counted
ENDED = ("completed", "failed", "expired", "cancelled")


def in_background(hostile, team: str, model: str, stream: bool) -> str:
    """The path of a background response that is being made."""
    body = {"model": model, "input": "hi", "max_output_tokens": 50, "background": True}
    before = len(hostile.provider.calls)
    if stream:
        connection, _ = hostile.begin(team, RESPONSES, {**body, "stream": True})
        read = b""
        while b'"resp_' not in read or read.count(b"word ") < WORDS_READ:
            read += connection.recv(65536)
        connection.close()
        return f"{RESPONSES}/{NAME.findall(read)[0].decode()}"
    name = hostile.post(team, RESPONSES, body).json()["id"]
    hostile.next_call(before)
    return f"{RESPONSES}/{name}"


def test_a_cancelled_background_answer_costs_what_a_left_one_does(hostile) -> None:
    """Red before: its hold was booked at once, and it was the target's failure (`timeout`)."""
    stack, paths = hostile.stack, {}
    for model, stream in product(("first", "stopping"), (False, True)):
        team = f"cancels {model} {stream}"
        hostile.play(model, slow(30, 0.07, stops=model == "stopping"))
        path = paths[team] = in_background(hostile, team, model, stream)
        stranger, mine = (stack.headers(hostile.token(name)) for name in ("stranger", team))
        for method, other in (("GET", ""), ("POST", "/cancel"), ("DELETE", "")):
            refused = stack.client.request(method, stack.url + path + other, headers=stranger)
            assert refused.status_code == 404
        assert stack.client.post(f"{stack.url}{path}/cancel", headers=mine).status_code == 200
    for team, path in paths.items():
        (row,) = hostile.judged(team)
        assert (row["status"], row["http_status"]) == ("client_gone", 499)
        if "first" in team:
            assert (row["basis"], [row["cost_pusd"]]) == ("reported", hostile.bills(team))
        assert stack.get(path, hostile.token(team)).json()["status"] == "cancelled"


def test_a_background_answer_that_is_deleted_is_paid_for(hostile) -> None:
    stack, team = hostile.stack, "deletes"
    hostile.play("first", slow(30, 0.02, stops=False))
    path = in_background(hostile, team, "first", stream=False)
    headers = stack.headers(hostile.token(team))
    assert stack.client.delete(stack.url + path, headers=headers).status_code == 200
    (row,) = hostile.judged(team)
    assert [row["cost_pusd"]] == hostile.bills(team)
    assert stack.get(path, hostile.token(team)).status_code == 404


def test_a_chain_is_held_with_all_that_it_goes_on_from(hostile) -> None:
    team, previous = "chains", None
    hostile.play("first", *[counts_prompt] * 4)
    for _ in range(3):
        body = {"model": "first", "input": "x" * 4000, "max_output_tokens": 20}
        answer = hostile.post(team, RESPONSES, {**body, "previous_response_id": previous})
        previous = answer.json()["id"]
    asked = {"model": "first", "previous_response_id": previous}
    assert hostile.post("stranger", RESPONSES, {**asked, "input": "a"}).status_code == 404
    assert hostile.post(team, f"{RESPONSES}/compact", asked).status_code == 200
    rows = hostile.judged(team)
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
    bounds = [row["bound_pusd"] for row in rows]
    assert sorted(bounds) == bounds
    assert bounds[2] > 2 * bounds[0]


def test_a_turn_that_races_its_chains_deletion_is_whole_or_not_found(hostile) -> None:
    stack, team = hostile.stack, "races"
    hostile.play("first", *[counts_prompt] * 20)
    body = {"model": "first", "input": "x" * 400, "max_output_tokens": 20}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(4):
            name = hostile.post(team, RESPONSES, body).json()["id"]
            url, headers = f"{stack.url}{RESPONSES}/{name}", stack.headers(hostile.token(team))
            gone = pool.submit(stack.client.delete, url, headers=headers)
            turn = hostile.post(team, RESPONSES, {**body, "previous_response_id": name})
            assert gone.result().status_code == 200
            assert turn.status_code in (200, 404)
    hostile.judged(team)


def test_a_socket_pays_for_what_its_warm_up_put_in_and_for_what_it_leaves(hostile) -> None:
    stack, team = hostile.stack, "sockets"
    hostile.play("first", counts_prompt, counts_prompt, slow(20, 0.02, stops=False))
    headers = {"authorization": f"Bearer {hostile.token(team)}"}
    url = f"ws://127.0.0.1:{stack.port}{RESPONSES}"
    asked = {"type": "response.create", "model": "first", "store": False, "max_output_tokens": 20}

    def turn(socket: Any, **more: Any) -> str:
        socket.send(json.dumps({**asked, **more}))
        event = json.loads(socket.recv(20))
        while event["type"] != "response.completed":
            event = json.loads(socket.recv(20))
        return event["response"]["id"]

    with connect(url, additional_headers=headers, proxy=None) as socket:
        first = turn(socket, generate=False, input="y" * 8000)
        assert hostile.rows(team) == []
        second = turn(socket, input="on", previous_response_id=first)
        assert hostile.bills(team)[0] > 8000 // 4 * 1_000_000
        turn(socket, input="on", previous_response_id=second)
        before = len(hostile.provider.calls)
        for _ in range(4):  # the others wait, and are never sent
            socket.send(json.dumps({**asked, "input": "go"}))
        hostile.next_call(before)
    rows = hostile.judged(team)
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
    assert [row["status"] for row in rows] == ["finished", "finished", "client_gone"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_key_that_is_sent_again_is_one_bill(hostile, stream) -> None:
    team, body = f"again {stream}", {**ASK, "stream": stream}

    def send(once: str, asked: Any = body, who: str = team) -> int:
        return hostile.post(who, CHAT, asked, **{"idempotency-key": once}).status_code

    hostile.token(team)
    with ThreadPoolExecutor(6) as pool:
        codes = sorted(pool.map(send, ["a"] * 6))
    assert codes == [200, 409, 409, 409, 409, 409]
    assert send("a", {**body, "max_tokens": 19}) == 422
    assert send("a", who=f"other {stream}") == 200
    hostile.play("first", breaks_whole, honest)
    assert (send("b", ASK), send("b", ASK)) == (502, 409)  # its first may be charged
    hostile.play("first", filtered, honest)
    assert (send("c", ASK), send("c", ASK)) == (400, 200)  # who was told why may ask anew
    rows = hostile.judged(team)
    assert len(rows) == 4
    hostile.judged(f"other {stream}")


def batch_of(hostile, team: str, model: str, lines: int) -> str:
    stack, headers = hostile.stack, hostile.stack.headers(hostile.token(team))
    body = {**ASK, "model": model, "max_tokens": 50}
    asked = {"method": "POST", "url": CHAT, "body": body}
    text = "\n".join(json.dumps({"custom_id": f"c{number}", **asked}) for number in range(lines))
    files, purpose = {"file": ("in.jsonl", text)}, {"purpose": "batch"}
    file = stack.client.post(f"{stack.url}/v1/files", files=files, data=purpose, headers=headers)
    made = {"input_file_id": file.json()["id"], "endpoint": CHAT, "completion_window": "24h"}
    return f"/v1/batches/{hostile.post(team, '/v1/batches', made).json()['id']}"


def ended(hostile, team: str, path: str) -> dict[str, Any]:
    token = hostile.token(team)

    def look() -> dict[str, Any] | None:
        found = hostile.stack.get(path, token).json()
        return found if found["status"] in ENDED else None

    return hostile.patiently(look, 30)


def test_a_batch_goes_as_far_as_its_teams_budget(hostile, runner) -> None:
    """At most a bound is left, so nothing was refused that had room."""
    team, usd = "tight-second", 0.0025
    hostile.play("second", *[slow(20, 0.002, stops=False)] * 30)
    counts = ended(hostile, team, batch_of(hostile, team, "second", 20))["request_counts"]
    rows = hostile.judged(team, usd)
    booked = sum(row["cost_pusd"] for row in rows)
    assert usd * 1e12 - booked < max(row["bound_pusd"] for row in rows)
    assert counts["completed"] == len(rows) < 20


def test_lines_of_a_batch_that_is_cancelled_half_way_are_paid_for(hostile, runner) -> None:
    team = "cancels a batch"
    hostile.play("third", *[slow(20, 0.03, stops=False)] * 100)
    path = batch_of(hostile, team, "third", 80)
    token = hostile.token(team)
    hostile.patiently(
        lambda: hostile.stack.get(path, token).json()["request_counts"]["completed"] > 3, 30
    )
    hostile.post(team, f"{path}/cancel", {})
    counts = ended(hostile, team, path)["request_counts"]
    rows = hostile.judged(team)
    assert counts["completed"] <= len(rows) < 80
    assert sum(row["cost_pusd"] for row in rows) >= sum(hostile.bills(team))


@pytest.mark.parametrize("change", ["moved", "revoked"])
def test_what_a_key_has_open_when_it_changes_stays_its_teams(hostile, change) -> None:
    stack, team = hostile.stack, f"before it was {change}"
    key = stack.key(team, team=team)
    hostile.play("first", slow(30, 0.03, stops=False))
    connection, _ = hostile.begin(team, CHAT, {**ASK, "max_tokens": 50, "stream": True})
    with stack.database.begin() as database:
        if change == "revoked":
            revoke_key(database, key.key_id, now_us=1)
        else:
            database.execute(update(KeyRow).where(KeyRow.id == key.key_id).values(team_id="search"))
            bump_generation(database)
    hostile.patiently(
        lambda: hostile.post(team, CHAT, ASK).status_code == (401 if change == "revoked" else 200)
    )
    read = b""
    while b"[DONE]" not in read:
        read += connection.recv(65536)
    connection.close()
    first, *later = hostile.judged(team)
    assert (first["status"], first["cost_pusd"]) == ("finished", hostile.bills(team)[0])
    assert len(later) < 20  # sent before the change was known
