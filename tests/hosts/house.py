"""Hosts in namespaces of their own, one PostgreSQL that flushes, four simulated engines, an API.

Built of what the tests stand on: `breakeven serve` with its processes, a name, a disk and an
address a host. Hosts take the same keys, for they share the pepper as an installation does, and
tell each other what they have in flight. Four more engines, `SLOW`, are there for scenes in which
it matters which one is chosen, and this machine must not be what is waited for.
"""

import json
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from broken import DIES_OFTEN, TEXTS
from network import DATABASE, NETWORK, TARGETS, address_of
from stage import MODEL, PRICED_AS, ROOT, Host, MissingPart, PostgresServer, Upstream, eventually

from backends.simulator.shape import EngineShape
from backends.simulator.shapefile import save
from backends.stepmodel import FittedStepModel
from deploy import parts
from ledger.identity.tokens import PEPPER_FILE

PORT = 8080
ENGINE = "h200-llama-3.1-8b-fp8"
SERVED = "llama"
PEERS_PORT = 9444
# Reads 4,000 tokens a second: a prompt of a thousand keeps it for a quarter of one.
SLOW = EngineShape(
    step=FittedStepModel(a_s=0.01, b_s=1e-4, c_s=1e-7, d_s=0.00025, t0_s=0.01), blocks=8192,
    block_tokens=16, max_num_seqs=32, prefill_budget_tokens=1024, context_tokens=8192,
    prefix_caching=False,
)  # fmt: skip


class Engine:
    """A simulated engine as a process of its own; `entries` is its own account."""

    def __init__(self, folder: Path, name: str, profile: str) -> None:
        self._journal = folder / f"engine-{name}.jsonl"
        with socket.socket() as probe:
            probe.bind((TARGETS, 0))
            self.port = probe.getsockname()[1]
        command = [sys.executable, "-m", "backends.simulator.server", "--profile", profile]
        places = ["--host", TARGETS, "--port", str(self.port), "--journal", str(self._journal)]
        self._process = subprocess.Popen(
            [*command, "--model", SERVED, *places], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        eventually(self._listens)

    @property
    def url(self) -> str:
        return f"http://{TARGETS}:{self.port}/v1"

    def entries(self) -> list[dict[str, Any]]:
        lines = self._journal.read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex((TARGETS, self.port)) == 0


class House:
    """`with House(namespaces, workers, ...) as house`: everything runs, all hosts serve."""

    def __init__(
        self, namespaces: list[str], *, workers: int, engines: int = 4, sabotage: str = "",
        **settings: Any,
    ) -> None:  # fmt: skip
        self.namespaces, self._workers, self._count = namespaces, workers, engines
        self._sabotage, self._settings = TEXTS[sabotage], settings
        self.folder = Path(tempfile.mkdtemp(prefix="breakeven-hosts-"))
        self._ended = ExitStack()

    def __enter__(self) -> Self:
        self._ended.callback(shutil.rmtree, self.folder, ignore_errors=True)
        try:
            self._build()
        except BaseException:
            self._ended.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.close()

    def entries(self) -> list[dict[str, Any]]:
        """What all targets did."""
        return [entry for target in (self.api, *self.engines) for entry in target.entries()]

    def key(self, name: str, **spec: Any) -> str:
        """A token for every host."""
        return str(self.hosts[0].key(name, **spec))

    def _build(self) -> None:
        binaries = parts.find_postgres()
        if binaries is None:
            raise MissingPart("a PostgreSQL server is missing: make parts")
        server = PostgresServer(binaries, durable=True, also=(DATABASE, NETWORK))
        self._ended.callback(server.stop)
        self.ledger = server.url(server.create()).replace("127.0.0.1", DATABASE)
        self.api = Upstream(self.folder, host=TARGETS)
        self._ended.callback(self.api.close)
        slow = self.folder / "slow.json"
        save(slow, SLOW)
        self.pools = {"main": ENGINE, "slow": str(slow)}
        numbers = range(self._count)
        self._of = {
            pool: [self._engine(f"{pool}-{number}", profile) for number in numbers]
            for pool, profile in self.pools.items()
        }
        self.engines = [engine for engines in self._of.values() for engine in engines]
        self._peers_secret = secrets.token_hex(32)
        self.hosts = [self._host(number) for number in range(len(self.namespaces))]
        first, *others = self.hosts
        first.start()
        for host in others:
            shutil.copy(first.state / PEPPER_FILE, host.state / PEPPER_FILE)
            host.token = first.token
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: host.start(), others))

    def _engine(self, name: str, profile: str) -> Engine:
        engine = Engine(self.folder, name, profile)
        self._ended.callback(engine.close)
        return engine

    def _host(self, number: int) -> Any:
        gpu = {"type": "H200", "usd_per_hour": "3.50"}
        pools = {
            pool: {
                "engine": {
                    "kind": "simulated", "model": profile, "served_name": SERVED,
                    "endpoints": [engine.url for engine in self._of[pool]],
                },
                "gpu": gpu,
            }
            for pool, profile in self.pools.items()
        }  # fmt: skip
        base = f"http://{TARGETS}:{self.api.port}/v1"
        server = {"host": address_of(number), "port": PORT, "workers": self._workers,
                  "timeouts": {"drain_s": 8}}  # fmt: skip
        host = Host(
            self.folder / f"host-{number}",
            server=server,
            ledger={"url": self.ledger},
            models={
                "own": {"targets": [MODEL]},
                "engines": {"targets": ["pool:main"], "compare_with": [PRICED_AS]},
                "slow": {"targets": ["pool:slow"], "compare_with": [PRICED_AS]},
            },
            pools=pools,
            peers={
                "listen": f"0.0.0.0:{PEERS_PORT}",
                "secret_env": "PEERS",
                "hosts": [
                    f"{address_of(each)}:{PEERS_PORT}" for each in range(len(self.namespaces))
                ],
            },
            providers={"up": {"base_url": base, "simulated": True, "prices_as": PRICED_AS}},
            **self._settings,
        )
        site = host.state / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(DIES_OFTEN + self._sabotage)
        host.environ["PYTHONPATH"] = str(site)
        host.environ["PEERS"] = self._peers_secret
        # A name of its own, as machines have.
        named = f'hostname host-{number} && exec "$@"'
        inside = ["ip", "netns", "exec", self.namespaces[number]]
        host.within = [*inside, "unshare", "--uts", "sh", "-c", named, "host"]
        self._ended.callback(host.close)
        return host
