"""A host with scripted providers, and the judges of what it booked."""

import asyncio
import json
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.batches.runner import BatchRunner
from gateway.table_layout import ApiStatsCell

sys.path.insert(0, str(Path(__file__).parent))

from billing_provider import BillingProvider, ProviderCall, Script
from hostile_judge import faults_of

FEATURES = ["tools", "json_schema", "images", "logprobs", "n", "hosted_tools"]
KINDS = ["chat", "transcription", "speech", "image_generation"]
PLAIN = {"usd_per_million": {"input": 1, "output": 10}}
CLAUDE = {
    "usd_per_million": {
        "input": 1, "output": 10, "cached": 0.1, "cache_write": 1.25, "cache_write_1h": 2,
    },
    "usd_per_search": 0.01, "max_searches": 5,
}  # fmt: skip
HEARS = {"usd_per_million": {"input": 1, "output": 10, "audio_input": 40}}
CHAT_NAMES, CLAUDE_NAMES = ("first", "second", "third", "stopping"), ("claude", "claudestops")
PRICES = {
    **{f"{name}/m": PLAIN for name in CHAT_NAMES},
    **{f"{name}/m": CLAUDE for name in CLAUDE_NAMES},
    **{f"{name}/speaks": {"usd_per_character": 0.000015} for name in ("first", "second")},
    **{f"{name}/draws": {"usd_per_picture": 0.04} for name in ("first", "second")},
    **{f"{name}/transcribes": {"usd_per_second": 0.0001} for name in ("first", "second")},
    "stopping/hears": HEARS,
}
LIMIT_USD, TIGHT_USD = 20.0, {"first": 0.005, "second": 0.0025}
TIGHT_USD |= {"stream": 0.004, "responses": 0.004, "speech": 0.0101}


def settings(folder: Path, port: int) -> dict[str, Any]:
    listed = {"source": "prices of the test", "source_date": date(2026, 11, 1), "prices": PRICES}
    (folder / "prices.yaml").write_text(yaml.safe_dump(listed))
    common = {"features": FEATURES, "simulated": True}

    def adjust(found: dict[str, Any], _ports: Any) -> None:
        providers, models = found["providers"], found["models"]
        for name in (*CHAT_NAMES, *CLAUDE_NAMES):
            chats = name in CHAT_NAMES
            providers[name] = {
                **common,
                "base_url": f"http://127.0.0.1:{port}/{name}/v1",
                **({"kinds": KINDS} if chats else {"kind": "anthropic", "kinds": ["chat"]}),
            }
            if "stop" in name:
                providers[name]["on_disconnect"] = "stops"
            models[name] = {"targets": [f"{name}/m"]}
        models["row"] = {"targets": ["first/m", "second/m", "third/m"]}
        models["third/*"] = "passthrough"
        models["hears"] = {"targets": ["stopping/hears"]}
        for kind in ("speaks", "draws", "transcribes"):
            models[kind] = {"targets": [f"first/{kind}", f"second/{kind}"]}

    hard = {"period": "day", "hard": True}
    return {
        "adjust": adjust,
        "prices": [str(folder / "prices.yaml")],
        "telemetry": {"scrape_s": 1, "stale_s": 60},  # no test here asks an engine
        "budgets": [
            {"scope": "team:*", "usd": LIMIT_USD, **hard},
            {"scope": "model:third/m", "usd": TIGHT_USD["stream"], **hard},
            *(
                {"scope": f"team:tight-{name}", "usd": usd, **hard}
                for name, usd in TIGHT_USD.items()
            ),
        ],
    }


