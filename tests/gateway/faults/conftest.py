"""A TCP proxy that makes trouble between the gateway and a target, and a host that goes through it.

A `Rule` says what happens to the answers of requests (POST); probes and scrapes pass untouched.
`Proxy.seen` is the proxy's own account: what each request was answered, and when the gateway left.
"""

import asyncio
import json
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from deploy import warmstart
from deploy.quietports import find_quiet_port
from gateway.request.retry_budget import RESERVE
from gateway.table_layout import ApiStatsCell as SeenCell

RESET = struct.pack("ii", 1, 0)  # SO_LINGER that sends RST
ENGINE = "h200-llama-3.1-8b-fp8"
LIMIT = 256 * 1024  # a stream's buffer in here: what passed was read by the gateway's side
FILLER_S = 0.0005  # between two pieces, so that they are read one by one


@dataclass(frozen=True, slots=True)
class Rule:
    """Counts are bytes of one answer; all defaults together are no trouble."""

    answer: bytes | None = None  # said in place of the target's
    endless: bytes = b""  # repeated behind `answer` for as long as it is read
    pause_s: float = 0.0  # before each of them
    slice_bytes: int = 0  # the answer goes out in pieces of this size
    split_at: int | None = None  # or in two pieces
    bytes_per_s: int = 0
    after_bytes: int | None = None  # where the ending comes; `None`: nowhere
    before: bytes = b""  # or in front of this mark
    ending: str = "fin"  # "reset", "half" (closes only its own direction), "hole" (says no more)


@dataclass(slots=True)
class SeenRequest:
    """One request: `passed` bytes of its answer went to the gateway, which left at `gone_s`."""

    head: bytes
    at_s: float
    port: int  # of the gateway, on that connection
    passed: int = 0
    ended: bool = False  # by the rule
    gone_s: float | None = None

    @property
    def attempt_id(self) -> str:
        return self.head.lower().partition(b"x-request-id: ")[2].partition(b"\r\n")[0].decode()


