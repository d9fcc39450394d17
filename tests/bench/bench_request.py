"""What one whole request costs a worker: CPU of its thread and, with `--instructions`, those.

The worker's application as `python -m gateway.worker` has it, in this process: its HTTP protocol,
key check, plan among eight candidates, three hard budgets, journal with its flushes, metrics. Only
the two wires are missing: clients and targets are transports that hand bytes over at once. Figures
by the clock drift with the machine; instructions (`valgrind --tool=callgrind`, needs `valgrind`)
are the same within a hundredth, whoever else computes. The kernel's part is in neither.
Writes `build/bench-request.json`; `ARGS=--stream`: 32 chunks of an own engine, in place of 1 KB;
`--long`: conversations of 400 KB in 60 messages; `--hit`: all but the first are answered from the
response cache; `--unstored`: on a host that keeps no answers, which shows what keeping costs those
that keep nothing.
"""

import argparse
import asyncio
import gc
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
COUNTING = "--counting" in sys.argv
SLOWER = 40 if COUNTING else 1  # callgrind's way to compute, and so the clocks go
RARER = 25 if COUNTING else 1  # chores, which sleep by the wall: neighbours would add to them


def _passed_ns() -> int:
    """By this process's CPU: by the wall, what is due after a time comes oftener beside others."""
    return time.process_time_ns() // SLOWER


if COUNTING:  # or what is looked at every 10 ms were looked at for every request
    began, started = time.time_ns(), time.monotonic()
    time.time_ns = lambda: began + _passed_ns()
    time.monotonic = lambda: started + _passed_ns() / 1e9

import uvloop  # noqa: E402  (after the checkout's packages, as all below)
import yaml  # noqa: E402  (as above)
from bench_plan import ENGINE  # noqa: E402  (as above)
from ours import _prices, configuration  # noqa: E402  (as above)
from uvicorn.server import ServerState  # noqa: E402  (as above)

from gateway.clock import Clock  # noqa: E402  (as above)
from gateway.config.settings import load  # noqa: E402  (as above)
from gateway.fleet.shared_load import SharedLoadTable  # noqa: E402  (as above)
from gateway.host.prepare import prepare  # noqa: E402  (as above)
from gateway.table_layout import EngineCell  # noqa: E402  (as above)
from gateway.worker.__main__ import compose, server  # noqa: E402  (as above)
from ledger.budgets import broker_protocol as wire  # noqa: E402  (as above)
from ledger.database import make_engine  # noqa: E402  (as above)
from ledger.identity.keys import KeySpec, create_key, load_pepper  # noqa: E402  (as above)
from ledger.unixsocket import short_path  # noqa: E402  (as above)

CLIENTS, BATCHES, CHUNKS = 32, 60, 32
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n%b\r\n"
USAGE = {"prompt_tokens": 560, "completion_tokens": 200, "total_tokens": 760}


def whole() -> list[bytes]:
    """An answer of 1 KB in one read."""
    message = {"role": "assistant", "content": "a" * 700}
    body = json.dumps(
        {"id": "1", "object": "chat.completion", "model": "mock", "usage": USAGE,
         "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    ).encode()  # fmt: skip
    return [HEAD % (b"application/json", b"content-length: %d\r\n" % len(body)) + body]


def streamed() -> list[bytes]:
    """As an engine says it with running usage: a read for each chunk."""
    pieces = []
    for number in range(CHUNKS + 2):
        choice = {"index": 0, "delta": {"content": "token "}, "finish_reason": None}
        if number == CHUNKS:
            choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        told = number + 1
        usage = USAGE | {"completion_tokens": told, "total_tokens": USAGE["prompt_tokens"] + told}
        event = {"id": "1", "object": "chat.completion.chunk", "model": "mock",
                 "choices": [] if number > CHUNKS else [choice], "usage": usage}  # fmt: skip
        pieces.append(b"data: %b\n\n" % json.dumps(event, separators=(",", ":")).encode())
    pieces[-1] += b"data: [DONE]\n\n"
    head = HEAD % (b"text/event-stream", b"transfer-encoding: chunked\r\n")
    parts = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    return [head, *parts[:-1], parts[-1] + b"0\r\n\r\n"]


class Wire:
    """A transport whose other end takes everything and is told of it."""

    def __init__(self, told: Callable[[bytes], None]) -> None:
        self.write = told

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)}.get(name, default)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None: ...
    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class Loop(uvloop.Loop):  # type: ignore[misc]  # untyped
    """Whose connections lead to targets that answer at once, piece by piece."""

    answer: list[bytes]

    def call_later(self, delay: float, then: Any, *more: Any, **named: Any) -> Any:
        """Chores that sleep go as slowly as the clocks; deadlines are never met here."""
        sleeps = then.__name__ in ("_set_result_unless_cancelled", "_start_lazily")
        wait = SLOWER * RARER * delay if sleeps else delay
        return super().call_later(wait, then, *more, **named)

    async def create_connection(self, make: Any, *_: Any, **__: Any) -> Any:
        protocol = make()

        def told(_: bytes) -> None:
            for piece in self.answer:
                self.call_soon(protocol.data_received, piece)

        made = Wire(told)
        protocol.connection_made(made)
        return made, protocol


