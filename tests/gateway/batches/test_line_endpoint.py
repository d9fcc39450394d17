"""The entrance for lines is shut to everybody but this host's runner."""

import asyncio
import json
import time
from dataclasses import replace

import httpx
import pytest

from gateway.batches import line_endpoint
from gateway.batches.authority import LineTicket, TicketAuthority, load_authority
from gateway.batches.line_endpoint import (
    PREFIX,
    LineAdmission,
    LineEndpoint,
    LineLoadTracker,
    LinePreemptor,
)
from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request import request_parser
from gateway.table_layout import TableLayout
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.journals.records import Hold
from router.idle import TightestSlo
from router.types import EngineState, StepModel, TargetHealth

PATH = f"{PREFIX}/v1/chat/completions"
BODY = {"model": "own", "max_tokens": 2, "messages": [{"role": "user", "content": "hi"}]}


def ticket(stack, **changes) -> LineTicket:
    fields = {
        "key_id": stack.key("owner", team="owners").key_id, "batch_id": "batch_e",
        "request_id": f"batch_e-1-{time.monotonic_ns()}",
        "expires_us": time.time_ns() // 1000 + 10**7,
    }  # fmt: skip
    return LineTicket(**{**fields, **changes})


def knock(stack, token: str, path: str = PATH, body: dict = BODY) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    return stack.client.post(stack.url + path, json=body, headers=headers)


@pytest.fixture(scope="module")
def authority(stack) -> TicketAuthority:
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
    forged = TicketAuthority(b"x" * 32).sign(ticket(stack))
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
    for path in ("/v1/nowhere", "/v1/models", "/v1/messages/count_tokens"):
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
    authority = TicketAuthority(b"s" * 32)
    held = LineTicket("k", "b", "r", expires_us=10**18)
    scope = {
        "path": PATH, "client": client, "server": server,
        "headers": [(b"authorization", f"Bearer {authority.sign(held)}".encode())],
    }  # fmt: skip
    clock = type("Now", (), {"wall_us": staticmethod(lambda: 1)})
    entrance = LineEndpoint(None, None, authority, None, clock)
    assert (entrance.ticket_of(scope) == held) is open_


def test_busy_engines_turn_a_line_away_without_a_trace(stack, authority, monkeypatch) -> None:
    monkeypatch.setattr("router.idle.SHARE", 0.0)
    mine = ticket(stack)
    answer = knock(stack, authority.sign(mine))
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "no_idle_engine")
    assert answer.headers["retry-after"]
    assert stack.rows("request_id = :name", name=mine.request_id) == []
    assert stack.chat("own", max_tokens=2).status_code == 200, "live requests go on"


def test_a_message_that_busy_engines_turn_away_says_that_it_waits(
    stack, authority, monkeypatch
) -> None:
    monkeypatch.setattr("router.idle.SHARE", 0.0)
    answer = knock(stack, authority.sign(ticket(stack)), f"{PREFIX}/v1/messages")
    assert (answer.status_code, answer.headers["x-breakeven-fault"]) == (503, "capacity")
    assert "code" not in answer.json()["error"]


@pytest.mark.parametrize("patient", [True, False])
def test_only_engines_that_serve_by_priority_are_told_one(
    stack, authority, monkeypatch, patient: bool
) -> None:
    sent, usual = [], request_parser.body_for

    def recording(*given, **named):
        sent.append(usual(*given, **named))
        return sent[-1]

    monkeypatch.setattr("gateway.request.request_parser.body_for", recording)
    pools = frozenset({"main", "embed"}) if patient else frozenset()
    planner = stack.app.entrance.hot._dispatcher.plans.value
    monkeypatch.setattr(planner, "_patient", pools)
    assert knock(stack, authority.sign(ticket(stack))).status_code == 200
    embedding = {"model": "embed", "input": "hello"}
    answer = knock(stack, authority.sign(ticket(stack)), f"{PREFIX}/v1/embeddings", embedding)
    assert answer.status_code == 200
    told = [json.loads(body).get("priority") for body in sent]
    assert told == [1 if patient else None, None]


HELD = BudgetRefusal("team:search@month", 100, 5, 0, 10**15, unspent_pusd=31)


class Desk:
    """`remaining_pusd`: what is not spent; `answer`: what the desk says to a hold."""

    def __init__(self, answer, room: int | None) -> None:
        self._answer, self._room = answer, room

    async def hold(self, *_):
        return self._answer

    def remaining_pusd(self, _) -> int | None:
        return self._room


async def test_what_is_held_is_waited_for() -> None:
    for room in (30, 31, None):
        with pytest.raises(RequestError) as raised:
            await LineAdmission(Desk(HELD, room)).hold("a", ("team:search",), 30)
        assert raised.value.kind == "not_idle"
        assert HELD.scope in raised.value.message


async def test_what_is_spent_is_final() -> None:
    spent = replace(HELD, unspent_pusd=29)
    for desk in (Desk(HELD, 29), Desk(spent, 30), Desk(spent, None)):
        assert await LineAdmission(desk).hold("a", ("team:search",), 30) == spent