@dataclass(slots=True)
class Line:
    """One connection of the gateway."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    rule: Rule = Rule()
    seen: SeenRequest | None = None
    over: bool = False  # nothing more is said on it
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Proxy:
    """Runs in a thread of its own; `rule` holds for the requests that come from then on."""

    def __init__(self) -> None:
        self.rule = Rule()
        self.choose: Callable[[], Rule] | None = None  # a rule for each request
        self.target = 0
        self.seen: list[SeenRequest] = []
        self.open = 0  # connections of the gateway
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._lines: set[Line] = set()
        self._server = self._call(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def is_read(self, seen: SeenRequest) -> bool:
        """Whether the gateway has read all that passed: nothing of it waits in either socket."""
        ends = {f"0100007F:{self.port:04X}", f"0100007F:{seen.port:04X}"}
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        waiting = [line[4] for line in lines if {line[1], line[2]} == ends]
        # Of a table that changes while it is read, a line may come twice, or not at all.
        return len(waiting) > 1 and set(waiting) == {"00000000:00000000"}

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=512)

    async def _end(self) -> None:
        self._server.close()
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = Line(reader, writer)
        writer.transport.set_write_buffer_limits(LIMIT)
        self.open += 1
        onward: asyncio.StreamWriter | None = None
        saying: asyncio.Task[None] | None = None
        try:
            back, onward = await asyncio.open_connection("127.0.0.1", self.target)
            saying = asyncio.create_task(self._answers(line, back))
            await self._requests(line, onward)
        except OSError:
            pass
        finally:
            self.open -= 1
            if line.seen is not None and line.seen.gone_s is None:
                line.seen.gone_s = time.monotonic()
            for task in (saying, *line.tasks):
                if task is not None:
                    task.cancel()
            for item in (writer, onward):
                if item is not None and item.get_extra_info("socket").fileno() >= 0:  # not gone yet
                    item.transport.abort()

    async def _requests(self, line: Line, onward: asyncio.StreamWriter) -> None:
        """Until the gateway leaves."""
        while data := await line.reader.read(LIMIT):
            if data.startswith(b"POST "):
                line.rule = self.rule if self.choose is None else self.choose()
                _, port = line.writer.get_extra_info("peername")
                line.seen = SeenRequest(data.partition(b"\r\n\r\n")[0], time.monotonic(), port)
                self.seen.append(line.seen)
                if line.rule.answer is not None:
                    line.tasks.append(asyncio.create_task(self._invented(line)))
            if line.seen is None or line.rule.answer is None:
                onward.write(data)
                await onward.drain()

    async def _answers(self, line: Line, back: asyncio.StreamReader) -> None:
        while data := await back.read(LIMIT):
            if line.seen is None:
                line.writer.write(data)
                await line.writer.drain()
            else:
                await self._say(line, data)
        if not line.over:
            line.writer.close()

    async def _invented(self, line: Line) -> None:
        rule = line.rule
        await self._say(line, rule.answer or b"")
        while rule.endless and not line.over:
            await asyncio.sleep(rule.pause_s)
            await self._say(line, rule.endless)
        if rule.after_bytes is None and not rule.endless:
            self._finish(line, rule.ending)

    async def _say(self, line: Line, data: bytes) -> None:
        """As much of it as the rule lets through, and then the ending."""
        rule, seen = line.rule, line.seen
        assert seen is not None
        left = len(data) + 1 if rule.after_bytes is None else rule.after_bytes - seen.passed
        if rule.before and rule.before in data:
            left = data.index(rule.before)
        for number, piece in enumerate(_pieces(data[: max(0, left)], rule, seen.passed)):
            # Never behind the last one: the next request might come before this answer's ending.
            if number and not rule.bytes_per_s:
                await asyncio.sleep(FILLER_S)
            if line.over:
                return
            line.writer.write(piece)
            await line.writer.drain()
            seen.passed += len(piece)
            if rule.bytes_per_s:
                await asyncio.sleep(len(piece) / rule.bytes_per_s)
        if left <= len(data) and not line.over:
            self._finish(line, rule.ending)

    def _finish(self, line: Line, ending: str) -> None:
        line.over = True
        if line.seen is not None:
            line.seen.ended = True
        if ending == "reset":
            line.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, RESET
            )
            line.writer.transport.abort()
        elif ending == "half":
            line.writer.write_eof()
        elif ending == "fin":
            line.writer.close()


def _pieces(data: bytes, rule: Rule, passed: int) -> Iterator[bytes]:
    size = rule.slice_bytes or (max(1, rule.bytes_per_s // 50) if rule.bytes_per_s else 0)
    if rule.split_at is not None and 0 < rule.split_at - passed < len(data):
        yield data[: rule.split_at - passed]
        yield data[rule.split_at - passed :]
    elif size:
        yield from (data[start : start + size] for start in range(0, len(data), size))
    elif data:
        yield data


@pytest.fixture
def make_proxy() -> Iterator[Callable[[int], Proxy]]:
    """`make_proxy(port)`: a proxy in front of what listens there; closed with the test."""
    made: list[Proxy] = []

    def make(port: int) -> Proxy:
        made.append(Proxy())
        made[-1].target = port
        return made[-1]

    yield make
    for proxy in made:
        proxy.close()


@pytest.fixture(scope="session")
def rule() -> type[Rule]:
    """`proxy.rule = rule(after_bytes=100, ending="reset")`."""
    return Rule


def event(members: str) -> bytes:
    return f"data: {{{members}}}\n\n".encode()


class Answers:
    """What targets might say, byte for byte."""

    CHOICE = '"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]'
    LAST = '"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]'
    USAGE = '"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}'
    WORDS = ("héllo", "\\n\u2028", "日本語", "🙂\u200d🙂")
    DONE = b"data: [DONE]\n\n"
    HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"

    @classmethod
    def events(cls) -> bytes:
        """A short stream with characters of several bytes, a comment and CRLF among its lines."""
        parts = [b": hello\n\n", *(event(cls.CHOICE % word) for word in cls.WORDS)]
        parts[2] = parts[2].replace(b"\n\n", b"\r\n\r\n")
        return b"".join([*parts, event(cls.LAST), event(cls.USAGE), cls.DONE])

    @classmethod
    def stream(cls, body: bytes | None = None) -> bytes:
        """Every event a chunk of its own, with a trailer behind the last one."""
        body = cls.events() if body is None else body
        parts = [part + b"\n\n" for part in body.split(b"\n\n") if part]
        chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)
        return cls.HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\nx-t: 1\r\n\r\n"

    @staticmethod
    def whole(body: bytes, head: bytes = b"HTTP/1.1 200 OK\r\n") -> bytes:
        length = b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        return head + length + body


@pytest.fixture(scope="session")
def answers() -> type[Answers]:
    return Answers


@dataclass(slots=True)
class Faulty:
    """A running host whose engine and whose provider `alpha` are reached through proxies."""

    stack: Any
    engine: Proxy
    alpha: Proxy
    _patiently: Callable[..., Any]

    def proxy(self, model: str) -> Proxy:
        return self.engine if model == "own" else self.alpha

    def peace(self) -> None:
        """No more trouble, and no memory of it."""
        self.engine.rule = self.alpha.rule = Rule()
        self.stack.forgive("alpha")
        self.stack.forgive("beta")
        self.forget()

    def forget(self) -> None:
        """What the worker remembers of failures."""
        board, dispatcher = self.stack.board, self.stack.app.hot._dispatcher
        first = board.api_stats_row(0, self.stack.runtime.apis.index("alpha/m"))
        for cell in range(first, first + len(SeenCell)):
            board.cells[cell] = 0.0
        for remembered in (
            dispatcher.experience._suspects,
            dispatcher.experience._doubts,
            dispatcher.experience.engines._failures,
        ):
            remembered.clear()
        dispatcher.retries._balance = RESERVE

    def ask(self, model: str, rule: Rule, **members: Any) -> httpx.Response:
        """One request under this rule, at a target whose past does not count."""
        self.proxy(model).rule = rule
        self.forget()
        return self.stack.chat(model, **members)

    def all_settled(self, since: int, count: int) -> list[dict[str, Any]]:
        """The rows behind the first `since`: as many as there were attempts, all with an end."""

        def look() -> list[dict[str, Any]]:
            rows = self.stack.rows("seq > :since", since=since)
            return rows if all(row["settled_us"] for row in rows) and len(rows) >= count else []

        rows = self._patiently(look)
        assert len(rows) == count
        assert self.stack.promises() == [0.0] * 4
        assert self._patiently(lambda: self.stack.app.hot.in_flight == 0), "it ends after its row"
        return rows

    def last_row(self) -> int:
        rows = self.stack.rows()
        return rows[-1]["seq"] if rows else 0


def faulty_host(
    running: Callable[..., Any], patiently: Callable[..., Any], folder: Path, **changes: Any
) -> Iterator[Faulty]:
    engine, alpha = Proxy(), Proxy()
    try:
        with running(folder, through={"engine": engine, "alpha": alpha}, **changes) as stack:
            yield Faulty(stack, engine, alpha, patiently)
    finally:
        engine.close()
        alpha.close()


@pytest.fixture(scope="module")
def faulty(
    tmp_path_factory: pytest.TempPathFactory,
    running: Callable[..., Any],
    patiently: Callable[..., Any],
) -> Iterator[Faulty]:
    """One host for a file's tests."""
    yield from faulty_host(running, patiently, tmp_path_factory.mktemp("host"))