@dataclass(slots=True)
class Hostile:
    """A host, its provider, and what a team asks of it."""

    stack: Any
    provider: BillingProvider
    patiently: Callable[..., Any]
    booked: set[str] = field(default_factory=set)  # attempts whose rows are known to be settled

    def token(self, team: str) -> str:
        return self.stack.key(team, team=team).token

    def play(self, name: str, *scripts: Script) -> None:
        """The next requests of a provider (`any`: of whichever) are answered so."""
        self.provider.plays[name] = list(scripts)

    def post(self, team: str, path: str, body: Any, **headers: str) -> Any:
        return self.stack.post(path, body, self.token(team), **headers)

    def begin(self, team: str, path: str, body: Any) -> tuple[socket.socket, ProviderCall]:
        """A request on a connection of its own, once its provider has played to `wrote`."""
        before, stack = len(self.provider.calls), self.stack
        connection = socket.create_connection(("127.0.0.1", stack.port), timeout=20)
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {self.token(team)}\r\ncontent-length: {len(data)}\r\n\r\n"
        )
        connection.sendall(head.encode() + data)
        return connection, self.next_call(before)

    def next_call(self, before: int) -> ProviderCall:
        """The request that came behind so many, once it is answered to `wrote`."""
        call = self.patiently(lambda: self.provider.calls[before:])[0]
        assert call.wrote.wait(10)
        return call

    def rows(self, team: str) -> list[dict[str, Any]]:
        """The team's rows, once nothing of the host is under way."""

        def look() -> list[list[dict[str, Any]]]:
            if self.stack.app.hot.in_flight or self.stack.books.lag().backlog_bytes:
                return []
            # A record is not at once in the backlog.
            waiting = [call for call in self.provider.calls if call.id not in self.booked]
            if not all(call.over.is_set() for call in waiting):
                return []
            if waiting:
                self.booked |= self._settled()
            if any(call.id not in self.booked for call in waiting):
                return []
            rows = self.stack.rows("team_id = :team", team=team)
            return [rows] if all(row["settled_us"] for row in rows) else []

        return self.patiently(look)[0]

    def _settled(self) -> set[str]:
        query = "SELECT attempt_id FROM attempts WHERE settled_us IS NOT NULL"
        with self.stack.reader.connect() as connection:
            return set(connection.exec_driver_sql(query).scalars())

    def calm(self) -> None:
        """No script and no memory of failures is left for what comes next."""
        self.provider.plays.clear()
        board = self.stack.board
        for row in range(len(self.stack.runtime.apis)):
            base = board.api_stats_row(0, row)
            for cell in range(base, base + len(ApiStatsCell)):
                board.cells[cell] = 0.0

    def judged(self, team: str, limit_usd: float = LIMIT_USD) -> list[dict[str, Any]]:
        """The team's rows, which neither judge objects to."""
        rows = self.rows(team)
        assert faults_of(rows, self.provider.calls, limit_usd) == []
        return rows

    def bills(self, team: str) -> list[int]:
        """Of each request that the provider got of the team, by its row."""
        bills = {call.id: call.bill.pusd for call in self.provider.calls}
        return [bills.get(row["attempt_id"], 0) for row in self.rows(team)]


@pytest.fixture(scope="session")
def hostile(tmp_path_factory, running, patiently) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    with (
        BillingProvider() as provider,
        running(folder / "host", **settings(folder, provider.port)) as stack,
    ):
        yield Hostile(stack, provider, patiently)


@pytest.fixture(autouse=True)
def peace(request) -> Iterator[None]:
    yield
    if "hostile" in request.fixturenames:
        request.getfixturevalue("hostile").calm()


@pytest.fixture
def runner(hostile: Hostile) -> Iterator[BatchRunner]:
    """A runner of the host's batches, in its loop."""
    stack = hostile.stack

    async def start() -> tuple[BatchRunner, asyncio.Event, asyncio.Task[None]]:
        address, stop = f"127.0.0.1:{stack.port}", asyncio.Event()
        made = BatchRunner(stack.settings, stack.runtime, stack.database, address)
        return made, stop, asyncio.create_task(made.run(stop))

    async def end(stop: asyncio.Event, task: asyncio.Task[None]) -> None:
        stop.set()
        await task

    made, stop, task = stack.call(start())
    yield made
    stack.call(end(stop, task))