async def test_with_room_there_are_holds() -> None:
    holds = (Hold("team:search@month", 1, 30),)
    assert await LineAdmission(Desk(holds, 0)).hold("a", ("team:search",), 30) == holds


STEP = StepModel(a_s=5e-3, b_s=30e-6, c_s=50e-9, d_s=30e-6, t0_s=15e-3)


def state(running: int) -> EngineState:
    return EngineState(
        TargetHealth.HEALTHY, STEP, running, 0, 0.0, 0.0, 100_000, 0.0, 0.0, 16, 100, 2048
    )  # fmt: skip


class Reply:
    def __init__(self, name: str, opened_s: float, ended: list[str]) -> None:
        self.request_id, self.opened_s, self._ended = name, opened_s, ended

    def end(self, why: str) -> None:
        assert why == "client_gone"
        self._ended.append(self.request_id)


class Open:
    def __init__(self) -> None:
        self.ended: list[str] = []
        self.replies = [Reply(f"line-{n}", float(n), self.ended) for n in range(6)]

    def open_replies(self) -> list[Reply]:
        return [reply for reply in self.replies if reply.request_id not in self.ended]


@pytest.fixture
def flights(tmp_path):
    layout = TableLayout(workers=1, engines=("pool:a/0", "pool:b/0"), apis=())
    board = SharedLoadTable(tmp_path / "board", layout)
    made = LineLoadTracker(board, 0)
    made._engines = {f"line-{n}": n % 2 for n in range(6)} | {"gone": 0}
    yield made
    board.close()


def test_the_newest_of_a_strained_engine_ends_one_at_a_time(flights) -> None:
    hot, running = Open(), {0: 95, 1: 50}
    room = LinePreemptor(hot, flights, lambda row: state(running[row]), lambda _: TightestSlo())
    assert room.preempt_lines() == 1
    assert hot.ended == ["line-4"]
    assert room.preempt_lines() == 1
    assert hot.ended == ["line-4", "line-2"]
    running[0] = 60
    assert room.preempt_lines() == 0


def test_what_is_over_is_forgotten(flights) -> None:
    assert flights.by_engine(["line-1", "elsewhere"]) == {1: ["line-1"]}
    assert flights.by_engine(["line-0", "line-1"]) == {1: ["line-1"]}


def test_a_line_that_made_room_is_told_so_billed_and_run_again(
    stack, client, line, runner, monkeypatch, patiently
) -> None:
    """Through the whole gateway: cut in the middle, it ends up answered by another try."""

    def rows() -> list[dict]:
        return stack.rows("request_id LIKE :id", id=f"{made['id']}-%")

    monkeypatch.setattr(
        "gateway.batches.line_endpoint.reason_to_preempt", lambda *_: "live traffic"
    )
    made = client.make([line("a", max_tokens=400, ignore_eos=True)])
    patiently(lambda: any(row["status"] == "client_gone" for row in rows()))
    monkeypatch.undo()
    done = client.ended(made)
    assert done["request_counts"]["completed"] == 1
    patiently(lambda: rows()[-1]["status"] == "finished")
    *cut, _ = rows()
    assert {row["status"] for row in cut} == {"client_gone"}
    assert len({row["request_id"] for row in rows()}) == len(rows()) >= 2
    assert runner._carrier.tally.again >= 1


def test_what_the_runner_hears(stack, monkeypatch) -> None:
    monkeypatch.setattr(
        "gateway.batches.line_endpoint.reason_to_preempt", lambda *_: "live traffic"
    )
    ticket = LineTicket(
        stack.key("owner").key_id, "batch_m", "batch_m-1-1", Clock().wall_us() + 10**7
    )
    token = load_authority(stack.runtime.run_dir).sign(ticket)
    body = {"model": "own", "max_tokens": 900, "ignore_eos": True,
            "messages": [{"role": "user", "content": "hi"}]}  # fmt: skip
    answer = stack.client.post(
        f"{stack.url}{PREFIX}/v1/chat/completions", content=json.dumps(body),
        headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
    )  # fmt: skip
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "made_room")
    assert answer.headers["x-request-id"] == "batch_m-1-1"


async def test_nobody_looks_for_room_before_a_line_is_at_an_engine(tmp_path, monkeypatch) -> None:
    """Ten looks a second were a third of what an idle worker did."""
    layout = TableLayout(workers=1, engines=("pool:a/0", "pool:b/0"), apis=())
    board = SharedLoadTable(tmp_path / "board", layout)
    lines, hot, looks = LineLoadTracker(board, 0), Open(), []
    room = LinePreemptor(hot, lines, lambda _: state(0), lambda _: TightestSlo())
    look = room.preempt_lines

    def counted() -> int:
        looks.append(1)
        return look()

    async def passes_by() -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    monkeypatch.setattr(room, "preempt_lines", counted)
    monkeypatch.setattr(line_endpoint, "LOOK_S", 0.0)
    task = asyncio.create_task(room.run())
    await passes_by()
    assert not looks
    lines._engines["line-1"] = 0
    lines._placed.set()
    await passes_by()
    seen = len(looks)
    assert seen > 10
    hot.ended.append("line-1")  # it is over
    await passes_by()
    assert len(looks) <= seen + 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    board.close()
