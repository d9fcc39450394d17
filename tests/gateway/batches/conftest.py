"""Batches through the whole gateway: a running host, its runner in the same loop, and a client."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from gateway.batches.runner import BatchRunner
from ledger.database import migrate, sqlite_url

ENDED = ("completed", "failed", "expired", "cancelled")
CHAT = "/v1/chat/completions"


def chat_line(custom_id: str, model: str = "own", **members: Any) -> dict[str, Any]:
    """One line of an input file."""
    body = {"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
    return {"custom_id": custom_id, "method": "POST", "url": CHAT, "body": {**body, **members}}


class Client:
    """What an app does; `base` is the gateway's address without /v1."""

    def __init__(self, base: str, token: str, patiently: Callable[..., Any]) -> None:
        self.base, self.token, self._patiently = base, token, patiently
        self._http = httpx.Client(trust_env=False, timeout=30)

    def ask(self, method: str, path: str, **given: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}", **given.pop("headers", {})}
        return self._http.request(method, f"{self.base}/v1{path}", headers=headers, **given)

    def upload(self, lines: list[Any] | bytes, **fields: str) -> dict[str, Any]:
        text = lines if isinstance(lines, bytes) else jsonl(lines)
        answer = self.ask(
            "POST", "/files", files={"file": ("in.jsonl", text)},
            data={"purpose": "batch", **fields},
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
        return answer.json()

    def make(self, lines: list[Any] | bytes, **members: Any) -> dict[str, Any]:
        asked = {
            "input_file_id": self.upload(lines)["id"], "endpoint": CHAT,
            "completion_window": "24h", **members,
        }  # fmt: skip
        answer = self.ask("POST", "/batches", json=asked)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def batch(self, batch: dict[str, Any]) -> dict[str, Any]:
        return self.ask("GET", f"/batches/{batch['id']}").json()

    def ended(self, batch: dict[str, Any], patience_s: float = 30.0) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.batch(batch)
            return found if found["status"] in ENDED else None

        return self._patiently(look, patience_s)

    def lines(self, batch: dict[str, Any], which: str = "output") -> list[dict[str, Any]]:
        file_id = batch[f"{which}_file_id"]
        if file_id is None:
            return []
        content = self.ask("GET", f"/files/{file_id}/content")
        assert content.status_code == 200
        return [json.loads(line) for line in content.text.splitlines()]

    def close(self) -> None:
        self._http.close()


def jsonl(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


@contextlib.contextmanager
def running_runner(stack: Any, host: str = "test", **given: Any) -> Iterator[BatchRunner]:
    """A runner of this stack's host, in its loop."""

    async def start() -> tuple[BatchRunner, asyncio.Event, asyncio.Task[None]]:
        address = f"127.0.0.1:{stack.port}"
        runtime = replace(stack.runtime, host=host)
        runner = BatchRunner(stack.settings, runtime, stack.database, address, **given)
        stop = asyncio.Event()
        return runner, stop, asyncio.create_task(runner.run(stop))

    async def end(stop: asyncio.Event, task: asyncio.Task[None]) -> None:
        stop.set()
        await task

    runner, stop, task = stack.call(start())
    yield runner
    stack.call(end(stop, task))


@pytest.fixture(scope="session")
def with_runner() -> Callable[..., contextlib.AbstractContextManager[BatchRunner]]:
    """`with with_runner(stack, "host-2") as runner`."""
    return running_runner


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "ledger.db"
    migrate(sqlite_url(path))
    return path


@pytest.fixture
def ledger_url(migrated: Path, tmp_path: Path) -> str:
    """A ledger of one's own, as a copy: migrating anew takes longer than most tests here."""
    shutil.copyfile(migrated, tmp_path / "ledger.db")
    return sqlite_url(tmp_path / "ledger.db")


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, running: Callable[..., Any]) -> Iterator[Any]:
    """One host for all tests here, with a team that may spend next to nothing.

    Another, `tight`, may spend what all its lines need, and hold little more than one's bound.
    """
    budgets = [
        {"scope": "team:poor", "usd": "0.000000000001", "hard": True},
        {"scope": "team:tight", "usd": "0.006", "hard": True},
        {"scope": "tag:run=*", "usd": "0.006", "hard": True},
    ]
    with running(tmp_path_factory.mktemp("host"), budgets=budgets) as this_running:
        yield this_running


@pytest.fixture(scope="module")
def runner(stack: Any) -> Iterator[BatchRunner]:
    with running_runner(stack) as this_running_runner:
        yield this_running_runner


@pytest.fixture(scope="session")
def make_client(patiently: Callable[..., Any]) -> Iterator[Callable[[str, str], Client]]:
    """`make_client(base, token)`."""
    made: list[Client] = []

    def make(base: str, token: str) -> Client:
        made.append(Client(base, token, patiently))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def client(stack: Any, make_client: Callable[[str, str], Client]) -> Client:
    return make_client(stack.url, stack.token)


@pytest.fixture(scope="session")
def line() -> Callable[..., dict[str, Any]]:
    """`line("a", "own", max_tokens=9)`."""
    return chat_line
