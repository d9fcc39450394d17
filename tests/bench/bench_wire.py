"""What the wire costs: one request over the HTTP client, one chunk through each relay.

Prints a table and writes `build/bench-wire.json`. Figures are CPU time of this thread, a batch at
a time, and the bar is on the least disturbed tenth of the batches: neighbours on a shared machine
add time and never take any away. The upstream is a process of its own. Run it as
`python tests/bench/bench_wire.py`.
"""

import asyncio
import gc
import json
import multiprocessing
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from backends.base import Call, Deadlines  # noqa: E402  (the checkout's packages)
from backends.exchange import read_all  # noqa: E402  (the checkout's packages)
from backends.http import HttpClient  # noqa: E402  (the checkout's packages)
from backends.openai import OpenAIBackend  # noqa: E402  (the checkout's packages)
from gateway.kinds.engine_relay import EventRelay  # noqa: E402  (as below)
from gateway.kinds.relay import ByteRelay  # noqa: E402  (the checkout's packages)

BATCHES, REQUESTS, CONCURRENT, CHUNKS = 40, 500, 32, 2000
BODY = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 2000 + b'"}]}'
ANSWER = b'{"choices":[],"text":"' + b"y" * 1000 + b'"}'
EVENT = (
    b'data: {"id":"chatcmpl-9a1a70346a276bf4","object":"chat.completion.chunk","created":1795202,'
    b'"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,'
    b'"finish_reason":null,"token_ids":null}]%s}\n\n'
)
RUNNING = b',"usage":{"prompt_tokens":9,"total_tokens":10,"completion_tokens":1}'


class AnsweringPeer(asyncio.Protocol):
    """Answers whatever ends with the request's body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b'"}]}'):
            head = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
            )
            self.transport.write(head % len(ANSWER) + ANSWER)


def serve(pipe: Pipe) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(AnsweringPeer, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


async def request_batches(port: int) -> list[float]:
    client = HttpClient()
    backend = OpenAIBackend(f"http://127.0.0.1:{port}/v1", client=client)
    call = Call("/chat/completions", BODY, stream=False, deadlines=Deadlines())

    async def some(count: int) -> None:
        for _ in range(count):
            assert await read_all(await backend.open(call), 1 << 20) == ANSWER

    async def batch() -> None:
        await asyncio.gather(*[some(REQUESTS // CONCURRENT) for _ in range(CONCURRENT)])

    await batch()
    done = REQUESTS // CONCURRENT * CONCURRENT
    figures = []
    for _ in range(BATCHES):
        start = time.thread_time_ns()
        await batch()
        figures.append((time.thread_time_ns() - start) / done / 1000)
    await client.aclose()
    return sorted(figures)


def relay_batches(make: Callable[[], ByteRelay], event: bytes) -> list[float]:
    figures = []
    for _ in range(BATCHES):
        feed = make().feed
        start = time.thread_time_ns()
        for _ in range(CHUNKS):
            feed(event)
        figures.append((time.thread_time_ns() - start) / CHUNKS / 1000)
    return sorted(figures)


def main() -> int:
    machine = f"{os.cpu_count()} cores {platform.machine()}, Python {platform.python_version()}"
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,))
    process.start()
    try:
        port = ours.recv()
        gc.collect()
        gc.freeze()
        running = EVENT % RUNNING
        rows = [
            ("client, one request", uvloop.run(request_batches(port)), 25.0),
            (
                "EventRelay, one chunk",
                relay_batches(lambda: EventRelay(True), running),
                3.0,
            ),
            ("ByteRelay, one chunk", relay_batches(lambda: ByteRelay(True), EVENT % b""), 3.0),
        ]
    finally:
        process.terminate()
        process.join()
    figures = []
    print(f"CPU of the wire; {machine}")
    print(f"{'figure':>24} {'p10 us':>8} {'median us':>10} {'bar us':>7}  ok")
    for name, batches, bar in rows:
        quiet, middle = batches[BATCHES // 10], statistics.median(batches)
        ok = quiet <= bar
        print(f"{name:>24} {quiet:8.2f} {middle:10.2f} {bar:7.1f}  {ok}")
        note = f"p10 of batches; median {middle:.2f}; {machine}"
        figures.append(
            {"figure": name, "value": round(quiet, 2), "unit": "us", "bar": bar, "ok": ok,
             "note": note}
        )  # fmt: skip
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    (build / "bench-wire.json").write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if all(figure["ok"] for figure in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
