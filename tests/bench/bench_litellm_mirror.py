"""Has a LiteLLM proxy send copies of a share of its requests to the import of its own file.

    python tests/bench/bench_litellm_mirror.py

Clients go on asking the proxy. One of two deployments of their model names a `silent_model`, which
is the gateway with the imported file; its key has a hard budget, and here it ends half-way. Told
are the share of copies, what both charged for a request, that no copy is dispatched beyond the
budget, and that no client noticed. Writes `build/bench-litellm-mirror.json`.
"""

import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bench_litellm_beside as beside
import children
import yaml
from besidecases import BesideCase, BesideScene, deployed
from measure import until
from peers import install

REQUESTS, SHARE = 240, 0.25
COST_USD = 0.000025  # of one request
BUDGET = 40  # requests that the budget pays for; a hold needs room for the longest answer
SCENE = BesideScene("mirror", {"chat": (deployed("ok", "chat"),)}, ())


def main() -> int:
    python = install("litellm", beside.ROOT / "build" / "peers")
    with children.ended_by_signals(), tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with beside.provider(folder) as (address, journal):
            beside.import_file(SCENE, folder)
            _add_budget(folder / "breakeven.yaml")
            with (
                beside.ours(SCENE, folder, address, journal, python) as gateway,
                _mirroring(folder, address, journal, python, gateway) as proxy,
            ):
                case = BesideCase("chat", "chat", times=REQUESTS)
                seen = beside.ask(proxy, case)
                rows = _copies(folder / "state" / "ledger.db")
    charged = sum(pusd for _, pusd in rows)
    told = {
        "requests": REQUESTS, "statuses": seen["status"], "cost_usd_litellm": seen["cost"],
        "copies": len(rows),
        "cost_usd_ours": sorted({pusd / 1e12 for _, pusd in rows if pusd}),
        "charged_usd": charged / 1e12, "budget_usd": BUDGET * COST_USD,
    }  # fmt: skip
    print(json.dumps(told, indent=1))
    (beside.ROOT / "build" / "bench-litellm-mirror.json").write_text(json.dumps(told, indent=1))
    fits = told["statuses"] == [200] and 0 < charged <= BUDGET * COST_USD * 1e12
    return 0 if fits and [float(cost) for cost in seen["cost"]] == told["cost_usd_ours"] else 1


def _add_budget(config: Path) -> None:
    document = yaml.safe_load(config.read_text())
    usd = f"{BUDGET * COST_USD:f}"
    document["budgets"] = [{"scope": "team:beside", "usd": usd, "period": "month", "hard": True}]
    config.write_text(yaml.safe_dump(document))


@contextmanager
def _mirroring(
    folder: Path, address: str, journal: Path, python: Path, gateway: beside.Server
) -> Iterator[beside.Server]:
    """The proxy with what its operator adds: a copy of one deployment, and where copies go."""
    plain = deployed("ok", "chat", weight=round((1 - SHARE) * 100))
    copied = deployed("ok", "chat", weight=round(SHARE * 100), silent_model="beside")
    there = {
        "model": "openai/chat", "api_base": f"{gateway.url}/v1", "api_key": gateway.token,
    }  # fmt: skip
    models: dict[str, tuple[dict[str, Any], ...]] = {"chat": (plain, copied), "beside": (there,)}
    scene = BesideScene("mirror", models, (), {"router_settings": {"num_retries": 0}})
    with beside.litellm(scene, folder, address, journal, python) as proxy:
        yield proxy


def _copies(ledger: Path) -> list[tuple[str, int]]:
    """(status, pico-dollars) of each attempt, once nothing is open."""
    rows: list[tuple[str, int]] = []

    def is_settled() -> bool:
        books = sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)
        try:
            asked = "SELECT status, cost_pusd, settled_us FROM attempts"
            found = books.execute(asked).fetchall()
        finally:
            books.close()
        quiet = len(found) == len(rows) and all(settled for _, _, settled in found)
        rows[:] = [(status, int(pusd or 0)) for status, pusd, _ in found]
        return quiet and bool(rows)

    until("settling every copy", is_settled, limit_s=60, pause_s=1.0)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
