"""A pool with roles whose sides fail, or whose clients leave, at each moment of a request.

Whatever happens, every request that stays is answered once, three journals agree (the engine that
reads, the one that answers, the ledger), and no KV is held for anybody, on the engines or on the
board.
"""

import functools
import json
import threading
import time

import pytest
import uvicorn
from sqlalchemy import text

from backends.event_server import EventServer
from backends.simulator.journal import RequestJournal
from backends.simulator.profiles import PROFILES
from backends.simulator.running import bind
from backends.simulator.server import SimulatedEngineApp
from gateway.request.prompt_reader import PromptReader
from gateway.table_layout import LoadCell
from ledger.verify.checks import verify

ENGINE = "h200-llama-3.1-8b-fp8"
WORDS = "load queue token cache model price stream answer "
LEASE_S = 6


class RoleEngine:
    """A simulated engine that hands KV on, and what it does wrong with requests."""

    def __init__(self, eventually) -> None:
        self._eventually = eventually
        self.journal = RequestJournal()
        self.app = SimulatedEngineApp(
            PROFILES[ENGINE].shape, "llama", profile=ENGINE, journal=self.journal
        )
        self.app.hand_kv(LEASE_S)
        self.fault = None  # called with (scope, receive, send); True: it answered itself
        self.begun = threading.Event()
        self._listener = bind("127.0.0.1", 0)
        self.port = self._listener.getsockname()[1]
        self.start()

    def start(self) -> None:
        how = {"access_log": False, "log_level": "critical", "timeout_graceful_shutdown": 1}
        self._server = EventServer(uvicorn.Config(self, lifespan="on", **how))
        work = functools.partial(self._server.run, sockets=[self._listener])
        self._thread = threading.Thread(target=work, name="role", daemon=True)
        self._thread.start()
        self._eventually(lambda: self._server.started)

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] == "http" and scope["path"] == "/v1/chat/completions":
            self.begun.set()
            if self.fault is not None and await self.fault(scope, receive, send):
                return
        await self.app(scope, receive, send)

    def end(self) -> None:
        if self._thread.is_alive():
            self._server.force_exit = self._server.should_exit = True
            self._thread.join()
        self._listener.close()

    @property
    def finished(self) -> list[dict]:
        lines = self.journal.lines().splitlines()
        return [entry for entry in map(json.loads, lines) if entry["status"] == "finished"]

    @property
    def is_clean(self) -> bool:
        """Whether it holds nothing and does nothing."""
        engine = self.app.pacer.engine
        return not (
            self.app.handing.kept or engine.kept or engine.unfinished or engine.kv_used_tokens
        )


async def answer(send, status: int, body: bytes) -> bool:
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
    return True


async def say_500(_scope, _receive, send) -> bool:
    return await answer(send, 500, b'{"error": {"message": "broken", "type": "x"}}')


async def say_nothing(_scope, receive, _send) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True


async def cut(_scope, _receive, send) -> bool:
    head = [(b"content-type", b"application/json"), (b"content-length", b"999")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b'{"kv_tr', "more_body": False})
    return True


def say_params(**changes):
    params = {"do_remote_prefill": True, "remote_host": "127.0.0.1", "remote_port": 1,
              "remote_request_id": "nothing", **changes}  # fmt: skip

    async def say(_scope, _receive, send) -> bool:
        body = {"choices": [], "usage": {"prompt_tokens": 9}, "kv_transfer_params": params}
        return await answer(send, 200, json.dumps(body).encode())

    return say


async def keep_nothing(_scope, _receive, send) -> bool:
    return await answer(send, 200, b'{"choices": [], "kv_transfer_params": null}')


def with_roles(engines, found, _ports) -> None:
    reader, answerer = (f"http://127.0.0.1:{engine.port}/v1" for engine in engines)
    found["pools"]["apart"] = {
        "engine": {"kind": "simulated", "model": ENGINE, "served_name": "llama"},
        "gpu": {"type": "H200", "usd_per_hour": "3.50", "source": "test"},
        "roles": {
            "prefill": {"endpoints": [reader], "bid_price_usd_per_s": "0.000001"},
            "decode": {"endpoints": [answerer], "bid_price_usd_per_s": "0.01"},
            "lease_s": LEASE_S,
        },
    }
    found["models"]["apart"] = {"targets": ["pool:apart"], "compare_with": ["openai/gpt-4o-mini"]}


@pytest.fixture(scope="module")
def engines(patiently):
    made = RoleEngine(patiently), RoleEngine(patiently)
    yield made
    for engine in made:
        engine.end()


