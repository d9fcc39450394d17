"""The whole gateway on shipped parts, in one background loop, for tests over real sockets.

`Stack` runs what `serve` runs: a worker's application under its own HTTP server, telemetry, the
ledger writer with its desk, on a SQLite ledger made by `prepare`; a simulated engine and simulated
providers stand in for what costs money. Only the number of processes differs.
"""

import asyncio
import contextlib
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import uvicorn
import uvloop
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import text
from sqlalchemy.orm import Session

from backends.simulator.journal import Journal
from backends.simulator.latency import Latency
from backends.simulator.profiles import PROFILES
from backends.simulator.provider import Provider
from backends.simulator.quota import Quota
from backends.simulator.running import bind
from backends.simulator.server import Server
from gateway.bootstrap import Exposition, Ledger, build
from gateway.clock import Clock
from gateway.prepare import prepare
from gateway.settings import parse
from gateway.slots import Board, Load
from gateway.telemetry import Telemetry
from gateway.worker import server as http_server
from ledger.book import load_price_book
from ledger.database import make_engine, open_readonly
from ledger.identity import CreatedKey, KeyRing, KeySpec, create_key, load_pepper
from ledger.writer import LedgerWriter

ENGINE = "h200-llama-3.1-8b-fp8"
QUICK = Latency(ttft_s=0.02, ttft_sigma=0.0, tpot_s=0.002, tpot_sigma=0.0)
SLOW_START = Latency(ttft_s=30.0, ttft_sigma=0.0, tpot_s=0.002, tpot_sigma=0.0)
SLOW_PACE = Latency(ttft_s=0.02, ttft_sigma=0.0, tpot_s=0.05, tpot_sigma=0.0)
PROVIDERS = {"alpha": QUICK, "beta": QUICK, "late": SLOW_START, "steady": SLOW_PACE}
PRICED_AS = {"beta": "openai/gpt-4o"}
PATIENCE_S = 20.0


