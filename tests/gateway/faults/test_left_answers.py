"""Answers that clients leave, at providers that stop, go on, or do not say: what is booked of them.

The provider is scripted and keeps its own account of what it made, also unseen. At least that is
booked, and at most the hold; nothing is made for longer than the provider's term asks for.
"""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from random import Random

import httpx
import pytest
from sqlalchemy import text

from ledger.database import open_readonly

HASTY_USD = 0.1
UNSEEN_SHARE = 0.05  # of the dollars of honest traffic of which half is cancelled
CALLS, AT_ONCE = 60, 12
TURNS = 5  # of so many calls, where most clients left before their request was read
LONGEST = 4000  # tokens: far more than the answers have
MESSAGES = [{"role": "user", "content": "Think well."}]
SLICES = 20  # of a thought: how often the provider looks whether its client is there
TOLD_S = 1.0
PACE = 500.0  # tokens a second of the stack's providers
HARD = [{"scope": "global", "usd": 100, "period": "day", "hard": True}]
STEPS_TO_MOST = 5  # of a rate, from the usual one to the highest
LIMITED = [{"scope": "team:search", "tokens_per_minute": 1_000_000_000}]


@dataclass(frozen=True, slots=True)
class Script:
    """`thinks` tokens unseen in `thinks_s`, then words; `stops`: when its client leaves."""

    thinks: int = 0
    thinks_s: float = 0.0
    words: int = 60
    pause_s: float = 0.004
    headless: bool = False
    stops: bool = False
    padding: int = 0  # bytes beside the answer in one piece

    @property
    def total(self) -> int:
        return self.thinks + self.words


@dataclass(slots=True)
class MadeAnswer:
    """The provider's account of one answer."""

    tokens: int = 0
    at_leave: int | None = None
    left_s: float | None = None
    over: bool = False