@pytest.fixture(scope="module")
def faulty_with(
    tmp_path_factory: pytest.TempPathFactory,
    running: Callable[..., Any],
    patiently: Callable[..., Any],
) -> Iterator[Callable[..., Faulty]]:
    """`faulty_with(server={...})`: a host with a changed configuration, until the file's end."""
    made: list[Iterator[Faulty]] = []

    def make(**changes: Any) -> Faulty:
        folder = tmp_path_factory.mktemp("host")
        made.append(faulty_host(running, patiently, folder, **changes))
        return next(made[-1])

    yield make
    for made_value in reversed(made):
        next(made_value, None)


# A simulator whose streams, while the file of the first argument is there, fall silent somewhere.
# Where is a matter of the request's name; nothing more is made from then on.
FALLS_SILENT = """
import sys, zlib
from pathlib import Path
from backends.simulator import asgi, generation
from gateway.host.run_module import run_module
silent, module = Path(sys.argv.pop(1)), sys.argv.pop(1)
Generation = generation.Generation
talks = Generation._stream
async def falls_silent(self, watch, send, headers, cut_after):
    if not silent.exists():
        return await talks(self, watch, send, headers, cut_after)
    last = 1 + zlib.crc32(asgi.header(self._scope, b"x-request-id").encode()) % 300
    await asgi.start(send, 200, [asgi.EVENTS, *headers])
    while not watch.gone:
        await watch.wait()
        over = self._sent[0] < last <= self._running[0].generated
        if over:
            self._setting.source.stop(self._running[0])
        if self._sent[0] < last and (part := self._fresh()):
            await asgi.more(send, part)
        if over:
            await asgi.more(send, b": silent\\n\\n")
    return False
Generation._stream = falls_silent
run_module(module)
"""


