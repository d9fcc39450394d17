"""A request ended at any place where it waits: nothing of it stays, wherever that is.

The client's leaving is put at the first wait, at the second, and so on until the request comes to
its end undisturbed: no connection, no promise, no hold and no open row may be left by any of them.
"""

import asyncio
import itertools
import json
from types import SimpleNamespace, coroutine

import pytest

from backends.base import Deadlines
from backends.http import HttpClient, PoolLimits
from backends.origin import Origin
from gateway.batches.authority import LineTicket
from gateway.batches.line_endpoint import PREFIX
from gateway.clock import Clock
from gateway.http.connection import CONNECTION
from gateway.request.client_response import CANCELLED, CLIENT_GONE
from gateway.request.inference_api import InferenceApi
from gateway.request.store.background_responses import BackgroundResponses

HARD = [{"scope": "global", "usd": 100, "period": "day", "hard": True}]
MESSAGES = [{"role": "user", "content": "hello there"}]


@coroutine
def counted(work, end, at: int):
    """Drive `work`; before its wait number `at` is begun, call `end`. Returns the waits it made."""
    iterator, waits = work.__await__(), 0
    step, argument = iterator.send, None
    while True:
        try:
            waited_for = step(argument)
        except StopIteration:
            return waits
        waits += 1
        if waits == at:
            end()
        try:
            argument = yield waited_for
            step = iterator.send
        except BaseException as error:  # noqa: BLE001 - as `yield from` hands it on
            step, argument = iterator.throw, error


async def asked(stack, body: dict, at: int) -> int:
    """One request whose client leaves at wait number `at`; how many waits there were."""
    hot, text = stack.app.hot, json.dumps(body).encode()
    headers = [(b"authorization", f"Bearer {stack.token}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": headers}

    async def receive():
        return {"type": "http.request", "body": text}

    async def send(_message) -> None:
        await asyncio.sleep(0)

    connection = SimpleNamespace(
        take_body=lambda: None,
        listen=lambda _: lambda: None,
        push=lambda _: False,
        answer=lambda *_: False,
        unsent=lambda: 0,
    )
    scope["extensions"] = {CONNECTION: connection}

    def leave() -> None:
        (reply,) = hot._open
        reply.end(CLIENT_GONE)

    async def whole() -> int:
        return await counted(hot(scope, receive, send), leave, at)

    return await asyncio.create_task(whole())


def left_open(stack) -> int:
    """Connections to targets that no pool keeps for the next request."""
    clients = {backend._client for backend in stack.planner._routes._fleet.backends.values()}
    return sum(pool.open - len(pool._idle) for client in clients for pool in client._pools.values())


@pytest.fixture(scope="module")
def budgeted(faulty_with):
    return faulty_with(budgets=HARD)


@pytest.mark.parametrize("fresh", [True, False])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["own", "api", "pair"])
def test_a_client_that_leaves_at_any_wait_leaves_nothing(
    budgeted, patiently, model, stream, fresh
) -> None:
    stack, since = budgeted.stack, budgeted.last_row()
    body = {"model": model, "messages": MESSAGES, "stream": stream, "max_tokens": 4}
    if model == "pair":
        stack.fault("alpha", fault="status", status=503, times=500)
    at, waits, ended = 0, 0, 0
    while at <= waits:
        at += 1
        if fresh:
            stack.call(drop_idle(stack))
        waits = stack.call(asked(stack, body, at))
        ended += 1
        patiently(lambda: left_open(stack) == 0)
    assert at > 4, "it waited nowhere"
    rows = patiently(lambda: settled(stack, since))
    assert stack.app.hot.in_flight == 0
    assert stack.promises() == [0.0] * 4
    assert held(stack) == []
    assert {row["status"] for row in rows} <= {"finished", "client_gone", "rejected"}
    budgeted.peace()


def check_nothing_is_left(stack, patiently, since: int) -> list[dict]:
    """All is settled once, and the desk has spent just that."""
    rows = patiently(lambda: settled(stack, since))
    assert stack.promises() == [0.0] * 4
    assert held(stack) == []
    assert len({row["request_id"] for row in rows}) == len(rows)
    desk = stack.app.hot._dispatcher.admission.desk
    spent = sum(piece.spent_pusd for piece in desk._slices.values())
    assert spent == sum(row["cost_pusd"] for row in stack.rows())
    return rows


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("model", ["own", "api"])
def test_a_background_response_that_is_cancelled_at_any_wait_costs_what_it_made(
    budgeted, patiently, monkeypatch, model, stream
) -> None:
    """It is whole and billed so, or cancelled."""
    stack, since = budgeted.stack, budgeted.last_row()
    place, waits, states = [0], [0], set()
    make = BackgroundResponses._make

    async def driven(self, reply, keeper, dispatch) -> None:
        def cancel() -> None:
            for made in tuple(self._made.values()):
                made.end(CANCELLED)

        waits[0] = 10**6
        waits[0] = await counted(make(self, reply, keeper, dispatch), cancel, place[0])

    monkeypatch.setattr(BackgroundResponses, "_make", driven)
    body = {"model": model, "input": "hello there", "max_output_tokens": 16, "background": True}
    while place[0] <= waits[0]:
        place[0] += 1
        answer = stack.post("/v1/responses", {**body, "stream": stream})
        name = answer.headers["x-request-id"].replace("req_", "resp_")
        path = f"/v1/responses/{name}"
        patiently(lambda: stack.app.hot.in_flight == 0)
        found = stack.get(path).json()
        states.add(found["status"])
        if found["status"] == CANCELLED:
            waits[0] = max(waits[0] % 10**6, place[0])
        else:
            assert found["status"] == "incomplete", found
            (row,) = stack.settled(answer.headers["x-request-id"])
            assert (row["status"], row["output_tokens"]) == ("finished", 16)
    monkeypatch.undo()
    last = stack.post("/v1/responses", {**body, "background": False})
    stack.settled(last.headers["x-request-id"])
    assert states == {CANCELLED, "incomplete"}
    check_nothing_is_left(stack, patiently, since)
    assert place[0] > 2, "it waited nowhere"


