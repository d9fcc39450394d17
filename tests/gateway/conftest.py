"""The whole gateway on shipped parts, in one background loop, for tests over real sockets.

`Stack` runs what `serve` runs: a worker's application under its HTTP server, telemetry, the writer.
"""

import asyncio
import contextlib
import functools
import json
import os
import random
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import uvicorn
import uvloop
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from sqlalchemy import text

from backends.event_server import EventServer
from backends.simulator.journal import RequestJournal
from backends.simulator.latency import Latency
from backends.simulator.profiles import PROFILES
from backends.simulator.provider import SimulatedProvider
from backends.simulator.quota import Quota
from backends.simulator.running import bind
from backends.simulator.server import SimulatedEngineApp
from deploy import once, warmstart
from gateway.clock import Clock
from gateway.config.settings import parse
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.prepare import prepare
from gateway.host.telemetry import TelemetryProcess
from gateway.request.plan import RoutePlanner
from gateway.table_layout import ApiStatsCell, LoadCell
from gateway.worker.__main__ import server as http_server
from gateway.worker.bootstrap import MetricsExposition, build
from gateway.worker.ledger_follow import LedgerReaders
from ledger.database import make_engine, open_readonly
from ledger.fleet.paidrates import read_rates
from ledger.identity.keys import CreatedKey, KeyRing, KeySpec, create_key, load_pepper
from ledger.overrides import overrides
from ledger.policies import policies_in_force
from ledger.prices.stored import load_price_book, newer_prices
from ledger.writer import LedgerWriter

ROOT, ENGINE = Path(__file__).parents[2], "h200-llama-3.1-8b-fp8"
QUICK = Latency(ttft_s=0.02, ttft_sigma=0.0, tpot_s=0.002, tpot_sigma=0.0)
SLOW_START, SLOW_PACE = replace(QUICK, ttft_s=30.0), replace(QUICK, tpot_s=0.05)
PROVIDERS = {"alpha": QUICK, "beta": QUICK, "late": SLOW_START, "steady": SLOW_PACE}
PRICED_AS = {"beta": "openai/gpt-4o"}
PATIENCE_S, START_S = 20.0, 180.0  # of a host's start, on a machine with much else to do
LONGEST_PAUSE_S = 0.2  # between two looks
dump_yaml = functools.partial(yaml.dump, Dumper=yaml.CSafeDumper, sort_keys=False)
CLAIM = "SELECT claimed_pusd FROM claims c WHERE c.attempt_id = attempts.attempt_id"


