"""The parts that scenes are played with: the tests' own hosts and servers, and a target.

Nothing is stood in for but the target: `breakeven serve` with its processes, its ledger in SQLite
or in a PostgreSQL server that flushes, and a simulated provider that keeps its own account.
"""

import importlib.util
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from broken import DIES_OFTEN, TEXTS
from scene import Given

from deploy import parts, warmstart
from ledger.identity.tokens import PEPPER_FILE

ROOT = Path(__file__).resolve().parents[2]


def _tests(name: str, path: str) -> ModuleType:
    """Fixtures' classes are used as they are: what tests stand on is what these scenes stand on."""
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


_gateway = _tests("chaos_gateway_parts", "tests/gateway/conftest.py")
_parts = _tests("chaos_parts", "tests/conftest.py")
Host, Stack, eventually = _gateway.Host, _gateway.Stack, _gateway.eventually
SERVE = warmstart.BREAKEVEN
PostgresServer = _parts.PostgresServer
random_ledger = _tests("chaos_ledger_parts", "tests/ledger/conftest.py").RandomLedger
MODEL = "up/m"  # what callers ask for: passed through to the target
PRICED_AS = "openai/gpt-4o-mini"


class MissingPart(Exception):
    """A real part that this machine does not have."""


class Upstream:
    """A provider as a process of its own; `entries` is what it did, by its own account."""

    def __init__(
        self, folder: Path, *, ttft_ms: float = 4, tpot_ms: float = 0.3, host: str = "127.0.0.1"
    ) -> None:
        self._journal, self.host = folder / "upstream.jsonl", host
        with socket.socket() as probe:
            probe.bind((host, 0))
            self.port = probe.getsockname()[1]
        limits = ["--requests-per-minute", str(10**8), "--tokens-per-minute", str(10**12)]
        pace = ["--ttft-ms", str(ttft_ms), "--tpot-ms", str(tpot_ms)]
        places = ["--host", host, "--port", str(self.port), "--journal", self._journal]
        program = warmstart.MODULE.format("backends.simulator.provider")
        self.process = warmstart.programs().start(
            ["--name", "up", *places, *pace, *limits], program=program
        )
        eventually(self._listens)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    def entries(self) -> list[dict[str, Any]]:
        text = self._journal.with_suffix(".up").read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)


class Stage:
    """One scene's ground: `with Stage(given) as stage`, then `stage.host()`.

    `target`: whether there is one; without it there are no hosts.
    """

    def __init__(
        self, given: Given, sabotage: str = "", *, folder: Path | None = None, target: bool = True
    ) -> None:
        self.given, self._target = given, target
        self.folder = folder or Path(tempfile.mkdtemp(prefix="breakeven-chaos-"))
        self._sabotage = TEXTS[sabotage] if given.broken else ""
        self._ended = ExitStack()
        self._hosts, self._pepper = 0, secrets.token_bytes(32)

    def __enter__(self) -> Self:
        self._ended.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            if self._target:
                self.upstream = Upstream(self.folder)
                self._ended.callback(self.upstream.close)
            self.postgres = self._postgres() if self.given.database == "postgres" else None
            self._url = self.new_url()
        except BaseException:
            self._ended.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.close()

    def _postgres(self) -> Any:
        binaries = parts.find_postgres()
        if binaries is None:
            raise MissingPart("a PostgreSQL server is missing: make parts")
        server = PostgresServer(binaries, durable=True)
        self._ended.callback(server.stop)
        return server

    def new_url(self, name: str = "ledger.db") -> str:
        """Of an empty database."""
        if self.postgres is None:
            return f"sqlite:///{self.folder / name}"
        return str(self.postgres.url(self.postgres.create()))

    def host(self, *, workers: int = 2, state: Path | None = None, **changes: Any) -> Any:
        """Not yet started; all hosts of a stage have one ledger and one target."""
        base = f"http://127.0.0.1:{self.upstream.port}/v1"
        if self.given.way:
            books = changes.get("ledger", {"url": self._url})
            changes["ledger"] = books | {"journal_writes": self.given.way}
        self._hosts += 1
        host = Host(
            state or self.folder / f"host-{self._hosts}",
            **{
                "server": {"port": 0, "workers": workers, "timeouts": {"drain_s": 8}},
                "ledger": {"url": self._url},
                "models": {"own": {"targets": [MODEL]}},
                "pools": {},
                "providers": {"up": {"base_url": base, "simulated": True, "prices_as": PRICED_AS}},
                "budgets": [{"scope": "global", "usd": 100_000, "period": "day", "hard": True}],
                **changes,
            },
        )
        (host.state / PEPPER_FILE).write_bytes(self._pepper)  # hosts of a ledger share it
        place = host.state / "site"
        place.mkdir(exist_ok=True)
        (place / "sitecustomize.py").write_text(DIES_OFTEN + self._sabotage)
        host.environ["PYTHONPATH"] = f"{place}{os.pathsep}{host.root}"
        self._ended.callback(host.close)
        return host


def restart(host: Any) -> float:
    """The parent is killed and started again; seconds until it serves."""
    began = time.monotonic()
    host.process.kill()
    host.process.wait()
    host._end()
    host.start()
    return time.monotonic() - began


def strike(pid: int, number: int = signal.SIGKILL) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