@pytest.fixture(scope="module")
def house(tmp_path_factory, running, engines, patiently):
    state = tmp_path_factory.mktemp("roles")
    with running(state, adjust=functools.partial(with_roles, engines)) as stack:
        rows = [row for row, seat in enumerate(stack.runtime.engines) if seat.pool == "apart"]
        patiently(lambda: all(stack.board.published(row)[10] for row in rows))
        stack.role_rows, stack.eventually = rows, patiently
        yield stack


@pytest.fixture(autouse=True)
def healed(engines, house):
    yield
    for engine in engines:
        engine.fault = None
        engine.begun.clear()
        if engine.app.handing is not None:
            engine.app.handing.setup_s = 0.02
    for row in house.role_rows:
        house.app.hot._dispatcher.experience.engines.record_outcome(row, ok=True)


def legs(house, attempt_id: str) -> list[dict]:
    asked = "SELECT * FROM attempt_legs WHERE attempt_id = :name ORDER BY position"
    with house.reader.connect() as connection:
        return [
            dict(row) for row in connection.execute(text(asked), {"name": attempt_id}).mappings()
        ]


def ask(house, number: int, **members):
    message = {"role": "user", "content": f"{number} " + WORDS * 60}
    body = {"max_tokens": 12, "messages": [message], **members}
    return house.post("/v1/chat/completions", {"model": "apart", **body})


def nothing_is_held(house, engines) -> None:
    """On the engines, on the board, and in the books."""
    house.eventually(lambda: all(engine.is_clean for engine in engines), LEASE_S + 10)
    cells = (LoadCell.SEQUENCES, LoadCell.CONTEXT_TOKENS, LoadCell.QUEUED_PREFILL_TOKENS,
             LoadCell.PROMISED_TOKENS, LoadCell.QUEUED_HIT_TOKENS)  # fmt: skip
    for row in house.role_rows:
        loads = functools.partial(house.board.loads, row)
        house.eventually(lambda loads=loads: not any(loads()[cell] for cell in cells), LEASE_S + 10)
    house.booked()
    with house.reader.connect() as connection:
        told = verify(connection)
    assert [finding for finding in told.findings if finding.check == "legs_add_up"] == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_is_read_on_one_engine_and_answered_on_another(house, engines, stream) -> None:
    reader, answerer = engines
    before = len(reader.finished), len(answerer.finished)
    reply = ask(house, 10 + stream, stream=stream)
    assert reply.status_code == 200, reply.text
    assert "prefill=pool:apart/0" in reply.headers["x-breakeven-decision"]
    (row,) = house.settled(reply)
    assert (len(reader.finished), len(answerer.finished)) == (before[0] + 1, before[1] + 1)
    read, answered = reader.finished[-1], answerer.finished[-1]
    assert (read["completion_tokens"], read["request_id"]) == (1, row["attempt_id"])
    assert (answered["completion_tokens"], answered["request_id"]) == (12, row["attempt_id"])
    assert (row["engine"], row["output_tokens"], row["status"]) == ("1", 12, "finished")
    first, second = legs(house, row["attempt_id"])
    assert (first["role"], first["engine"], first["outcome"]) == ("prefill", "0", "done")
    assert (second["role"], second["engine"], second["outcome"]) == ("decode", "1", "done")
    assert first["busy_us"] + second["busy_us"] == row["engine_us"]
    assert first["busy_us"] > 0 < second["busy_us"]
    assert second["transfer_us"] > 0 == (first["transfer_us"] or 0)
    assert min(first["kv_tokens"], second["kv_tokens"]) >= read["prompt_tokens"]
    nothing_is_held(house, engines)


READ_FAULTS = {
    "says 500": say_500,
    "says nothing": say_nothing,
    "is cut": cut,
    "keeps nothing": keep_nothing,
    "offers its KV to the world": say_params(remote_host="8.8.8.8"),
}


@pytest.mark.parametrize("fault", READ_FAULTS)
def test_the_engine_that_reads_fails_and_the_other_one_reads(house, engines, fault) -> None:
    reader, answerer = engines
    reader.fault = READ_FAULTS[fault]
    before = len(answerer.finished)
    reply = ask(house, 20 + list(READ_FAULTS).index(fault), stream=True)
    assert reply.status_code == 200, reply.text
    (row,) = house.settled(reply)
    assert len(answerer.finished) == before + 1
    assert (row["engine"], row["status"], row["output_tokens"]) == ("1", "finished", 12)
    first, second = legs(house, row["attempt_id"])
    assert (first["outcome"], second["outcome"]) == ("failed", "done")
    assert first["busy_us"] + second["busy_us"] == row["engine_us"]
    assert second["transfer_us"] is None
    nothing_is_held(house, engines)