class Clients:
    """Each asks again as soon as it is answered, while there is something to ask."""

    def __init__(self, make: Callable[[], Any], question: bytes, loop: Loop) -> None:
        self._question, self._loop, self._left = question, loop, 0
        self._done: asyncio.Future[None] = loop.create_future()
        self._open = 0
        self._protocols = [self._client(make) for _ in range(CLIENTS)]

    def _client(self, make: Callable[[], Any]) -> Any:
        protocol = make()

        def told(data: bytes) -> None:
            if data[:9] == b"HTTP/1.1 ":
                assert data[9:12] == b"200", data
            if data.endswith((b"0\r\n\r\n", b"}")):
                self._loop.call_soon(self._next, protocol)

        protocol.connection_made(Wire(told))
        return protocol

    def _next(self, protocol: Any) -> None:
        if self._left:
            self._left -= 1
            protocol.data_received(self._question)
            return
        self._open -= 1
        if not self._open:
            self._done.set_result(None)

    async def ask(self, count: int) -> None:
        self._left, self._open, self._done = count, CLIENTS, self._loop.create_future()
        for protocol in self._protocols:
            self._next(protocol)
        await self._done


async def desk(
    scopes: tuple[str, ...], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Knows hard budgets on these scopes and lends whatever is asked, a thousand times over."""
    lines = tuple(
        wire.BudgetTerms(f"{scope}@month", scope, "month", "UTC", True, str(10**18))
        for scope in scopes
    )
    writer.write(wire.frame(wire.BudgetUpdate(lines=lines)))
    async for payload in wire.payloads(reader):
        asked = wire.REQUESTS.decode(payload)
        if isinstance(asked, wire.LoanRequest):
            much = tuple(wire.amount(ask.key, 10**16) for ask in asked.asks)
            writer.write(wire.frame(wire.Loan(asked.number, much)))


def publish(board: SharedLoadTable) -> None:
    for row in range(len(board.layout.engines)):
        board.publish(row, {**ENGINE, EngineCell.UPDATED_S: time.monotonic() + 3600.0})


def question(token: str, given: argparse.Namespace) -> bytes:
    turns = ["tokens " * 970] * 60 if given.long else ["tokens " * 266]
    asked: dict[str, Any] = {"model": "mock", "max_tokens": 512, "messages": [
        {"role": "user", "content": text} for text in turns
    ]}  # fmt: skip
    asked |= {"temperature": 0} if given.hit else {}
    body = json.dumps(asked | ({"stream": True} if given.stream else {})).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:8080\r\n"
        f"content-type: application/json\r\nauthorization: Bearer {token}\r\n"
    )
    return head.encode() + b"content-length: %d\r\n\r\n" % len(body) + body


async def measured(folder: Path, given: argparse.Namespace, loop: Loop) -> list[float]:
    """Microseconds of this thread a request, one figure per batch."""
    prices, config = folder / "prices.yaml", folder / "bench.yaml"
    prices.write_text(yaml.safe_dump(_prices()))
    document = configuration(folder, prices, list(range(9001, 9005)), port=8080, workers=1)
    document |= {"response_cache": {"enabled": True}} if given.hit else {}
    document |= {"store": {"enabled": False}} if given.unstored else {}
    config.write_text(yaml.safe_dump(document))
    settings = load(config)
    runtime = prepare(settings, config).runtime
    engine = make_engine(runtime.ledger_url)
    with engine.begin() as connection:
        spec = KeySpec(name="bench", team="bench", org="bench")
        key = create_key(connection, spec, pepper=load_pepper(folder), now_us=Clock().wall_us())
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    publish(board)
    with short_path(runtime.run_dir / "desk.sock") as path:
        budgets = ("org:bench", "team:bench", f"key:{key.key_id}")
        lender = await asyncio.start_unix_server(partial(desk, budgets), path)
    app = compose(settings, runtime, 0)
    config_of = server(app, settings.server.timeouts).config
    config_of.load()
    make = partial(config_of.http_protocol_class, config=config_of, server_state=ServerState(),
                   app_state={}, _loop=loop)  # fmt: skip
    loop.answer = streamed() if given.stream else whole()
    batches = []
    async with app.router.lifespan_context(app):
        clients = Clients(make, question(key.token, given), loop)
        await clients.ask((2 if given.long else 20) * CLIENTS)  # a long one warms as much
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 50, 1000)
        _count_instructions(on=True)
        for _ in range(1 if COUNTING else given.batches):
            start = time.thread_time_ns()
            await clients.ask(given.requests)
            batches.append((time.thread_time_ns() - start) / given.requests / 1000)
        _count_instructions(on=False)
    lender.close()
    return sorted(batches)


def _count_instructions(*, on: bool) -> None:
    if COUNTING:
        switch = ["callgrind_control", "-i", "on" if on else "off", str(os.getpid())]
        subprocess.run(switch, check=True, capture_output=True)


def instructions(given: argparse.Namespace) -> float:
    """Of one request in the program, by running it again under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        again = [sys.executable, __file__, "--counting", "--requests", str(given.requests)]
        flags = ("--stream", "--long", "--hit", "--unstored")
        again += [flag for flag in flags if getattr(given, flag[2:])]
        count = ["valgrind", "--tool=callgrind", "--instr-atstart=no",
                 f"--callgrind-out-file={out}"]  # fmt: skip
        # Where a text is put among others depends on this, and with it how long a look-up takes.
        fixed = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.run([*count, *again], check=True, env=fixed, capture_output=True)
        total = re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)
        assert total is not None
        return int(total[1]) / given.requests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--long", action="store_true", help="400 KB in 60 messages")
    parser.add_argument("--hit", action="store_true", help="of the response cache")
    parser.add_argument("--unstored", action="store_true", help="on a host that keeps no answers")
    parser.add_argument("--requests", type=int, default=640, help="in each batch")
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--instructions", action="store_true", help="count them, too: 1 minute")
    parser.add_argument("--counting", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    loop = Loop()
    asyncio.set_event_loop(loop)
    with tempfile.TemporaryDirectory() as folder:
        batches = loop.run_until_complete(measured(Path(folder), given, loop))
    if COUNTING:
        return 0
    what = f"a streamed request of {CHUNKS} chunks" if given.stream else "a request"
    what += " of 60 messages, 400 KB" if given.long else "" if given.stream else " of 2 KB"
    what = f"a hit: {what}" if given.hit else what
    what = f"{what} without kept answers" if given.unstored else what
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    quiet, middle = batches[len(batches) // 10], statistics.median(batches)
    print(f"{what}: p10 {quiet:.1f} us of the thread, median {middle:.1f} us; {machine}")
    note = f"p10 of batches; median {middle:.1f}; {machine}"
    figures = [{"figure": what, "value": round(quiet, 2), "unit": "us", "note": note}]
    if given.instructions:
        counted = instructions(given) / 1000
        print(f"{what}: {counted:.1f} thousand instructions outside the kernel")
        figures.append(
            {"figure": what, "value": round(counted, 1), "unit": "1000 instructions",
             "note": f"callgrind; {machine}"}
        )  # fmt: skip
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench-request.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
