"""A thousand clients that ask for a stream and never read it, at a real host: `make soak FULL=1`.

The provider says more than anybody would take, as fast as it is taken, and counts what it could
write. What lies in the kernel's buffers between is nobody's memory here.
"""

import asyncio
import json
import os
import resource
import socket
import threading
from pathlib import Path

import pytest

FULL = os.environ.get("SOAK_FULL", "0") == "1"
STALLED = 1_000 if FULL else 100
WORKERS = 2
STALL_S = 60.0
WORKER_MIB = 150
SMALL_BYTES = 4096  # of a client's receive buffer
PER_S, FOR_S = 10.0, 12.0  # streams of others meanwhile
WORD = b"x" * 900
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % WORD
CHUNK = b"%x\r\n%b\r\n" % (16 * len(EVENT), 16 * EVENT)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

pytestmark = pytest.mark.long


class Endless:
    """A provider in a thread; `wrote`: bytes of content taken from it, by attempt."""

    def __init__(self) -> None:
        self.wrote: dict[str, int] = {}
        self.gone: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listener = socket.create_server(("127.0.0.1", 0), backlog=STALLED)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
        self.port = listener.getsockname()[1]
        self._server = self._do(asyncio.start_server(self._talk, sock=listener))

    def _do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _talk(self, reader, writer) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        name = head.partition("x-request-id: ")[2].partition("\r\n")[0]
        self.wrote[name] = 0
        writer.transport.set_write_buffer_limits(0)
        writer.write(HEAD)
        try:
            while True:
                writer.write(CHUNK)
                await writer.drain()
                self.wrote[name] += 16 * len(WORD)
        except OSError:
            self.gone.add(name)
        finally:
            writer.transport.abort()

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self._do(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def endless():
    made = Endless()
    yield made
    made.close()


@pytest.fixture
def host(make_host, endless):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    timeouts = {"client_stall_s": STALL_S, "connect_s": 60, "drain_s": 2}
    own = {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]}
    base_url = f"http://127.0.0.1:{endless.port}/v1"
    provider = {"base_url": base_url, "simulated": True, "prices_as": "openai/gpt-4o-mini"}
    made = make_host(
        server={"port": 0, "workers": WORKERS, "timeouts": timeouts},
        models={"own": own, "endless/*": "passthrough"},
        providers={"endless": provider},
    )
    made.start()
    yield made
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident_mib(host) -> list[float]:
    pids = host.pids("gateway.worker")
    return [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) / 256 for pid in pids]


def ask(host) -> socket.socket:
    """A stream that nobody will read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
    client.connect(("127.0.0.1", int(host.url.rpartition(":")[2])))
    messages = [{"role": "user", "content": "hi"}]
    data = json.dumps({"model": "endless/m", "messages": messages, "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {host.token}"
    client.sendall(f"{head}\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
    return client


def test_a_thousand_who_do_not_read(host, endless, crowd, patiently) -> None:
    port = int(host.url.rpartition(":")[2])
    before = crowd.ask(port, PER_S, FOR_S, host.token, model="own", max_tokens=40)
    patiently(lambda: len(before) == PER_S * FOR_S and all(item.took_s for item in before), 60)
    calm = resident_mib(host)
    clients = [ask(host) for _ in range(STALLED)]
    patiently(lambda: len(endless.wrote) == STALLED, 60)
    beside = crowd.ask(port, PER_S, FOR_S, host.token, model="own", max_tokens=40)
    patiently(
        lambda: len(beside) == PER_S * FOR_S and all(neighbour.took_s for neighbour in beside), 60
    )
    full = resident_mib(host)
    patiently(lambda: len(endless.gone) == STALLED, 2 * STALL_S + 60)
    rows = patiently(lambda: settled(host), 60)
    for name, some in (("before", before), ("beside", beside)):
        took = sorted(item.took_s for item in some)
        print(f"{name}: {took[len(took) // 2]:.3f} s (p50), {took[-2]:.3f} s (p99)")
    print(
        f"workers: {[f'{item:.1f}' for item in calm]} MiB, then {[f'{item:.1f}' for item in full]}"
    )
    assert all(neighbour.whole for neighbour in (*before, *beside))
    assert max(full) <= WORKER_MIB
    assert {row["status"] for row in rows} == {"timeout"}
    assert {row["attempt_id"] for row in rows} == set(endless.wrote)
    for row in rows:  # more came than it may cost at most: that is what it costs
        assert endless.wrote[row["attempt_id"]] > 8 * row["output_tokens"] > 0
        assert 0 < row["cost_pusd"] <= row["bound_pusd"]
    for client in clients:
        client.close()


def settled(host) -> list:
    rows = host.rows("model = 'endless/m' AND settled_us IS NOT NULL")
    return rows if len(rows) == STALLED else []
