"""A host with scripted providers, and the two judges of what it booked."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from gateway.batches.runner import BatchRunner

from billing_provider import BillingProvider, ProviderCall

FEATURES = ["tools", "json_schema", "images", "logprobs", "n", "hosted_tools"]
KINDS = ["chat", "completion", "embedding", "transcription", "speech", "image_generation"]
PLAIN = {"usd_per_million": {"input": 1, "output": 10}}
PRICES = {
    **{f"{name}/m": PLAIN for name in ("first", "second", "third", "stopping")},
    **{
        f"{name}/m": {
            "usd_per_million": {
                "input": 1,
                "output": 10,
                "cached": 0.1,
                "cache_write": 1.25,
                "cache_write_1h": 2,
            },
            "usd_per_search": 0.01,
            "max_searches": 5,
        }  # fmt: skip
        for name in ("claude", "claudestops")
    },
}
for name in ("first", "second"):
    PRICES[f"{name}/tts"] = {"usd_per_character": 0.000015}
    PRICES[f"{name}/pic"] = {"usd_per_picture": 0.04}
    PRICES[f"{name}/hear"] = {"usd_per_second": 0.0001}
PRICES["stopping/hears"] = PRICES["first/hears"] = {
    "usd_per_million": {"input": 1, "output": 10, "audio_input": 40}
}
LIMIT_USD = 20.0
TIGHT = ("tight0", "tight1", "tight2", "tight3")
TIGHT_USD = 0.005


def settings(folder: Path, port: int) -> dict[str, Any]:
    listed = {"source": "prices of the test", "source_date": date(2026, 11, 1), "prices": PRICES}
    (folder / "prices.yaml").write_text(yaml.safe_dump(listed))
    common = {"features": FEATURES, "kinds": KINDS, "simulated": True}

    def adjust(found: dict[str, Any], _ports: Any) -> None:
        for name in ("first", "second", "third", "stopping"):
            found["providers"][name] = {**common, "base_url": f"http://127.0.0.1:{port}/{name}/v1"}
        found["providers"]["stopping"]["on_disconnect"] = "stops"
        for name in ("claude", "claudestops"):
            found["providers"][name] = {
                "kind": "anthropic", "base_url": f"http://127.0.0.1:{port}/{name}/v1",
                "kinds": ["chat"], "features": FEATURES, "simulated": True,
            }  # fmt: skip
        found["providers"]["claudestops"]["on_disconnect"] = "stops"
        names = ("first", "second", "third", "stopping", "claude", "claudestops")
        found["models"] |= {name: {"targets": [f"{name}/m"]} for name in names}
        for kind in ("tts", "pic", "hear"):
            found["models"][kind] = {"targets": [f"first/{kind}", f"second/{kind}"]}
        found["models"]["hears"] = {"targets": ["first/hears"]}
        found["models"]["stophears"] = {"targets": ["stopping/hears"]}
        found["models"]["row"] = {"targets": ["first/m", "second/m", "third/m"]}

    return {
        "adjust": adjust,
        "prices": [str(folder / "prices.yaml")],
        "budgets": [
            {"scope": "team:*", "usd": LIMIT_USD, "period": "day", "hard": True},
            *(
                {"scope": f"team:{name}", "usd": TIGHT_USD, "period": "day", "hard": True}
                for name in TIGHT
            ),
        ],
    }


@dataclass(slots=True)
class Hostile:
    """A host, its provider, and a team's requests: `judge` compares the rows with the bills."""

    stack: Any
    provider: BillingProvider
    patiently: Any

    def token(self, team: str) -> str:
        return self.stack.key(team, team=team).token

    def play(self, name: str, *scripts: Any) -> None:
        self.provider.plays[name] = list(scripts)

    def quiet_rows(self, team: str) -> list[dict[str, Any]]:
        """The team's rows, once nothing of the host is under way."""

        def look() -> list[dict[str, Any]] | None:
            if self.stack.app.hot.in_flight or self.stack.books.lag().backlog_bytes:
                return None
            rows = self.stack.rows("team_id = :team", team=team)
            done = all(row["settled_us"] for row in rows)
            return (
                rows if done and all(call.over.is_set() for call in self.provider.calls) else None
            )

        return self.patiently(lambda: (look(),) if look() is not None else None)[0]

    def judge(self, team: str, limit_usd: float = LIMIT_USD) -> list[dict[str, Any]]:
        """Fail where the books of a hard budget, or an honest bill, say otherwise."""
        rows = self.quiet_rows(team)
        calls = {call.id: call for call in self.provider.calls}
        booked = sum(row["cost_pusd"] or 0 for row in rows)
        assert booked <= limit_usd * 1e12, (booked, limit_usd)
        for row in rows:
            call: ProviderCall | None = calls.get(row["attempt_id"])
            bill = 0 if call is None else call.bill.pusd
            assert row["cost_pusd"] is not None, row
            assert row["cost_pusd"] <= row["bound_pusd"], row
            said = max(row["cost_pusd"], row["claimed_pusd"] or 0)
            assert said >= bill, (said, bill, call and call.bill, row)
        return rows

    def sent(self, team: str) -> list[ProviderCall]:
        """What the provider got of the team: each has its row."""
        rows = {row["attempt_id"] for row in self.quiet_rows(team)}
        return [call for call in self.provider.calls if call.id in rows]


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


@pytest.fixture(scope="session")
def provider() -> Iterator[BillingProvider]:
    with BillingProvider() as made:
        yield made


@pytest.fixture(scope="session")
def hostile(tmp_path_factory, running, patiently, provider) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    with running(folder / "host", **settings(folder, provider.port)) as stack:
        yield Hostile(stack, provider, patiently)


@pytest.fixture(autouse=True)
def fresh(hostile: Hostile) -> Iterator[None]:
    """No script and no memory of failures is left for the next test."""
    yield
    hostile.provider.plays.clear()
    hostile.stack.forgive("alpha")
