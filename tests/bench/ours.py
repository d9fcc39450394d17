"""Our gateway with everything switched on, started as a person starts it.

Three nested hard budgets, ten policies of which the last matches, one pool of four replicas and
four APIs as candidates, every decision stored, journal flushed, SQLite with synchronous=FULL,
metrics on. A run counts only if the ledger holds one settled row for every answer.
"""

import json
import signal
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import children
import msgspec
import yaml
from measure import by_label, until
from peers import Target
from prometheus_client.mmap_dict import MmapedDict
from wire import free_ports

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-c", "from gateway.cli.main import main; main()")
APIS, POLICIES, CANDIDATES = 4, 10, 8
SETTLE_LIMIT_S = 300.0


@dataclass
class Ours(Target):
    state: Path = field(default_factory=Path)
    end_limit_s: ClassVar[float] = 60.0  # it drains

    @property
    def ledger(self) -> sqlite3.Connection:
        return sqlite3.connect(f"file:{self.state / 'ledger.db'}?mode=ro", uri=True)

    def rows(self) -> tuple[int, int]:
        """(attempts, of them settled)."""
        books = self.ledger
        try:
            asked = "SELECT count(*), count(settled_us) FROM attempts"
            total, settled = books.execute(asked).fetchone()
        finally:
            books.close()
        return int(total), int(settled)

    def settle(self) -> None:
        """Until the writer has applied what the journal holds and nothing is open any more."""
        last = (-1, -1)

        def quiet() -> bool:
            nonlocal last
            before, last = last, self.rows()
            return last == before and last[0] == last[1]

        until("settling every row", quiet, limit_s=SETTLE_LIMIT_S, pause_s=0.3)

    def candidates_left(self) -> int:
        """How many candidates of the latest stored decision were not filtered out."""
        books = self.ledger
        try:
            asked = "SELECT decision FROM decisions ORDER BY opened_us DESC LIMIT 1"
            row = books.execute(asked).fetchone()
        finally:
            books.close()
        sys.path.insert(0, str(ROOT))
        from router.packed import unpack  # noqa: PLC0415  (the checkout's own, found at run time)

        decision = unpack(msgspec.msgpack.decode(row[0]))
        kept = [candidate for candidate in decision["candidates"] if candidate["feasible"]]
        return len(kept)

    def requests_by_worker(self) -> list[int]:
        """From the metrics files, which are one set per worker."""
        found: dict[str, float] = {}
        for path in sorted((self.state / "run" / "metrics").glob("counter_*.db")):
            for key, value, *_ in MmapedDict.read_all_values_from_file(str(path)):
                if '"breakeven_requests_total"' in key:
                    found[path.stem] = found.get(path.stem, 0.0) + value
        return [int(count) for count in found.values()]


def start(
    folder: Path, upstream: list[int], *, workers: int, name: str = "ours", cores: set[int]
) -> Ours:
    """Writes the configuration, makes a key, starts `breakeven serve`."""
    state = folder / name
    state.mkdir(parents=True, exist_ok=True)
    (port,) = free_ports(1)
    config = state / "bench.yaml"
    prices = state / "prices.yaml"
    prices.write_text(yaml.safe_dump(_prices()))
    document = configuration(state, prices, upstream, port=port, workers=workers)
    config.write_text(yaml.safe_dump(document))
    made = subprocess.run(
        [*COMMAND, "keys", "create", "--name", "bench", "--team", "bench", "--org", "bench",
         "--config", str(config), "--json"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    key = json.loads(made.stdout)
    document["budgets"] = [
        {"scope": scope, "usd": 1_000_000, "period": "month", "hard": True}
        for scope in ("org:bench", "team:bench", f"key:{key['key_id']}")
    ]
    config.write_text(yaml.safe_dump(document))
    log = state / "serve.log"
    with log.open("wb") as out:
        process = children.start(
            [*COMMAND, "serve", "--config", str(config)],
            cores=cores,
            orphaned=signal.SIGTERM,  # it ends its own processes
            cwd=ROOT,
            stdout=out,
            stderr=out,
        )
    headers = [f"authorization: Bearer {key['token']}"]
    return Ours(name, port, process, log, headers, state)


def configuration(
    state: Path, prices: Path, upstream: list[int], *, port: int, workers: int
) -> dict[str, Any]:
    """Deadlines are generous: a saturated core must not make the router refuse anything."""
    apis = [f"api-{number}" for number in range(APIS)]
    never = [
        {"name": f"policy-{number}", "match": {"models": ["other"], "teams": [f"team-{number}"]},
         "slo": {"ttft_ms": 100, "tpot_ms": 20}, "otherwise": "reject"}
        for number in range(POLICIES - 1)
    ]  # fmt: skip
    last = {
        "name": "default",
        "slo": {"ttft_ms": 600_000, "tpot_ms": 60_000},
        "max_usd_per_request": 100,
        "otherwise": "reject",
    }
    targets = ["pool:mock", *(f"{name}/mock" for name in apis)]
    return {
        "state_dir": str(state),
        "server": {"port": port, "workers": workers},
        "models": {
            "mock": {"targets": targets, "compare_with": ["api-0/mock"]},
            "other": {"targets": ["api-0/mock"]},
        },
        "pools": {
            "mock": {
                "engine": {
                    "kind": "vllm",
                    "served_name": "mock",
                    "endpoints": [f"http://127.0.0.1:{item}/v1" for item in upstream],
                    "max_num_seqs": 4096,
                    "prefill_budget_tokens": 65536,
                },
                "gpu": {"type": "H200", "count": 1, "usd_per_hour": 3.5, "source": "bench"},
            }
        },
        "providers": {
            name: {"base_url": f"http://127.0.0.1:{item}/v1", "on_disconnect": "stops"}
            for name, item in zip(apis, upstream, strict=True)
        },
        "policies": [*never, last],
        "prices": [str(prices)],
    }


def wait_fitted(target: Ours) -> None:
    """Until every engine's step time is measured, so that all candidates take part."""
    log = target.state / "logs" / "telemetry.log"

    def fitted() -> bool:
        return log.exists() and log.read_text().count("engine was measured ") >= CANDIDATES - APIS

    until("measuring every engine", fitted, limit_s=120, pause_s=0.5)
    labels = by_label(target.process.pid)
    print(
        f"{target.name}: {', '.join(f'{len(labels[label])} {label}' for label in sorted(labels))}"
    )


def _prices() -> dict[str, Any]:
    return {
        "source": "bench",
        "prices": {
            f"api-{number}/mock": {"usd_per_million": {"input": 1 + number, "output": 3 + number}}
            for number in range(APIS)
        },
    }