@dataclass(slots=True)
class ScriptedProvider:
    port: int = 0
    script: Script = Script()
    made: dict[str, MadeAnswer] = field(default_factory=dict)

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self.answer, "127.0.0.1", 0, backlog=256)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def end(self, server: asyncio.Server) -> None:
        server.close()
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        lines = head.decode().lower().split("\r\n")
        sent = dict(line.split(": ", 1) for line in lines[1:-2])
        body = json.loads(await reader.readexactly(int(sent["content-length"])))
        made = self.made[sent["x-request-id"]] = MadeAnswer()
        watch = asyncio.create_task(self.watch(reader, made))
        try:
            play = self.stream if body.get("stream") else self.whole
            await play(self.script, made, writer)
        finally:
            made.over = True
            watch.cancel()
            writer.transport.abort() if made.left_s else writer.close()

    async def watch(self, reader: asyncio.StreamReader, made: MadeAnswer) -> None:
        with contextlib.suppress(OSError):
            await reader.read(1)
        made.at_leave, made.left_s = made.tokens, time.monotonic()

    async def stream(self, script: Script, made: MadeAnswer, writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        if not script.headless:
            writer.write(head)
        if not await think(script, made):
            return
        if script.headless:
            writer.write(head)
        for _ in range(script.words):
            await asyncio.sleep(script.pause_s)
            if made.left_s and script.stops:
                return
            made.tokens += 1
            say(writer, {"choices": [{"index": 0, "delta": {"content": "word "}}]})
        say(writer, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        say(writer, {"choices": [], "usage": usage(script)})
        writer.write(b"data: [DONE]\n\n")

    async def whole(self, script: Script, made: MadeAnswer, writer: asyncio.StreamWriter) -> None:
        if not await think(script, made):
            return
        await asyncio.sleep(script.pause_s * script.words)
        made.tokens += script.words
        message = {"role": "assistant", "content": "word " * script.words}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        answer = json.dumps(
            {"choices": [choice], "usage": usage(script), "x": "x" * script.padding}
        )
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(answer)}"
        writer.write(f"{head}\r\nconnection: close\r\n\r\n{answer}".encode())


async def think(script: Script, made: MadeAnswer) -> bool:
    """False: its client left, and it stopped."""
    for _ in range(SLICES if script.thinks else 0):
        await asyncio.sleep(script.thinks_s / SLICES)
        if made.left_s and script.stops:
            return False
        made.tokens += script.thinks // SLICES
    return True


def say(writer: asyncio.StreamWriter, members: dict) -> None:
    event = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", **members}
    writer.write(f"data: {json.dumps(event)}\n\n".encode())


def usage(script: Script) -> dict:
    return {
        "prompt_tokens": 10, "completion_tokens": script.total, "total_tokens": 10 + script.total,
        "completion_tokens_details": {"reasoning_tokens": script.thinks},
    }  # fmt: skip


@pytest.fixture(scope="module")
def provider() -> Iterator[ScriptedProvider]:
    made, loop = ScriptedProvider(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = asyncio.run_coroutine_threadsafe(made.serve(), loop).result(10)
    yield made
    asyncio.run_coroutine_threadsafe(made.end(server), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def providers(port: int) -> dict:
    """One address under three terms; the one that says nothing is unknown."""
    common = {
        "base_url": f"http://127.0.0.1:{port}/v1", "simulated": True,
        "prices_as": "openai/gpt-4o-mini",
    }  # fmt: skip
    terms = {"stopping": "stops", "going": "continues"}
    stated = {name: {**common, "on_disconnect": term} for name, term in terms.items()}
    return {"untold": common, **stated}


@pytest.fixture(scope="module")
def left(tmp_path_factory, running, provider):
    """One host for all of it."""
    names = ("untold", "stopping", "going")

    def adjust(found, _ports) -> None:
        found["providers"] |= providers(provider.port)
        found["models"] |= {name: {"targets": [f"{name}/m"]} for name in names}
        beta = {**found["providers"]["beta"], "prices_as": "openai/gpt-4o-mini"}
        found["providers"]["hurried"] = {**beta, "on_disconnect": "unknown"}
        found["models"]["hurried"] = {"targets": ["hurried/m"]}

    folder = tmp_path_factory.mktemp("host")
    budgets = [*HARD, {"scope": "team:hasty", "usd": HASTY_USD, "period": "day", "hard": True}]
    with running(folder, adjust=adjust, budgets=budgets, limits=LIMITED) as stack:
        yield stack


@pytest.fixture
def reads(left):
    """The worker's background reads, with limits that a test may change."""
    found = left.app.hot._dispatcher.left
    before = found.limit, found.read_s
    yield found
    found.limit, found.read_s = before


def ask(stack, model: str, path: str = "/v1/chat/completions", **members):
    said = {"input": "Think well."} if path.endswith("responses") else {"messages": MESSAGES}
    limit = "max_output_tokens" if path.endswith("responses") else "max_tokens"
    return stack.raw({"model": model, "stream": True, limit: 6000, **said, **members}, path)


def read_words(connection, count: int) -> None:
    read = b""
    while read.count(b"word ") < count:
        part = connection.recv(65536)
        assert part, read
        read += part


def settled_rows(stack, before: int, count: int) -> list[dict]:
    rows = stack.rows()[before:]
    return rows if len(rows) == count and all(row["settled_us"] for row in rows) else []


def row_of(stack, patiently, before: int) -> dict:
    (row,) = patiently(lambda: settled_rows(stack, before, 1))
    assert row["cost_pusd"] <= row["bound_pusd"]
    patiently(lambda: stack.app.hot.in_flight == 0)  # its row may be read before it has ended
    return row


def leave_one(
    stack, provider, patiently, script: Script, *, model: str = "untold", **members
) -> dict:
    """The row of a request whose client leaves once the provider has it."""
    provider.script, before, asked = script, stack.booked(), len(provider.made)
    connection = ask(stack, model, **members)
    patiently(lambda: len(provider.made) > asked)
    connection.close()
    return row_of(stack, patiently, before)


THINKING = Script(thinks=5000, thinks_s=0.1)
PLACES = {
    "after hidden thinking": (THINKING, "/v1/chat/completions", 45),
    "while it thinks": (replace(THINKING, thinks_s=0.5), "/v1/chat/completions", 0),
    "before the head": (
        replace(THINKING, thinks_s=0.5, headless=True), "/v1/chat/completions", 0,
    ),
    "through Responses": (THINKING, "/v1/responses", 40),
    "through Messages": (THINKING, "/v1/messages", 40),
}  # fmt: skip


@pytest.mark.parametrize("model", ["untold", "going"])
@pytest.mark.parametrize("place", PLACES)
def test_what_goes_on_is_read_to_its_end(left, provider, patiently, place, model) -> None:
    script, path, words = PLACES[place]
    provider.script = script
    before, asked = left.booked(), len(provider.made)
    connection = ask(left, model, path)
    patiently(lambda: len(provider.made) > asked)
    read_words(connection, words)
    connection.close()
    row = row_of(left, patiently, before)
    made = provider.made[row["attempt_id"]]
    assert (row["status"], row["http_status"], row["basis"]) == ("client_gone", 499, "reported")
    assert row["output_tokens"] == script.total == made.tokens
    assert row["flag"] is None


@pytest.mark.parametrize("model", ["untold", "going"])
def test_an_answer_in_one_piece_is_read_to_its_end(left, provider, patiently, model) -> None:
    script = replace(THINKING, thinks_s=0.4)
    row = leave_one(left, provider, patiently, script, model=model, stream=False)
    assert (row["basis"], row["output_tokens"]) == ("reported", THINKING.total)


def test_of_who_stops_without_thinking_what_was_said_is_booked(left, provider, patiently) -> None:
    provider.script, before = Script(pause_s=0.03, stops=True), left.booked()
    connection = ask(left, "stopping")
    read_words(connection, 10)
    left_s = time.monotonic()
    connection.close()
    row = row_of(left, patiently, before)
    made = provider.made[row["attempt_id"]]
    patiently(lambda: made.over)
    assert made.left_s - left_s <= TOLD_S
    assert made.tokens < 60
    assert row["basis"] == "estimated"
    assert 10 <= row["output_tokens"] <= 2 * made.tokens
    assert row["flag"] is None


def test_of_who_stops_and_thinks_the_hold_is_booked_until_its_pace_is_known(
    left, provider, patiently
) -> None:
    provider.script = replace(THINKING, stops=True)
    rows = []
    for known in (False, True):
        for _ in range(STEPS_TO_MOST if known else 0):
            answer = left.chat("stopping", stream=True, max_tokens=6000)
            assert left.settled(answer)[0]["basis"] == "reported"
        # More than what is made in this time fits into the hold.
        before = left.booked()
        limit = 500_000 if known else 6000
        connection = ask(left, "stopping", reasoning_effort="low", max_tokens=limit)
        read_words(connection, 5)
        connection.close()
        rows.append(row_of(left, patiently, before))
    unknown, known = rows
    assert (unknown["basis"], unknown["flag"]) == ("bound", "unseen")
    assert unknown["output_tokens"] == 6000
    assert (known["basis"], known["flag"]) == ("estimated", None)
    made = provider.made[known["attempt_id"]]
    assert made.at_leave <= known["output_tokens"] < 500_000


def test_of_who_stops_an_answer_in_one_piece_is_booked_by_the_time_or_at_its_limit(
    left, provider, patiently
) -> None:
    script = replace(THINKING, thinks_s=0.5, stops=True)
    row = leave_one(left, provider, patiently, script, model="stopping", stream=False)
    made = provider.made[row["attempt_id"]]
    patiently(lambda: made.over)
    assert made.at_leave <= row["output_tokens"] <= 6000
    assert made.tokens < THINKING.total


def assert_unseen(stack, row: dict) -> None:
    assert (row["status"], row["basis"], row["flag"]) == ("client_gone", "bound", "unseen")
    assert row["output_tokens"] == 6000
    assert stack.app.hot._dispatcher.left.open == 0


@pytest.mark.parametrize("stream", [True, False])
def test_what_lasts_too_long_is_booked_at_its_bound(
    left, provider, patiently, reads, stream
) -> None:
    reads.read_s = 0.1
    script = replace(THINKING, thinks_s=2.0, stops=True)
    row = leave_one(left, provider, patiently, script, stream=stream)
    assert_unseen(left, row)
    made = provider.made[row["attempt_id"]]
    patiently(lambda: made.over)
    assert made.tokens < THINKING.total, "the target is told when nobody reads on"


def test_one_too_many_is_booked_at_its_bound_at_once(left, provider, patiently, reads) -> None:
    reads.limit, provider.script, before = 2, replace(THINKING, thinks_s=1.0), left.booked()
    asked = len(provider.made)
    clients = [ask(left, "untold") for _ in range(3)]
    patiently(lambda: len(provider.made) == asked + 3)
    for client in clients:
        client.close()
    patiently(lambda: reads.open == 2)
    rows = patiently(lambda: settled_rows(left, before, 3))
    assert sorted(row["flag"] or "" for row in rows) == ["", "", "unseen"]
    assert_unseen(left, next(row for row in rows if row["flag"]))


@pytest.mark.parametrize("shared", [10_000_000, 1_000_000], ids=["kept", "too large"])
def test_a_large_answer_is_read_to_its_end_where_there_is_room(
    left, provider, patiently, reads, shared
) -> None:
    """As pictures are. Each above 1 MiB was booked at its hold."""
    script, before = Script(words=5, pause_s=0.05, padding=3_000_000), reads.shared_bytes
    reads.shared_bytes = shared
    row = leave_one(left, provider, patiently, script, stream=False)
    reads.shared_bytes = before
    if shared < 3_000_000:
        assert_unseen(left, row)
    else:
        assert (row["flag"], row["basis"], row["output_tokens"]) == (None, "reported", 5)


def test_a_limit_of_tokens_counts_what_was_read(left, provider, patiently) -> None:
    """Of an earlier minute nothing may be left over: the difference of two figures is looked at."""
    provider.script = Script(words=1, pause_s=0.0)

    def remaining() -> int:
        answer = left.chat("untold", max_tokens=5)
        return int(answer.headers["x-ratelimit-remaining-tokens"])

    first = remaining()
    row = leave_one(left, provider, patiently, replace(THINKING, thinks_s=0.3))
    provider.script = Script(words=1, pause_s=0.0)
    took = first - remaining()
    assert took >= row["output_tokens"] or took < 0, "a minute may have ended in between"


def test_a_worker_that_stops_reads_on_for_what_is_left_of_its_drain(
    run_stack, provider, patiently, tmp_path
) -> None:
    def adjust(found, _ports) -> None:
        found["providers"] |= providers(provider.port)
        found["models"]["untold"] = {"targets": ["untold/m"]}

    slow = replace(THINKING, thinks_s=60.0, stops=True)
    server = {"timeouts": {"drain_s": 4}}  # enough for the first beside a busy core
    with run_stack(adjust=adjust, server=server) as stack:
        for provider.script in (replace(THINKING, thinks_s=0.4), slow):
            asked = len(provider.made)
            connection = ask(stack, "untold")
            patiently(lambda seen=asked: len(provider.made) > seen)
            connection.close()
        patiently(lambda: stack.app.hot._dispatcher.left.open == 2)
    books = open_readonly(stack.runtime.ledger_url)
    with books.connect() as connection:
        query = text("SELECT basis, flag, output_tokens FROM attempts ORDER BY seq")
        rows = [tuple(row) for row in connection.execute(query)]
    books.dispose()
    assert rows == [("reported", None, THINKING.total), ("bound", "unseen", 6000)]
    assert stack.app.hot._dispatcher.left.open == 0


def hangups(stack) -> dict[str, float]:
    found = {}
    for line in stack.get("/metrics").text.splitlines():
        if line.startswith("breakeven_hangups_total{"):
            found[line.split('"')[1]] = float(line.rpartition(" ")[2])
    return found


def test_hangups_are_counted_by_their_end(left, provider, patiently, reads) -> None:
    before, script = hangups(left), Script(words=5, pause_s=0.05, stops=True)
    leave_one(left, provider, patiently, script, model="stopping")
    leave_one(left, provider, patiently, script, model="untold")
    reads.limit = 0
    leave_one(left, provider, patiently, script, model="untold")
    after = hangups(left)
    assert {ended: after[ended] - before[ended] for ended in after} == {
        "aborted": 1, "read_to_end": 1, "unseen": 1,
    }  # fmt: skip


def call_hastily(stack, model: str, token: str, number: int, random: Random) -> None:
    """Every second client leaves, at a time of its own; every second pair asks for a stream."""
    body = {
        "model": model, "messages": [{"role": "user", "content": f"question {number}"}],
        "max_tokens": LONGEST, "stream": number % 4 < 2,
    }  # fmt: skip
    if number % 2:
        answer = stack.post("/v1/chat/completions", body, token)
        assert answer.status_code == 200, answer.text
        return
    patience_s = random.uniform(0.05, 0.4)
    with contextlib.suppress(httpx.ReadTimeout):
        sent = httpx.Timeout(30, read=patience_s)
        url, headers = f"{stack.url}/v1/chat/completions", stack.headers(token)
        with httpx.Client(trust_env=False, timeout=sent) as client:
            until_s = time.monotonic() + patience_s
            with client.stream("POST", url, json=body, headers=headers) as answer:
                assert answer.status_code == 200
                for _ in answer.iter_bytes():
                    if time.monotonic() > until_s:
                        return


def call_at_once(stack, model: str, token: str, numbers: range) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        calls = [
            pool.submit(call_hastily, stack, model, token, number, Random(number))
            for number in numbers
        ]
        for call in calls:
            call.result()


def came_at_its_pace(stack, model: str, token: str, *, stream: bool) -> bool:
    """Whether an answer came about as fast as it was made: the pace that its target is known for.

    On a machine that does much else it may come slower, and then the target seems to be slower.
    """
    body = {"model": model, "messages": MESSAGES, "max_tokens": LONGEST, "stream": stream}
    (row,) = stack.settled(stack.post("/v1/chat/completions", body, token))
    return row["output_tokens"] * 1e6 / row["duration_us"] >= PACE * 0.7


def made_late(entry: dict, row: dict) -> float:
    """What the provider made after the hang-up, before it noticed: nobody else can know of it."""
    late_s = entry["started_s"] + entry["duration_s"] - row["settled_us"] / 1e6
    return max(0.0, late_s) * PACE


@pytest.mark.parametrize(("model", "upstream"), [("hurried", "beta"), ("api", "alpha")])
def test_honest_traffic_that_cancels_half_is_neither_unseen_nor_refused(
    left, patiently, model, upstream
) -> None:
    """All answers at their bounds would be above the team's hard budget many times."""
    stack, team, goes_on = left, "hasty", model == "hurried"
    stack.providers[upstream].continues = goes_on
    token = stack.key(team, team=team).token
    before, served = stack.booked(), len(stack.entries(upstream))
    for stream in (True, False):
        patiently(lambda stream=stream: came_at_its_pace(stack, model, token, stream=stream))
    gone: list[dict] = []
    for turn in range(TURNS):
        call_at_once(stack, model, token, range(turn * CALLS, (turn + 1) * CALLS))
        booked = stack.booked()  # who left before its turn was not dispatched, and has no row
        rows = patiently(lambda booked=booked: settled_rows(stack, before, booked - before))
        gone = [row for row in rows if row["status"] == "client_gone"]
        if len(gone) > CALLS / 4:
            break
    made = {entry["request_id"]: entry for entry in stack.entries(upstream)[served:]}
    cost = sum(row["cost_pusd"] for row in rows)
    unseen = sum(row["cost_pusd"] for row in rows if row["flag"] == "unseen")
    assert len(gone) > CALLS / 4
    assert unseen <= UNSEEN_SHARE * cost
    assert sum(row["bound_pusd"] for row in rows) > HASTY_USD * 1e12 > cost
    for row in rows:
        entry = made.get(row["attempt_id"])  # none: it left before the provider had read of it
        tokens = entry["completion_tokens"] if entry else 0
        if goes_on:
            assert (row["basis"], row["output_tokens"]) == ("reported", tokens)
        elif not row["stream"]:
            assert row["output_tokens"] >= tokens - (made_late(entry, row) if entry else 0)
