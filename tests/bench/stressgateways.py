"""The gateways of `bench_stress`: ours as it is by default with two workers, and LiteLLM's proxy.

Ours gets what no default can know (the provider, its price, the customers' budgets) and nothing
else. LiteLLM keeps keys and spend in PostgreSQL through prisma's engine, which is fetched from
prisma's own servers alone; where these cannot be reached, the budgets stand on its keys by a
`custom_auth` of its own kind, are checked and reserved by its own code, and are counted in memory.
"""

import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from measure import tree, until
from sqlalchemy import text
from stressfigures import INPUT_PUSD, OUTPUT_PUSD
from stressupstream import MODEL_TOKENS
from wire import free_ports

from gateway.cli.config import ledger_engine
from gateway.clock import Clock
from gateway.config.settings import load
from ledger.database import make_engine
from ledger.identity.keys import KeySpec, create_key, load_pepper

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from gateway.cli.main import main; main()")
BUDGET_USD = "0.05"
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth


async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, max_budget=0.05, spend=0.0)
"""


@dataclass
class Gateway:
    """Something that serves on `port`, with a token for each customer."""

    name: str
    folder: Path
    port: int
    command: Sequence[str]
    tokens: Mapping[str, str]
    ready_path: str = "/readyz"
    environ: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder / "out.log").open("ab") as out:
            self.process = subprocess.Popen(
                self.command, cwd=ROOT, stdout=out, stderr=out, env={**os.environ, **self.environ}
            )
        until(f"{self.name} answers", self._ready, limit_s=240, pause_s=0.3)

    def kill(self) -> None:
        """All its processes at once, as if the machine lost its power."""
        assert self.process is not None
        for pid in reversed(tree(self.process.pid)):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(90)
            except subprocess.TimeoutExpired:
                self.kill()

    def booked(self) -> dict[str, int] | None:
        """Customer -> pico-dollars in its books; None where it keeps none."""
        return None

    def outage(self, seconds: float) -> None:
        """Take its database away for a while; a gateway without one has nothing to lose."""

    def _ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            tail = (self.folder / "out.log").read_text(errors="replace")[-2000:]
            raise SystemExit(f"bench-stress: {self.name} ended while it started:\n{tail}")
        url = f"http://127.0.0.1:{self.port}{self.ready_path}"
        try:
            with urllib.request.urlopen(url, timeout=3) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@dataclass
class Ours(Gateway):
    url: str = ""
    away: Callable[[float], None] | None = None

    def booked(self) -> dict[str, int]:
        """Once nothing is open and nothing changes any more."""
        last: list[object] = []

        def quiet() -> bool:
            before, now = list(last), self._rows()
            last[:] = now
            return now == before and now[0][1] == 0

        until("settling every row", quiet, limit_s=120, pause_s=0.7)
        engine = make_engine(self.url)
        with engine.connect() as connection:
            query = text("SELECT team_id, sum(cost_pusd) FROM attempts GROUP BY team_id")
            found = {team: int(cost or 0) for team, cost in connection.execute(query)}
        engine.dispose()
        return found

    def outage(self, seconds: float) -> None:
        assert self.away is not None
        self.away(seconds)

    def _rows(self) -> list[tuple[int, int]]:
        engine = make_engine(self.url)
        with engine.connect() as connection:
            query = text("SELECT count(*), count(*) - count(settled_us) FROM attempts")
            found = connection.execute(query).one()
        engine.dispose()
        return [(int(found[0]), int(found[1]))]


def ours(
    name: str, folder: Path, upstream: int, customers: Iterable[str], *, url: str | None = None,
    away: Callable[[float], None] | None = None, hard: bool = True,
) -> Ours:  # fmt: skip
    """Not yet started. `url`: its ledger, where that is not SQLite in its own folder."""
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    names = list(customers)
    prices = folder / "prices.yaml"
    rates = {"input": INPUT_PUSD / 1e6, "output": OUTPUT_PUSD / 1e6}
    priced = {"mock/m": {"usd_per_million": rates}}
    prices.write_text(yaml.safe_dump({"source": "bench", "prices": priced}))
    budgets = [{"scope": f"team:{name}", "usd": BUDGET_USD} for name in names]
    document = {
        "state_dir": str(folder / "state"),
        "server": {"port": port, "workers": 2},
        "models": {"mock": {"targets": ["mock/m"]}},
        "providers": {"mock": {"base_url": f"http://127.0.0.1:{upstream}/v1"}},
        "budgets": budgets if hard else [{**budget, "hard": False} for budget in budgets],
        "prices": [str(prices)],
        **({} if url is None else {"ledger": {"url": url}}),
    }
    config = folder / "stress.yaml"
    config.write_text(yaml.safe_dump(document))
    tokens = _keys(config, names)
    place = url or f"sqlite:///{folder / 'state' / 'ledger.db'}"
    command = (*COMMAND, "serve", "--config", str(config))
    locked = away or (lambda seconds: _locked(folder / "state" / "ledger.db", seconds))
    return Ours(name, folder, port, command, tokens, url=place, away=locked)


def _keys(config: Path, names: Iterable[str]) -> dict[str, str]:
    settings = load(config)
    with ledger_engine(settings) as engine, engine.begin() as connection:
        pepper, now_us = load_pepper(settings.state), Clock().wall_us()
        return {
            name: create_key(
                connection, KeySpec(name, team=name, org="bench"), pepper=pepper, now_us=now_us
            ).token
            for name in names
        }


def _locked(path: Path, seconds: float) -> None:
    """Nobody else can write to the file, as while a disk or a file server hangs."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def litellm(
    name: str, folder: Path, python: Path, upstream: int, customers: Iterable[str], *, workers: int
) -> Gateway:
    folder.mkdir(parents=True)
    (port,) = free_ports(1)
    (folder / "stress_auth.py").write_text(AUTH)
    priced = {
        "input_cost_per_token": INPUT_PUSD / 1e12, "output_cost_per_token": OUTPUT_PUSD / 1e12,
    }  # fmt: skip
    parameters = {
        "model": "openai/mock", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "x",
        **priced,
    }  # fmt: skip
    limits = {"max_output_tokens": MODEL_TOKENS, "max_input_tokens": 100_000, **priced}
    document = {
        "model_list": [{"model_name": "mock", "litellm_params": parameters, "model_info": limits}],
        "general_settings": {
            "custom_auth": "stress_auth.user_api_key_auth",
            "custom_auth_run_common_checks": True,
            "master_key": f"sk-{secrets.token_hex(24)}",  # it starts with none that is guessed
        },
    }
    config = folder / "litellm.yaml"
    config.write_text(yaml.safe_dump(document))
    address = ("--host", "127.0.0.1", "--port", str(port), "--num_workers", str(workers))
    # On a busy machine its workers take longer to start than the server waits for by default.
    patience = ("--timeout_worker_healthcheck", "240")
    command = (str(python.parent / "litellm"), "--config", str(config), *address, *patience)
    environ = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "DO_NOT_TRACK": "1"}
    tokens = {customer: f"sk-{customer}" for customer in customers}
    return Gateway(name, folder, port, command, tokens, "/health/liveliness", environ)