def eventually(check: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    """The first true value of `check`; fails with its last value when patience ends.

    A check that costs much is made seldom: a fifth of a processor at most goes to waiting. So is
    one that was made for long: whoever answers it, in other processes, works on what is waited for.
    """
    since_s = time.monotonic()
    while True:
        began_s = time.thread_time()
        value = check()
        cost_s = time.thread_time() - began_s
        if value:
            return value
        waited_s = time.monotonic() - since_s
        assert waited_s < patience_s, f"never came true; last: {value!r}"
        time.sleep(max(0.02, 4 * cost_s, min(waited_s / 10, LONGEST_PAUSE_S)))


def plain_client() -> httpx.Client:
    """A connection for every request, no proxies, and no certificates read for plain HTTP."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(trust_env=False, verify=False, timeout=60, limits=limits)


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
        "telemetry": {"scrape_s": 0.2, "stale_s": 60},  # to scrape is most of what it does idle
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
                "on_disconnect": "stops",  # as the simulator does
            }
            for name in PROVIDERS
        },
        "policies": [{"name": "plain"}],
    }
    if "adjust" in changes:  # what depends on ports
        changes["adjust"](found, ports)
    return {**found, **{name: value for name, value in changes.items() if name != "adjust"}}


class Quiet(EventServer):
    """A server in a thread has no signals to listen for, and no test waits for its clients."""


class Stack:
    """Start with `with`; `call` runs a coroutine in the background loop."""

    def __init__(self, state: Path, changes: dict[str, Any]) -> None:
        self._through = changes.pop("through", {})  # stand between the gateway and an upstream
        self._environ = changes.pop("environ", {})
        self.state, self.changes = state, changes
        self.journals = {name: RequestJournal() for name in ("engine", *PROVIDERS)}
        self.registry = CollectorRegistry()
        self.client = plain_client()
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
        self.client.close()

    @property
    def planner(self) -> RoutePlanner:
        return self.app.hot._dispatcher.plans.value

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def headers(self, token: str | None = None) -> dict[str, str]:
        return {"authorization": f"Bearer {token or self.token}"}

    def get(self, path: str, token: str | None = None) -> httpx.Response:
        return self.client.get(self.url + path, headers=self.headers(token))

    def post(self, path: str, body: Any, token: str | None = None, **sent: Any) -> httpx.Response:
        return self.client.post(self.url + path, json=body, headers=self.headers(token) | sent)

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
            with self.database.begin() as connection:
                self._tokens[name] = create_key(
                    connection,
                    KeySpec(**{"name": name, "team": "search", **spec}),
                    pepper=load_pepper(self.state),
                    now_us=Clock().wall_us(),
                )
        return self._tokens[name]

    def rows(self, where: str = "1=1", **values: Any) -> list[dict[str, Any]]:
        asked = f"SELECT *, ({CLAIM}) AS claimed_pusd FROM attempts WHERE {where} ORDER BY seq"
        with self.reader.connect() as connection:
            return [dict(row) for row in connection.execute(text(asked), values).mappings()]

    def settled(self, answer: httpx.Response | str, count: int = 1) -> list[dict[str, Any]]:
        """The rows of a request once all `count` of them are settled."""
        name = answer if isinstance(answer, str) else answer.headers["x-request-id"]
        until_s = time.monotonic() + 1.0  # others may keep adding to what the writer has to read

        def look() -> list[dict[str, Any]]:
            waits = self.books.lag().backlog_bytes and time.monotonic() < until_s
            rows = [] if waits else self.rows("request_id = :name", name=name)  # 100 times as dear
            done = len(rows) >= count and all(row["settled_us"] for row in rows)
            return rows if done else []

        rows = eventually(look)
        assert len(rows) == count
        return rows

    def booked(self) -> int:
        """Rows of the ledger once it holds all that was asked before: what to count from."""
        eventually(lambda: self.app.hot.in_flight == 0)
        self.call(self.app.hot._dispatcher.metering._journal.flush())
        eventually(lambda: self.books.lag().backlog_bytes == 0)
        return len(self.rows())

    def entries(self, upstream: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.journals[upstream].lines().splitlines()]

    def connections(self) -> int:
        """Clients that the gateway's server is connected with."""
        return len(self._servers[-1][0].server_state.connections)

    def promises(self) -> list[float]:
        """What is in flight on the first engine, by the board."""
        first = (LoadCell.SEQUENCES, LoadCell.CONTEXT_TOKENS, LoadCell.QUEUED_PREFILL_TOKENS)
        return [self.board.loads(0)[cell] for cell in (*first, LoadCell.PROMISED_TOKENS)]

    def fault(self, provider: str, **fault: Any) -> None:
        url = f"http://127.0.0.1:{self.ports[provider]}/_faults"
        assert self.client.post(url, json=fault).status_code == 200

    def forgive(self, provider: str) -> None:
        """No more trouble, and no memory of it."""
        self.client.delete(f"http://127.0.0.1:{self.ports[provider]}/_faults")
        for row in range(len(self.runtime.apis)):
            base = self.board.api_stats_row(0, row)
            for cell in range(base, base + len(ApiStatsCell)):
                self.board.cells[cell] = 0.0

    async def _start(self) -> None:
        sockets = {name: bind("127.0.0.1", 0) for name in ("engine", *PROVIDERS)}
        self.ports = {name: socket.getsockname()[1] for name, socket in sockets.items()}
        engine = SimulatedEngineApp(
            PROFILES[ENGINE].shape, "llama", profile=ENGINE, journal=self.journals["engine"]
        )
        self.servers, self.providers = {"engine": engine}, {}
        self._serve(Quiet(config(engine)), sockets["engine"])
        for name, latency in PROVIDERS.items():
            provider = SimulatedProvider(
                name, rng=random.Random(1), journal=self.journals[name],
                quota=Quota(1_000_000, 1_000_000_000), latency=latency,
            )  # fmt: skip
            self.providers[name] = provider
            self._serve(Quiet(config(provider)), sockets[name])
        ledger = self.changes.get("ledger", {}).get("url") or self.state / "ledger.db"
        once.put_started_ledger(ledger)
        self.state.mkdir(parents=True, exist_ok=True)
        path, ports = self.state / "breakeven.yaml", dict(self.ports)
        for name, between in self._through.items():
            between.target, ports[name] = self.ports[name], between.port
        path.write_text(dump_yaml(document(self.state, ports, self.changes)))
        self.settings = parse(path.read_text(), name="test")
        self.runtime = prepare(self.settings, path).runtime
        self.database = make_engine(self.runtime.ledger_url, keep_open=True)
        self.reader = open_readonly(self.runtime.ledger_url)
        self.board = SharedLoadTable(self.runtime.run_dir / "board", self.runtime.layout)
        self.start_writer()
        await self.start_gateway()
        self.follow()

    def follow(self) -> None:
        world = (self.settings, self.runtime, self.board, self.database)
        self._telemetry = asyncio.create_task(TelemetryProcess(*world, Clock()).run())

    async def start_gateway(self) -> None:
        keys = KeyRing(self.database, self.runtime.run_dir, self.state)
        self.app = build(
            self.settings, self.runtime, 0,
            LedgerReaders(
                load_price_book(self.database), keys, self.reader,
                newer_prices=functools.partial(newer_prices, self.database),
                policies=functools.partial(policies_in_force, self.database),
                overrides=functools.partial(overrides, self.database),
                rates=functools.partial(read_rates, self.database),
            ),
            MetricsExposition(self.registry, lambda: generate_latest(self.registry)),
            self._environ,
        )  # fmt: skip
        listener = bind("127.0.0.1", 0)
        self.port = listener.getsockname()[1]
        limits = self.settings.server
        server = http_server(self.app, limits.timeouts, most=limits.max_connections)
        self._serve(server, listener)

    def start_writer(self) -> None:
        self._stop_writer = asyncio.Event()
        self.books = LedgerWriter(
            self.database, journals=self.runtime.journal_dir, run_dir=self.runtime.run_dir,
            host="test",
        )  # fmt: skip
        self._writer = asyncio.create_task(self.books.run(self._stop_writer))

    async def stop_writer(self) -> None:
        self._stop_writer.set()
        await self._writer

    def _serve(self, server: uvicorn.Server, listener: socket.socket) -> None:
        task = asyncio.get_running_loop().create_task(server.serve(sockets=[listener]))
        self._servers.append((server, task))

    async def _stop(self) -> None:
        for servers in (self._servers[len(self.journals) :], self._servers[: len(self.journals)]):
            for server, _ in servers:
                server.should_exit = True
            await asyncio.gather(*(task for _, task in servers))
        logs = (x for x in asyncio.all_tasks() if "LoggingWorker" in x.get_coro().__qualname__)
        for task in (left := [self._telemetry, *logs]):  # LiteLLM forgets its own
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.stop_writer()
        await self._loop.shutdown_default_executor()  # who reads gives connections back
        self.board.close()
        self.database.dispose()


def config(application: Any) -> uvicorn.Config:
    how = {"access_log": False, "log_level": "critical", "timeout_graceful_shutdown": 1}
    return uvicorn.Config(application, lifespan="on", **how)


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


class Stranger:
    """Somebody else's engine: vLLM's routes and metrics, and a list of all that was asked."""

    def __init__(self, port: int, model: str) -> None:
        self.asked: list[str] = []
        shape, journal = PROFILES[ENGINE].shape, RequestJournal()
        self._engine = SimulatedEngineApp(shape, model, profile=ENGINE, journal=journal)
        self._server = Quiet(config(self))
        work = functools.partial(self._server.run, sockets=[bind("127.0.0.1", port)])
        self._thread = threading.Thread(target=work, name="stranger", daemon=True)
        self._thread.start()
        eventually(lambda: self._server.started)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.asked.append(scope["path"])
        await self._engine(scope, receive, send)

    def end(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def stranger_on() -> Iterator[Callable[[int, str], Stranger]]:
    """`stranger_on(port, model)`; what is left of it ends with the test."""
    made: list[Stranger] = []

    def make(port: int, model: str) -> Stranger:
        made.append(Stranger(port, model))
        return made[-1]

    yield make
    for stranger in made:
        stranger.end()


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


class Host:
    """`breakeven serve` as a process of its own, with simulated engines that it starts itself.

    A start costs seconds of CPU for each worker: who needs no second one says `workers=1`.
    """

    def __init__(self, state: Path, *, workers: int = 2, engines: int = 2, **changes: Any) -> None:
        self.state = state
        self.config = state / "breakeven.yaml"
        self.url, self.root, self.serve = "", ROOT, warmstart.BREAKEVEN  # whose code it runs, how
        self.within: list[str] = []  # what its command is run by
        self.warm = True  # forked with its imports made: of no use to who looks at these
        self.environ = dict(os.environ)
        self.process: warmstart.Program | None = None
        self.answered = 0  # asked by `ask`, answered with 200
        self.client = plain_client()
        state.mkdir(parents=True, exist_ok=True)
        engine = {
            "kind": "simulated", "model": ENGINE, "served_name": "llama", "replicas": engines,
            "port": 0, "flags": ["--journal", str(state / "upstream.jsonl")],
        }  # fmt: skip
        settings = {
            "state_dir": str(state),
            "telemetry": {"scrape_s": 0.1, "stale_s": 60},
            "server": {"port": 0, "workers": workers, "timeouts": {"drain_s": 8}},
            "models": {
                "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
                "standin/*": "passthrough",
            },
            "pools": {"main": {"engine": engine, "gpu": {"type": "H200", "usd_per_hour": "3.50"}}},
            "providers": {
                "standin": {"start": True, "simulated": True, "prices_as": "openai/gpt-4o-mini"}
            },
            **changes,
        }
        self.ledger = settings.get("ledger", {}).get("url") or f"sqlite:///{state / 'ledger.db'}"
        self.workers = settings["server"].get("workers", 2)
        self.config.write_text(dump_yaml(settings))
        once.put_started_ledger(self.ledger)

    def start(self) -> None:
        """Returns when all workers have said that they are ready and an engine is healthy."""
        words, how = ["serve", "--config", self.config], {"root": self.root, "warm": self.warm}
        self.process = warmstart.open_program(
            words, within=self.within, program=self.serve, environ=self.environ, **how
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "http://" in line:
                self.url = line[line.index("http://") :].partition("/v1")[0]
                break
        self._drain = threading.Thread(target=self.process.stdout.read, daemon=True)
        self._drain.start()
        eventually(self._ready, START_S)
        eventually(lambda: len(self.pids("gateway.worker")) == self.workers, START_S)
        if not hasattr(self, "token"):
            self.token = self.key("test")
        eventually(lambda: self.ask().status_code == 200, START_S)

    def ask(self, model: str = "own", **members: Any) -> httpx.Response:
        body = {"model": model, "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        headers = {"authorization": f"Bearer {self.token}"}
        path = "/v1/chat/completions"
        answer = self.client.post(self.url + path, json=body | members, headers=headers)
        self.answered += answer.status_code == 200
        return answer

    def get(self, path: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return self.client.get(self.url + path, headers=headers)

    def pids(self, module: str = "") -> list[int]:
        """Every process of this host, by the files that it was told to use."""
        pids, wanted, named = [], os.fsencode(self.state), module.encode()
        for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208  (asked for often)
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ")
                is_named = named in line.split(b" ") and b" fork server " not in line
                if wanted in line and (is_named or not named):
                    pids.append(int(name))
        return pids

    def rows(self, where: str = "1=1") -> list[dict[str, Any]]:
        query = text(f"SELECT * FROM attempts WHERE {where} ORDER BY seq")
        engine = open_readonly(self.ledger)
        with engine.connect() as connection:
            rows = [dict(row) for row in connection.execute(query).mappings()]
        engine.dispose()
        return rows

    def upstream(self) -> list[dict[str, Any]]:
        lines = (self.state / "upstream.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        samples = re.findall(rf"^{name}(?:{{.*}})? (\S+)$", self.get("/metrics").text, re.MULTILINE)
        return sum(map(float, samples))

    def terminate(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self._end()

    def _end(self) -> int:
        assert self.process is not None
        assert self.process.stdout is not None
        code = self.process.wait(60)
        self._drain.join()
        self.process.stdout.close()
        return code

    def kill_all(self) -> None:
        """As if the machine lost its power, but for the disk's cache."""
        lives = self.process is not None and self.process.poll() is None
        for pid in (*([self.process.pid] if lives else []), *self.pids()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process is not None:
            self._end()
        eventually(lambda: not self.pids())

    def close(self) -> None:
        self.client.close()
        self.kill_all()

    def _ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "serve ended"
        with contextlib.suppress(httpx.HTTPError):
            return self.client.get(f"{self.url}/readyz").status_code == 200
        return False

    def key(self, name: str, **spec: Any) -> str:
        """A new key's token."""
        engine, now_us = make_engine(self.ledger), Clock().wall_us()
        with engine.begin() as connection:
            pepper = load_pepper(self.state)
            made = create_key(connection, KeySpec(name, **spec), pepper=pepper, now_us=now_us)
        engine.dispose()
        return made.token


@pytest.fixture
def make_host(tmp_path: Path) -> Iterator[Callable[..., Host]]:
    """A host that is not yet started; whatever is left of it is killed after the test."""
    made: list[Host] = []

    def make(**changes: Any) -> Host:
        made.append(Host(tmp_path / f"host-{len(made)}", **changes))
        return made[-1]

    yield make
    for host_ in made:
        host_.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One `serve` for a file's tests."""
    with contextlib.closing(Host(tmp_path_factory.mktemp("served"))) as found:
        found.start()
        yield found
