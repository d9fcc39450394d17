"""A pool that sizes itself in virtual time: a ledger, a cloud with faults, a scripted planner."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from deploy.once import put_ledger
from deploy.standin_cloud import StandinCloud
from gateway.clock import Clock
from gateway.config.schema_scale import ScaleSection
from gateway.scaling import traffic_observer
from gateway.scaling.pool_scaler import PoolScaler, ScalerPlace
from gateway.scaling.pool_setup import PoolSetup
from ledger.database import make_engine
from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_reads import instances_between
from ledger.reports.fleet_demand import DemandedClass
from router.scaling.plan import (
    ClassForecast,
    EngineWorth,
    FleetAlternative,
    FleetState,
    ScalePlan,
    ScaleReason,
)

S = 1_000_000
BEGAN_US = 1_790_000_000 * S // 60_000_000 * 60_000_000
USD = 10**12


@dataclass
class ScriptedPlanner:
    """Wants what the test says, and remembers what it was told."""

    wanted: int = 0
    windows: list[Any] = field(default_factory=list)

    def observe(self, window: Any) -> None:
        self.windows.append(window)

    def memory(self) -> dict[str, object]:
        return {"windows": len(self.windows)}

    def plan(self, state: FleetState) -> ScalePlan:
        running = len(state.engines)
        weighed = tuple(
            FleetAlternative(count, count * USD, (9 - count) * 3 * USD, 0) for count in range(9)
        )
        band = ClassForecast("chat", 180.0, 2.0, 1.0, 3.0)
        return ScalePlan(
            "p", state.at_us, self.wanted, running, (), 3600.0,
            EngineWorth(self.wanted, 3 * USD, USD) if self.wanted else None,
            EngineWorth(self.wanted + 1, 3 * USD, USD), (band,), weighed,
            ScaleReason.EARNS_RENT, f"{self.wanted} engines earn their rent", state.at_us,
        )  # fmt: skip


class FleetWorld:
    """One pool, one cloud, one ledger; `step` moves the clock and steps the present scaler."""

    def __init__(self, ledger: Engine, monkeypatch: pytest.MonkeyPatch, **section: Any) -> None:
        self.now_us = BEGAN_US
        self.ledger = ledger
        self.cloud = StandinCloud(lambda: self.now_us)
        self.planner = ScriptedPlanner()
        self.demand: dict[str, int] = {"chat": 120}
        values = {"mode": "act", "max": 4, "look_s": 10, "start_s": 90, "give_up_s": 300}
        values |= {"rent_usd_per_hour": "3", "least_s": 0, "actuator": {
            "kind": "command", "argv": ["/bin/true"]}}  # fmt: skip
        self.setup = PoolSetup(
            "p", ScaleSection.model_validate(values | section), ("chat",), 4,
            InstanceRent(3 * USD), 60.0, "UTC",
        )  # fmt: skip
        monkeypatch.setattr(traffic_observer, "arrivals", self._arrivals)
        monkeypatch.setattr(traffic_observer, "running_ppm", self._running)
        monkeypatch.setattr(traffic_observer, "first_arrival_us", lambda *_: self.now_us - 300 * S)
        classes = (DemandedClass("chat", 500_000, 10**10, movable=True),)
        monkeypatch.setattr(traffic_observer, "demanded_classes", lambda *_: classes)
        self.lives = 0
        self.scaler = self.new_scaler()

    def make_planner(self, _memory: Any) -> Any:
        return self.planner

    def _arrivals(self, _connection: Any, _models: Any, start_us: int, end_us: int) -> Any:
        return {at: dict(self.demand) for at in range(start_us, end_us, 60 * S)}

    def _running(self, _connection: Any, models: Any, start: int, end: int, _usual: Any) -> Any:
        """What arrives ends at once."""
        counts = self._arrivals(None, models, start, end).items()
        return {at: {name: n * 10**6 for name, n in row.items()} for at, row in counts}

    def new_scaler(self) -> PoolScaler:
        """A process that was started anew: nothing is left but ledger and cloud."""
        self.lives += 1
        place = ScalerPlace(
            ledger=self.ledger,
            probe=self.cloud,
            actuator=self.cloud,
            clock=Clock(now_s=lambda: self.now_us / 1e6, wall_us=lambda: self.now_us),
            holder=f"host:{self.lives}",
            planner=self.make_planner,
            known_us=lambda: self.now_us,
        )
        self.scaler = PoolScaler(self.setup, place)
        return self.scaler

    def step(self, seconds: float = 30, times: int = 1) -> Any:
        for _ in range(times):
            self.now_us += round(seconds * S)
            note = self.scaler.step()
        return note

    def rows(self) -> dict[str, Any]:
        with self.ledger.connect() as connection:
            found = instances_between(connection, "p", 0, self.now_us + 1)
        return {row.token: row for row in found}

    def unseen(self) -> list[str]:
        """What the cloud bills and the books lack: an engine without a row, or rent without one.

        One look of the loop (and the end of a lease) may lie between a stranger and its row.
        """
        rows, found = self.rows(), []
        for engine in self.cloud.engines:
            keys = [engine.token, f"{engine.token}#{engine.name}", f"p!{engine.name}"]
            mine = [rows[key] for key in keys if key in rows]
            if not mine:
                found.append(f"{engine.name} of {engine.token} has no row")
                continue
            until_us = self.now_us if engine.until_us is None else engine.until_us
            booked_us = max(self.now_us if row.gone_us is None else row.gone_us for row in mine)
            since_us = min(row.asked_us for row in mine)
            owned = any(row.owned for row in mine)
            if booked_us < until_us or (owned and since_us > engine.since_us):
                found.append(f"{engine.name} of {engine.token} is billed longer than booked")
        return found


@pytest.fixture
def ledger(tmp_path: Path) -> Engine:
    engine = make_engine(put_ledger(tmp_path / "ledger.db"), keep_open=True)
    # Processes die here, machines do not: what was committed need not be on the disk.
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
    yield engine
    engine.dispose()


@pytest.fixture
def world(ledger: Engine, monkeypatch: pytest.MonkeyPatch):
    """Return what makes a world with these values of the section."""
    return lambda **section: FleetWorld(ledger, monkeypatch, **section)
