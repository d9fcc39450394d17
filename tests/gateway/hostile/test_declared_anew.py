"""Hard budgets that are declared, lowered or struck while requests and batches are under way."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hostile_scripts import slow
from test_client_tricks import ASK, CHAT, batch_of, ended
from test_last_cents import Gate
from websockets.sync.client import connect

from gateway.config.declarations import budgets
from ledger.declared import BudgetSpec, declare
from ledger.identity.keys import KeyOrigin

LINES = 40


class Declarations:
    """What a reload of the file does to budgets: those of the test beside the host's own."""

    def __init__(self, hostile) -> None:
        self.stack, self._patiently = hostile.stack, hostile.patiently

    def apply(self, **limits_pusd: int) -> None:
        """Each team's limit of a day, in pico-USD, once workers know of it."""
        stack = self.stack
        added = [
            BudgetSpec(f"team:{team}", "day", limit, hard=True, timezone="UTC")
            for team, limit in limits_pusd.items()
        ]
        declare(
            stack.database, contracts=(), budgets=[*budgets(stack.settings), *added],
            config=("declared", "declared"), at_us=time.time_ns() // 1000,
        )  # fmt: skip
        desk = stack.app.hot._dispatcher.admission.desk

        def known() -> bool:
            limits = {team: desk.tightest((f"team:{team}",)) for team in limits_pusd}
            return all(limits[team].limit_pusd == limits_pusd[team] for team in limits)

        self._patiently(known)


@pytest.fixture
def declared(hostile) -> Iterator[Declarations]:
    made = Declarations(hostile)
    yield made
    made.apply()


def wait_at_gate(hostile, name: str, count: int) -> Gate:
    gate = Gate()
    hostile.provider.plays[name] = [gate] * count
    return gate


def open_gate(hostile, gate: Gate) -> None:
    hostile.provider.loop.call_soon_threadsafe(gate.opened.set)


def test_a_budget_that_finds_a_batch_under_way_refuses_none_of_its_lines(
    hostile, runner, declared
) -> None:
    """All of it fits by its cost, and what is out when it is declared does not by its bound."""
    team, gate = "declared", wait_at_gate(hostile, "third", LINES)
    path = batch_of(hostile, team, "third", LINES)
    hostile.patiently(lambda: gate.waiting > LINES // 2)
    seen = hostile.patiently(lambda: hostile.stack.rows("team_id = :team", team=team)[LINES // 2 :])
    bound_pusd = seen[0]["bound_pusd"]
    declared.apply(**{team: bound_pusd * LINES // 2})
    open_gate(hostile, gate)
    assert ended(hostile, team, path)["request_counts"]["completed"] == LINES
    rows = hostile.judged(team)
    assert sum(row["cost_pusd"] for row in rows) <= bound_pusd * LINES // 2


def test_who_finds_only_holds_in_the_way_is_told_to_come_again(hostile, declared) -> None:
    """Red before: it was told that there is no room until the next day, and not to retry."""
    team, count = "declared_live", 4
    gate, token = wait_at_gate(hostile, "first", count), hostile.token("declared_live")
    with ThreadPoolExecutor(count) as pool:
        sent = [pool.submit(hostile.stack.post, CHAT, ASK, token) for _ in range(count)]
        hostile.patiently(lambda: gate.waiting == count)
        (first, *_) = hostile.patiently(lambda: hostile.stack.rows("team_id = :team", team=team))
        declared.apply(**{team: first["bound_pusd"] * count})
        told = hostile.post(team, CHAT, ASK)
        open_gate(hostile, gate)
        assert [answer.result().status_code for answer in sent] == [200] * count
    assert (told.status_code, told.json()["error"]["code"]) == (429, "budget_exceeded")
    assert "once others have ended" in told.json()["error"]["message"]
    assert (told.headers["retry-after"], told.headers.get("x-should-retry")) == ("1", None)
    hostile.rows(team)  # all of it is in the books
    while (last := hostile.post(team, CHAT, ASK)).status_code == 200:
        hostile.rows(team)
    assert (last.headers["x-should-retry"], "until it resets" in last.text) == ("false", True)
    assert len(hostile.judged(team)) > count


def test_a_budget_that_is_lowered_under_a_batch_lets_in_nothing_more(
    hostile, runner, declared
) -> None:
    """What was sent is paid, all else is refused by name, and no line is left open."""
    team, gate = "lowered", wait_at_gate(hostile, "third", LINES)
    declared.apply(**{team: 10**13})
    path = batch_of(hostile, team, "third", LINES)
    hostile.patiently(lambda: gate.waiting > 5)
    declared.apply(**{team: 1})
    sent = hostile.patiently(lambda: hostile.stack.rows("team_id = :team", team=team))
    open_gate(hostile, gate)
    batch = ended(hostile, team, path)
    rows, counts = hostile.rows(team), batch["request_counts"]
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
    assert counts["completed"] == len(rows) >= len(sent)
    assert counts["completed"] + counts["failed"] == LINES
    last_us = max(row["opened_us"] for row in rows)
    assert last_us < min(row["settled_us"] for row in rows), "none began once money was spent"
    headers = hostile.stack.headers(hostile.token(team))
    url = f"{hostile.stack.url}/v1/files/{batch['error_file_id']}/content"
    errors = hostile.stack.client.get(url, headers=headers).text.splitlines()
    codes = {json.loads(line)["response"]["body"]["error"]["code"] for line in errors}
    assert (len(errors), codes) == (counts["failed"], {"budget_exceeded"})


def test_who_is_struck_from_the_access_file_ends_what_runs_and_begins_nothing(
    hostile, runner, monkeypatch
) -> None:
    """A stream goes on to its end and its bill; turns of a socket and lines of a batch do not."""
    stack, team, struck = hostile.stack, "struck", set[str]()
    monkeypatch.setattr(stack.app.hot._keys, "_is_member", lambda name: name not in struck)
    stack.key(team, team=team, user="ann", origin=KeyOrigin(member="ann"))
    gate = wait_at_gate(hostile, "third", LINES)
    path = batch_of(hostile, team, "third", LINES)
    hostile.patiently(lambda: gate.waiting > 5)
    hostile.play("first", slow(30, 0.03, stops=False))
    url, headers = f"ws://127.0.0.1:{stack.port}/v1/responses", stack.headers(hostile.token(team))
    with connect(url, additional_headers=headers, proxy=None) as socket:
        asked = {**ASK, "model": "first", "max_tokens": 50, "stream": True}
        stream, _ = hostile.begin(team, CHAT, asked)
        struck.add("ann")
        begun = len(hostile.provider.calls)
        socket.send(json.dumps({"type": "response.create", "model": "first", "input": "go"}))
        assert json.loads(socket.recv(20))["status"] == 401
        assert hostile.post(team, CHAT, ASK).status_code == 401
        read = b""
        while b"[DONE]" not in read:
            read += stream.recv(65536)
        stream.close()
    open_gate(hostile, gate)
    colleague = stack.key("colleague", team=team).token
    batch = hostile.patiently(
        lambda: (found := stack.get(path, colleague).json())["status"] == "completed" and found, 30
    )
    rows = hostile.judged(team)
    assert batch["request_counts"]["completed"] == len(rows) - 1 < LINES
    assert len(hostile.provider.calls) == begun, "nothing was sent after that"
    assert [row["cost_pusd"] for row in rows] == hostile.bills(team)