def eventually(check: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of `check`; fails with its last value when patience ends."""
    deadline = time.monotonic() + patience_s
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < deadline, f"never came true; last: {value!r}"
        time.sleep(0.02)


def document(state: Path, ports: dict[str, int], changes: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a stack; `changes` replaces whole sections."""
    engine = {
        "kind": "simulated", "model": ENGINE, "served_name": "llama",
        "endpoints": [f"http://127.0.0.1:{ports['engine']}/v1"],
    }  # fmt: skip
    gpu = {"type": "H200", "usd_per_hour": "3.50", "source": "test"}
    compared = ["openai/gpt-4o-mini"]
    found: dict[str, Any] = {
        "state_dir": str(state),
        "server": {"timeouts": {"drain_s": 1}},
        "telemetry": {"scrape_s": 0.1, "stale_s": 10},
        "models": {
            "chat": {"targets": ["pool:main", "alpha/m"], "compare_with": compared},
            "gpt-4o": {"same_as": "chat"},
            "own": {"targets": ["pool:main"], "compare_with": compared},
            "api": {"targets": ["alpha/m"], "compare_with": compared},
            "pair": {"targets": ["alpha/m", "beta/m"], "compare_with": compared},
            "late": {"targets": ["late/m"]},
            "steady": {"targets": ["steady/m"]},
            "alpha/*": "passthrough",
            "embed": {"targets": ["pool:embed"], "compare_with": ["openai/text-embedding-3-small"]},
        },
        "pools": {
            "main": {"engine": engine, "gpu": gpu},
            "embed": {"engine": {**engine, "kinds": ["embedding"]}, "gpu": gpu},
        },
        "providers": {
            name: {
                "base_url": f"http://127.0.0.1:{ports[name]}/v1",
                "simulated": True,
                "prices_as": PRICED_AS.get(name, "openai/gpt-4o-mini"),
            }
            for name in PROVIDERS
        },
        "policies": [{"name": "plain"}],
    }
    return {**found, **changes}


class Quiet(uvicorn.Server):
    """A server in a thread has no signals to listen for, and no test waits for its clients."""


class Stack:
    """Start with `with`; `call` runs a coroutine in the background loop."""

    def __init__(self, state: Path, changes: dict[str, Any]) -> None:
        self.state, self.changes = state, changes
        self.journals = {name: Journal() for name in ("engine", *PROVIDERS)}
        self.registry = CollectorRegistry()
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="stack", daemon=True)
        self._servers: list[tuple[uvicorn.Server, asyncio.Task[None]]] = []
        self._tokens: dict[str, CreatedKey] = {}
        self.writing = True

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def __enter__(self) -> Self:
        self._thread.start()
        self.call(self._start())
        self.reader = open_readonly(self.runtime.ledger_url)
        self.token = self.key("default").token
        eventually(lambda: self.get("/readyz").status_code == 200)
        eventually(lambda: all(self.board.published(row)[10] for row in range(2)))
        return self

    def __exit__(self, *_: object) -> None:
        self.call(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.reader.dispose()

    # -- asking -------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"authorization": f"Bearer {token or self.token}"}

    def get(self, path: str, token: str | None = None) -> httpx.Response:
        return httpx.get(self.url + path, headers=self.headers(token), trust_env=False)

    def post(self, path: str, body: Any, token: str | None = None) -> httpx.Response:
        return httpx.post(
            self.url + path, json=body, headers=self.headers(token), trust_env=False, timeout=60
        )

    def chat(self, model: str = "chat", token: str | None = None, **members: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": "hello there"}], **members}
        return self.post("/v1/chat/completions", body, token)

    def raw(self, body: Any, path: str = "/v1/chat/completions") -> socket.socket:
        """A connection on which a request was sent and nothing was read."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {self.token}\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        connection.sendall(head.encode() + data)
        return connection

    def key(self, name: str, **spec: Any) -> CreatedKey:
        if name not in self._tokens:
            with Session(self.database) as session, session.begin():
                self._tokens[name] = create_key(
                    session,
                    KeySpec(**{"name": name, "team": "search", **spec}),
                    pepper=load_pepper(self.state),
                    now_us=Clock().wall_us(),
                )
        return self._tokens[name]

    # -- looking ------------------------------------------------------------------------------

    def rows(self, where: str = "1=1", **values: Any) -> list[dict[str, Any]]:
        with self.reader.connect() as connection:
            query = text(f"SELECT * FROM attempts WHERE {where} ORDER BY seq")
            return [dict(row) for row in connection.execute(query, values).mappings()]

    def settled(self, answer: httpx.Response | str, count: int = 1) -> list[dict[str, Any]]:
        """The rows of a request once all `count` of them are settled."""
        name = answer if isinstance(answer, str) else answer.headers["x-request-id"]

        def look() -> list[dict[str, Any]]:
            rows = self.rows("request_id = :name", name=name)
            done = len(rows) >= count and all(row["settled_us"] for row in rows)
            return rows if done else []

        rows = eventually(look)
        assert len(rows) == count
        return rows

    def entries(self, upstream: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journals[upstream].lines().splitlines()]

    def connections(self) -> int:
        """Clients that the gateway's server is connected with."""
        return len(self._servers[-1][0].server_state.connections)

    def promises(self) -> list[float]:
        """What is in flight on the first engine, by the board."""
        loads = self.board.loads(0)
        first = (Load.SEQUENCES, Load.CONTEXT_TOKENS, Load.QUEUED_PREFILL_TOKENS)
        return [loads[cell] for cell in (*first, Load.PROMISED_TOKENS)]

    def fault(self, provider: str, **fault: Any) -> None:
        url = f"http://127.0.0.1:{self.ports[provider]}/_faults"
        assert httpx.post(url, json=fault, trust_env=False).status_code == 200

    def forgive(self, provider: str) -> None:
        """No more trouble, and no memory of it."""
        httpx.delete(f"http://127.0.0.1:{self.ports[provider]}/_faults", trust_env=False)
        for row in range(len(self.runtime.apis)):
            base = self.board.seen_row(0, row)
            for cell in range(base, base + 9):
                self.board.cells[cell] = 0.0

    # -- parts --------------------------------------------------------------------------------

    async def _start(self) -> None:
        sockets = {name: bind("127.0.0.1", 0) for name in ("engine", *PROVIDERS)}
        self.ports = {name: one.getsockname()[1] for name, one in sockets.items()}
        engine = Server(
            PROFILES[ENGINE].shape, "llama", profile=ENGINE, journal=self.journals["engine"]
        )
        self._serve(Quiet(config(engine)), sockets["engine"])
        for name, latency in PROVIDERS.items():
            provider = Provider(
                name, rng=random.Random(1), journal=self.journals[name],
                quota=Quota(1_000_000, 1_000_000_000), latency=latency,
            )  # fmt: skip
            self._serve(Quiet(config(provider)), sockets[name])
        self.state.mkdir(parents=True, exist_ok=True)
        path = self.state / "breakeven.yaml"
        path.write_text(yaml.safe_dump(document(self.state, self.ports, self.changes)))
        self.settings = parse(path.read_text(), name="test")
        self.runtime = prepare(self.settings, path).runtime
        self.database = make_engine(self.runtime.ledger_url)
        self.board = Board(self.runtime.run_dir / "board", self.runtime.layout)
        self.start_writer()
        await self.start_gateway()
        telemetry = Telemetry(self.settings, self.runtime, self.board, self.database, Clock())
        self._telemetry = asyncio.create_task(telemetry.run())

    async def start_gateway(self) -> None:
        keys = KeyRing(self.database, self.runtime.run_dir, self.state)
        self.app = build(
            self.settings, self.runtime, 0,
            Ledger(load_price_book(self.database), keys),
            Exposition(self.registry, lambda: generate_latest(self.registry)),
            {},
        )  # fmt: skip
        listener = bind("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        self._serve(http_server(self.app, self.settings.server.timeouts), listener)

    def start_writer(self) -> None:
        self._stop_writer = asyncio.Event()
        writer = LedgerWriter(
            self.database, journals=self.runtime.journal_dir, run_dir=self.runtime.run_dir,
            host="test",
        )  # fmt: skip
        self._writer = asyncio.create_task(writer.run(self._stop_writer))

    async def stop_writer(self) -> None:
        self._stop_writer.set()
        await self._writer

    def _serve(self, server: uvicorn.Server, listener: socket.socket) -> None:
        task = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
        self._servers.append((server, task))

    async def _stop(self) -> None:
        for server, task in reversed(self._servers):  # the gateway first
            server.should_exit = True
            await task
        self._telemetry.cancel()
        await asyncio.gather(self._telemetry, return_exceptions=True)
        await self.stop_writer()
        self.board.close()
        self.database.dispose()
        await self._loop.shutdown_default_executor()


def config(application: Any) -> uvicorn.Config:
    return uvicorn.Config(
        application, lifespan="on", access_log=False, log_level="critical",
        timeout_graceful_shutdown=1,
    )  # fmt: skip


@pytest.fixture(scope="session")
def running() -> Callable[..., contextlib.AbstractContextManager[Stack]]:
    """`with running(directory, budgets=[...]) as stack`, for fixtures of any scope."""
    return host


@contextlib.contextmanager
def host(state: Path, **changes: Any) -> Iterator[Stack]:
    with Stack(state, changes) as stack:
        yield stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One running host for a file's tests."""
    with host(tmp_path_factory.mktemp("host")) as stack:
        yield stack


@pytest.fixture
def run_stack(tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[Stack]]:
    """A host of one's own: `with run_stack(budgets=[...]) as stack`."""
    return lambda **changes: host(tmp_path / "host", **changes)


@pytest.fixture(scope="session")
def patiently() -> Callable[..., Any]:
    """`patiently(check)`: the first true value that it returns."""
    return eventually


@pytest.fixture(scope="session")
def events_of() -> Callable[[bytes], list[Any]]:
    """The payloads of an event stream, decoded; `[DONE]` stays text."""

    def read(stream: bytes) -> list[Any]:
        lines = [part[6:] for part in stream.decode().split("\n\n") if part]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    return read


@pytest.fixture(scope="session")
def reset() -> Callable[[socket.socket], None]:
    """Hang up with RST instead of FIN."""

    def close(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    return close