class Targets:
    """A simulated engine and a simulated provider as processes, each with its own account.

    While `folder / "silent"` exists, the streams that begin fall silent after some tokens.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = [find_quiet_port() for _ in range(2)]
        self._accounts = folder / "engine.jsonl", folder / "provider.jsonl"
        modules = [
            ["backends.simulator.server", "--profile", ENGINE, "--model", "llama"],
            ["backends.simulator.provider", "--name", "p", "--ttft-ms", "20", "--tpot-ms", "2"],
        ]
        self.processes = [
            warmstart.programs().start(
                [folder / "silent", *words, "--port", str(port), "--journal", account],
                program=FALLS_SILENT,
            )
            for words, port, account in zip(modules, self.ports, self._accounts, strict=True)
        ]

    def entries(self) -> list[dict[str, Any]]:
        """What the targets wrote of every try that they saw."""
        engine, provider = self._accounts
        files = (engine, provider.with_suffix(".p"))
        lines = "".join(path.read_text() for path in files).splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def attempts(self) -> set[str]:
        return {entry["request_id"] for entry in self.entries()}

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait(30)


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[Targets]:
    made = Targets(tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def peace(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test's trouble ends with it."""
    yield
    if "faulty" in request.fixturenames:
        request.getfixturevalue("faulty").peace()


# ---------------------------------------------------------------- a target that costs nothing


_ANSWER = json.dumps({
    "id": "a", "object": "chat.completion", "created": 1, "model": "m", "text": "x", "data": [],
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "text": "x",
                 "finish_reason": "stop"}],
    "results": [{"index": 0, "relevance_score": 0.5}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8},
}).encode()  # fmt: skip
_EVENTS = (
    b'data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'
    b'data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1}}\n\ndata: [DONE]\n\n'
)


class _AnsweringHandler(BaseHTTPRequestHandler):
    """Reads whatever comes and answers at once, in a few bytes."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment

    def do_POST(self) -> None:
        stream = b'"stream":true' in self.rfile.read(int(self.headers["content-length"]))
        said = _EVENTS if stream else _ANSWER
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if stream else "application/json")
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture(scope="module")
def answering() -> Iterator[int]:
    """The port of a target whose answers cost nothing: of any kind, whole or streamed."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _AnsweringHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


# ---------------------------------------------------------------- many who ask, whoever answers


@dataclass(slots=True)
class AskedRequest:
    """One request of a crowd: when it was sent (monotonic), and what came of it so far."""

    at_s: float
    status: int = 0  # 0: no answer so far
    headers: dict[str, str] = field(default_factory=dict)
    first_s: float | None = None  # seconds until something of the body came,
    took_s: float | None = None  # and until its end
    whole: bool = False

    @property
    def backend(self) -> str:
        return self.headers.get("x-breakeven-backend", "")


class Crowd:
    """Streams asked for at a steady rate, answers or not; a thread and a connection for each."""

    def __init__(self) -> None:
        self._loop, self._work = asyncio.new_event_loop(), list[Any]()  # held, or it is collected
        self._thread = threading.Thread(target=self._loop.run_forever, name="crowd", daemon=True)
        self._thread.start()

    def ask(
        self, port: int, per_s: float, seconds: float, token: str, **body: Any
    ) -> list[AskedRequest]:
        """Returns at once; the list grows as they are sent."""
        sent: list[AskedRequest] = []
        words = {"messages": [{"role": "user", "content": "hi"}], "stream": True, **body}
        data = json.dumps(words).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {token}\r\n"
        text = head.encode() + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(data) + data
        work = self._send(sent, port, round(per_s * seconds), per_s, text)
        self._work.append(asyncio.run_coroutine_threadsafe(work, self._loop))
        return sent

    async def _send(
        self, sent: list[AskedRequest], port: int, count: int, per_s: float, text: bytes
    ) -> None:
        begun_s = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                await asyncio.sleep(max(0.0, begun_s + number / per_s - time.monotonic()))
                sent.append(AskedRequest(time.monotonic()))
                tasks.create_task(self._one(sent[-1], port, text))

    async def _one(self, asked: AskedRequest, port: int, text: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(text)
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            asked.headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:-2])
            asked.status, last = int(head[9:12]), b""
            while piece := await reader.read(65536):
                asked.first_s = asked.first_s or time.monotonic() - asked.at_s
                last = (last + piece)[-64:]
            asked.whole, asked.took_s = b"[DONE]" in last, time.monotonic() - asked.at_s
        except (OSError, asyncio.IncompleteReadError):
            asked.took_s = time.monotonic() - asked.at_s
        finally:
            writer.transport.abort()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
def crowd() -> Iterator[Crowd]:
    made = Crowd()
    yield made
    made.close()