def test_a_line_that_makes_room_at_any_wait_costs_what_it_used(budgeted, patiently) -> None:
    stack, since = budgeted.stack, budgeted.last_row()
    entrance, numbers = stack.app.entrance, itertools.count()
    text = json.dumps({"model": "own", "messages": MESSAGES, "max_tokens": 4}).encode()
    told: list[int] = []

    async def send(message) -> None:
        await asyncio.sleep(0)
        told.extend([message["status"]] if "status" in message else [])

    async def line(at: int) -> int:
        name = f"batch_c-{next(numbers)}-1"
        ticket = LineTicket(stack.key("default").key_id, "batch_c", name, Clock().wall_us() + 10**8)
        parts = iter([{"type": "http.request", "body": text}])

        async def receive():
            return next(parts, None) or await asyncio.Event().wait()

        path = PREFIX + "/v1/chat/completions"
        token = entrance._authority.sign(ticket).encode()
        headers = [(b"authorization", b"Bearer " + token)]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
        scope |= {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "extensions": {}}

        def make_room() -> None:
            for reply in tuple(entrance.hot._open):
                reply.end(CLIENT_GONE)

        async def whole() -> int:
            return await counted(entrance(ticket, scope, receive, send), make_room, at)

        return await asyncio.create_task(whole())

    at, waits = 0, 0
    while at <= waits:
        at += 1
        waits = stack.call(line(at))
    assert at > 4, "it waited nowhere"
    rows = check_nothing_is_left(stack, patiently, since)
    assert {row["status"] for row in rows} == {"finished", "client_gone"}
    assert set(told) == {200, 503}


def settled(stack, since: int) -> list:
    """All of them, once the last one is there, which nothing disturbed."""
    rows = stack.rows("seq > :since", since=since)
    done = rows and all(row["settled_us"] for row in rows) and rows[-1]["status"] == "finished"
    return rows if done else []


def held(stack) -> list:
    desk = stack.app.hot._dispatcher.admission.desk
    return [piece.held_pusd for piece in desk._slices.values() if piece.held_pusd]


async def drop_idle(stack) -> None:
    """The next request has to connect."""
    for backend in stack.planner._routes._fleet.backends.values():
        for pool in backend._client._pools.values():
            for connection in list(pool._idle):
                connection.abort()


@pytest.mark.parametrize("connections", [1, 2])
def test_waiting_for_a_connection_can_be_ended_at_any_wait(faulty, patiently, connections) -> None:
    """More requests than connections, each ended somewhere: those after them find all slots."""
    origin = Origin.parse(f"http://127.0.0.1:{faulty.stack.ports['alpha']}")[0]
    payload = b"POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"
    deadlines = Deadlines(connect_s=5.0, head_s=5.0, idle_s=5.0)

    async def one(client: HttpClient, at: int) -> None:
        task = asyncio.current_task()

        async def work() -> None:
            exchange = await client.open(origin, payload, deadlines)
            async for _ in exchange:
                pass

        await counted(work(), task.cancel, at)

    async def storm() -> int:
        client = HttpClient(PoolLimits(connections=connections, waiters=500))
        for turn in range(6):
            tasks = [asyncio.create_task(one(client, (turn + place) % 7)) for place in range(40)]
            await asyncio.gather(*tasks, return_exceptions=True)
        after = [asyncio.create_task(one(client, 0)) for _ in range(50)]
        await asyncio.wait_for(asyncio.gather(*after), 10)
        (pool,) = client._pools.values()
        left = pool.open - len(pool._idle)
        await client.aclose()
        assert not pool._waiters
        return left

    assert faulty.stack.call(storm()) == 0


def test_without_the_release_of_what_was_begun_slots_leak(budgeted, monkeypatch, patiently) -> None:
    """The negative control: an ended request that does not give its answer up."""

    begun = []

    async def keep(self) -> None:
        begun.append(self)
        await asyncio.sleep(0)

    stack = budgeted.stack
    body = {"model": "own", "messages": MESSAGES, "stream": True, "max_tokens": 2000}
    monkeypatch.setattr("backends.http_connection.HttpExchange.aclose", keep)
    for at in range(4, 9):
        stack.call(asked(stack, body, at))
    assert left_open(stack) > 0
    monkeypatch.undo()
    for exchange in begun:  # nobody reads on: none of them would come to its end
        stack.call(exchange.aclose())
    patiently(lambda: left_open(stack) == 0)


def test_the_requests_come_in_by_the_front_door(budgeted) -> None:
    """Undisturbed, it is the request that clients make."""
    body = {"model": "own", "messages": MESSAGES, "max_tokens": 4}
    assert budgeted.stack.call(asked(budgeted.stack, body, 0)) > 3
    assert isinstance(budgeted.stack.app.hot, InferenceApi)