@pytest.mark.parametrize("stream", [False, True])
def test_kv_that_is_gone_is_read_again_by_who_answers(house, engines, stream) -> None:
    reader, answerer = engines
    reader.fault = say_params(remote_port=reader.port)
    before = len(answerer.finished)
    reply = ask(house, 30 + stream, stream=stream)
    assert reply.status_code == 200, reply.text
    failed, row = house.settled(reply, count=2)
    assert (failed["status"], row["status"], row["engine"]) == ("upstream_error", "finished", "1")
    assert len(answerer.finished) == before + 1
    assert [leg["outcome"] for leg in legs(house, failed["attempt_id"])] == ["done", "failed"]
    assert legs(house, row["attempt_id"]) == []
    nothing_is_held(house, engines)


@pytest.mark.parametrize("fault", [say_500, cut])
def test_the_engine_that_answers_fails_and_the_other_one_serves(house, engines, fault) -> None:
    answerer = engines[1]
    answerer.fault = fault
    reply = ask(house, 40 + (fault is cut), stream=True)
    assert reply.status_code == 200, reply.text
    rows = house.eventually(lambda: settled_rows(house, reply))
    assert (rows[-1]["status"], rows[-1]["engine"]) == ("finished", "0")
    assert all(row["status"] == "upstream_error" for row in rows[:-1])
    answerer.fault = None
    nothing_is_held(house, engines)


def settled_rows(house, reply) -> list[dict]:
    rows = house.rows("request_id = :name", name=reply.headers["x-request-id"])
    done = rows and all(row["settled_us"] for row in rows) and rows[-1]["status"] == "finished"
    return rows if done else []


def leave(house, number: int, when) -> str:
    """Ask, and hang up once `when` holds; the request's row when it is settled."""
    before = house.booked()
    message = {"role": "user", "content": f"{number} " + WORDS * 60}
    body = {"model": "apart", "stream": True, "max_tokens": 4000, "ignore_eos": True,
            "messages": [message]}  # fmt: skip
    connection = house.raw(body)
    house.eventually(when)
    connection.close()
    house.eventually(lambda: house.booked() > before)
    return house.rows()[-1]


def test_a_client_leaves_while_its_prompt_is_read(house, engines) -> None:
    engines[0].fault = say_nothing
    row = leave(house, 50, engines[0].begun.is_set)
    assert row["status"] == "client_gone"
    (read, _) = legs(house, row["attempt_id"])
    assert read["outcome"] == "left"
    nothing_is_held(house, engines)


def test_a_client_leaves_while_kv_moves(house, engines) -> None:
    reader, answerer = engines
    answerer.app.handing.setup_s = 30.0
    began_s = time.monotonic()
    row = leave(house, 51, lambda: answerer.begun.is_set() and reader.app.handing.kept)
    assert row["status"] == "client_gone"
    nothing_is_held(house, engines)
    assert time.monotonic() - began_s < LEASE_S, "it was freed, and did not wait for its lease"


def test_a_client_leaves_while_it_is_answered(house, engines) -> None:
    answerer = engines[1]
    row = leave(house, 52, lambda: answerer.app.pacer.engine.running)
    assert row["status"] == "client_gone"
    nothing_is_held(house, engines)


def test_what_nobody_frees_is_held_until_its_lease_ends(house, engines, monkeypatch) -> None:
    """The control: with the protection off the KV stays, on the engine and on the board."""
    reader, answerer = engines
    monkeypatch.setattr(PromptReader, "_free", _free_nothing)
    answerer.fault = say_500
    expired = reader.app.handing.expired
    reply = ask(house, 60, stream=True)
    assert reply.status_code == 200
    assert reader.app.handing.kept, "nobody fetched it"
    row = house.role_rows[0]
    assert house.board.loads(row)[LoadCell.PROMISED_TOKENS] > 0
    answerer.fault = None
    nothing_is_held(house, engines)
    assert reader.app.handing.expired == expired + 1


async def _free_nothing(*_: object) -> None:
    return None


def test_an_engine_that_answers_is_dead(house, engines) -> None:
    """Last, for it stays so: the engine that reads serves alone."""
    engines[1].end()
    replies = [ask(house, 70 + number, stream=True) for number in range(3)]
    assert [reply.status_code for reply in replies] == [200] * 3
    for reply in replies:
        rows = house.eventually(lambda reply=reply: settled_rows(house, reply))
        assert rows[-1]["engine"] == "0"
    house.eventually(lambda: engines[0].is_clean, LEASE_S + 10)
