"""A day of a pool that sizes itself, compressed to minutes: real processes, the real planner.

Four simulated engines are started and stopped over HTTP as `serve` does it, while clients follow a
day's shape. The planner is told that time runs `FASTER` times as fast; all else is as it ships. The
books are compared with the same day in virtual time.
"""

import asyncio
import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from statistics import fmean

import httpx
import pytest

from deploy.quietports import find_quiet_port
from gateway.clock import Clock
from gateway.config.schema_scale import ScaleSection
from gateway.config.settings import load
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.scaling import ScalingLoop, make_planner
from gateway.runtime import Runtime
from gateway.scaling import pool_setup, traffic_observer
from gateway.scaling.played_fleet import play_windows
from gateway.scaling.scoring import PricedWindow
from ledger.database import make_engine
from ledger.economics.scaling_score import PlanSum
from ledger.fleet.fleet_reads import changes, instances_between
from ledger.fleet.scaling_notes import read_scaling
from ledger.reports import fleet_demand
from ledger.reports.fleet_demand import DemandedClass
from ledger.verify.checks import verify

ROOT = Path(__file__).parents[3]
RENTING = Path(__file__).with_name("renting.py")
PROFILE = "rtx4090-llama-3.1-8b"
ENGINES = 4
FASTER = 240.0  # a day is six minutes
DAY_S = 86_400 / FASTER
US = 1_000_000
WINDOW_US = 1 * US  # four minutes of the day
TOKENS = 60
SEQUENCES = 4  # of an engine at once
STREAM_S = 1.25  # of one alone and of four together: steps of a decode last alike
USABLE = 0.85  # of an engine, as the planner has it
PER_ENGINE = SEQUENCES / STREAM_S  # requests a second inside the promise
REQUEST_PUSD = 36_900_000  # at the API: 6 tokens in, 60 out
PRICE = 2.0  # of the API, in break-even prices


class FastPlanner:
    """The planner, in a time that runs `FASTER` times as fast: rates and prices stay."""

    def __init__(self, terms, memory, began_us) -> None:
        rent = replace(terms.rent, least_s=round(terms.rent.least_s * FASTER))
        self._planner = make_planner(
            replace(
                terms, rent=rent, start_s=terms.start_s * FASTER, drain_s=terms.drain_s * FASTER
            ),
            memory,
        )
        self._began_us = began_us

    def observe(self, window) -> None:
        arrived = tuple(
            replace(item, requests=item.requests * FASTER, work_s=item.work_s * FASTER)
            for item in window.arrivals
        )
        self._planner.observe(
            replace(
                window,
                ends_us=self._fast(window.ends_us),
                length_s=window.length_s * FASTER,
                arrivals=arrived,
            )
        )

    def plan(self, state):
        engines = tuple(
            replace(item, asked_us=self._fast(item.asked_us), ready_us=self._fast(item.ready_us))
            for item in state.engines
        )
        plan = self._planner.plan(replace(state, at_us=self._fast(state.at_us), engines=engines))
        bands = tuple(replace(band, horizon_s=band.horizon_s / FASTER) for band in plan.forecast)
        return replace(plan, at_us=state.at_us, horizon_s=plan.horizon_s / FASTER, forecast=bands)

    def memory(self):
        return self._planner.memory()

    def _fast(self, at_us: int) -> int:
        return self._began_us + round((at_us - self._began_us) * FASTER)


def engines_needed(at_s: float) -> float:
    """Load in engines at a second of the compressed day: a night, two peaks, and some unrest."""
    hour = at_s / DAY_S * 24
    day = 1.75 - 1.35 * math.cos(2 * math.pi * (hour - 4) / 24)
    return max(0.15, day + 0.35 * math.sin(2 * math.pi * hour / 5) + 0.2 * math.sin(hour * 7))


def arrivals_s(length_s: float) -> list[float]:
    """When requests come: evenly at the rate of the moment."""
    found, owed, at_s = [], 0.0, 0.0
    while at_s < length_s:
        owed += engines_needed(at_s) * PER_ENGINE * 0.01
        if owed >= 1.0:
            owed -= 1.0
            found.append(at_s)
        at_s += 0.01
    return found


class DayOfClients:
    """Streams that begin at their times, whatever became of the ones before."""

    def __init__(self, host, times_s: list[float]) -> None:
        self._host, self.times_s = host, times_s
        self.whole, self.broken = 0, []
        self.began_us = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._play()))

    def start(self) -> None:
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    async def _play(self) -> None:
        limits = httpx.Limits(max_connections=500)
        async with httpx.AsyncClient(timeout=60, limits=limits, trust_env=False) as client:
            self.began_us, began_s = Clock().wall_us(), time.monotonic()
            asked = []
            for at_s in self.times_s:
                await asyncio.sleep(max(0.0, began_s + at_s - time.monotonic()))
                asked.append(asyncio.create_task(self._ask(client)))
            await asyncio.gather(*asked)

    async def _ask(self, client) -> None:
        body = {
            "model": "own", "max_tokens": TOKENS, "stream": True, "ignore_eos": True,
            "messages": [{"role": "user", "content": "x"}],
        }  # fmt: skip
        headers = {"authorization": f"Bearer {self._host.token}"}
        try:
            answer = await client.post(
                f"{self._host.url}/v1/chat/completions", json=body, headers=headers
            )
        except httpx.HTTPError as error:
            self.broken.append(repr(error))
            return
        if answer.status_code == 200 and answer.text.rstrip().endswith("[DONE]"):
            self.whole += 1
        else:
            self.broken.append(f"{answer.status_code} {answer.text[-200:]}")


class RentedHost:
    """A running host whose engines an operator's program rents, with a loop over it here."""

    def __init__(self, host, folder: Path) -> None:
        self.host, self.folder, self.plan = host, folder, None
        settings = load(host.config)
        values = {
            "mode": "act", "max": ENGINES, "look_s": 0.25, "least_s": 0, "start_s": 2.0,
            "rent_usd_per_hour": f"{REQUEST_PUSD * PER_ENGINE * 3600 / PRICE / 1e12:.6f}",
            "actuator": {
                "kind": "command", "timeout_s": 5,
                "argv": [sys.executable, "-S", str(RENTING), str(folder)],
            },
        }  # fmt: skip
        section = ScaleSection.model_validate(values)
        pool = settings.pools["main"].model_copy(update={"scale": section})
        self.settings = settings.model_copy(update={"pools": {"main": pool}})
        self.runtime = Runtime.load(host.state / "run" / "runtime.json")
        self.board = SharedLoadTable(self.runtime.run_dir / "board", self.runtime.layout)
        self.ledger = make_engine(host.ledger)
        self.loop = ScalingLoop(
            self.settings, self.runtime, self.board, self.ledger, Clock(), self._planner
        )
        self.classes = (
            DemandedClass("own", round(USABLE / PER_ENGINE * US), REQUEST_PUSD, movable=True),
        )
        observer = self.loop._scalers["main"]._observer
        observer.refresh = lambda _: None  # what an engine can do is known to this test
        observer.classes = self.classes

    def _planner(self, terms, memory):
        return self.plan or FastPlanner(terms, memory, Clock().wall_us())

    def give_up_after(self, seconds: float) -> None:
        """How long an engine may take until it serves."""
        scaler = self.loop._scalers["main"]
        section = scaler._setup.section.model_copy(update={"give_up_s": seconds})
        scaler._setup = replace(scaler._setup, section=section)

    def set_faults(self, **faults) -> None:
        (self.folder / "faults.json").write_text(json.dumps(faults))

    def rows(self):
        with self.ledger.connect() as connection:
            return instances_between(connection, "main", 0, Clock().wall_us() + 1)

    def rented(self) -> list[dict]:
        """What the program's own journal says: one entry for each engine, with its end."""
        path = self.folder / "rented.jsonl"
        found: dict[str, dict] = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            entry = json.loads(line)
            if entry["what"] == "start":
                found[entry["name"]] = entry | {"until_us": None}
            else:
                found[entry["name"]]["until_us"] = entry["at_us"]
        return list(found.values())

    def unseen(self) -> list[str]:
        """Engines without a row, or with less rent in the books than they ran."""
        rows, found = {row.token: row for row in self.rows()}, []
        for engine in self.rented():
            keys = (engine["token"], f"{engine['token']}#{engine['name']}")
            mine = [rows[key] for key in keys if key in rows]
            if not mine:
                found.append(f"{engine['name']} of {engine['token']} has no row")
                continue
            until_us = Clock().wall_us() if engine["until_us"] is None else engine["until_us"]
            ends_us = max(Clock().wall_us() if row.gone_us is None else row.gone_us for row in mine)
            began_us = min(row.asked_us for row in mine)
            # Nobody knows since when a stranger runs; it is booked from the first sight of it.
            is_late = any(row.owned for row in mine) and began_us > engine["at_us"]
            if ends_us < until_us or is_late:
                found.append(f"{engine['name']} of {engine['token']} ran longer than booked")
        return found

    def close(self) -> None:
        for engine in self.rented():
            with contextlib.suppress(ProcessLookupError):
                if engine["until_us"] is None:
                    os.kill(engine["pid"], signal.SIGKILL)
        self.board.close()
        self.ledger.dispose()


@pytest.fixture
def rented_host(make_host, tmp_path, monkeypatch):
    """Return what starts a host without engines, and the loop that rents them."""
    monkeypatch.setattr(pool_setup, "GRACE_US", 1 * US)
    monkeypatch.setattr(traffic_observer, "WINDOW_US", WINDOW_US)
    monkeypatch.setattr(fleet_demand, "MINUTE_US", WINDOW_US)
    monkeypatch.setattr(traffic_observer, "SETTLE_US", 50_000)
    folder, made = tmp_path / "rented", []

    def make() -> RentedHost:
        first = find_quiet_port(ENGINES)
        ports = [first + place for place in range(ENGINES)]
        (folder / "engines").mkdir(parents=True)
        flags = ["--profile", PROFILE, "--model", "llama", "--max-num-seqs", str(SEQUENCES)]
        told = {"ports": ports, "flags": flags, "root": str(ROOT)}
        (folder / "ports.json").write_text(json.dumps(told))
        (folder / "faults.json").write_text("{}")
        engine = {
            "kind": "simulated", "model": PROFILE, "served_name": "llama",
            "endpoints": [f"http://127.0.0.1:{port}/v1" for port in ports],
            "max_num_seqs": SEQUENCES,
        }  # fmt: skip
        host = make_host(
            workers=1,
            pools={"main": {"engine": engine, "gpu": {"type": "RTX-4090", "usd_per_hour": "1"}}},
            models={
                "own": {
                    "targets": ["pool:main", "standin/m"],
                    "compare_with": ["openai/gpt-4o-mini"],
                }
            },
            policies=[{"name": "day", "slo": {"ttft_ms": 1500}}],
        )
        host.start()
        made.append(RentedHost(host, folder))
        return made[-1]

    yield make
    for rented in made:
        rented.close()


def play(rented, length_s: float) -> tuple[DayOfClients, int]:
    """A day so long over the host; returns its clients and when it ended."""
    clients = DayOfClients(rented.host, arrivals_s(length_s))
    clients.start()
    while not clients.is_over:
        rented.loop.step()
        time.sleep(0.05)
    ended_us = Clock().wall_us()
    assert clients.broken == []
    assert rented.unseen() == []
    return clients, ended_us


def in_virtual_time(rented, clients, ended_us: int) -> PlanSum:
    """The day played without processes: starts and drains last as they did on the mean."""
    rows = [row for row in rented.rows() if row.ready_us]
    starts_us = round(fmean(row.ready_us - row.asked_us for row in rows))
    drains = [row.gone_us - row.stop_us for row in rows if row.gone_us and row.stop_us]
    drains_us = round(fmean(drains)) if drains else 0
    setup = rented.loop._setups[0]
    terms = replace(setup.score_terms(), start_us=starts_us)
    counts: dict[int, int] = {}
    for at_s in clients.times_s:
        place = round(at_s * US) // WINDOW_US
        counts[place] = counts.get(place, 0) + 1
    windows = [
        PricedWindow(
            clients.began_us + place * WINDOW_US,
            clients.began_us + (place + 1) * WINDOW_US,
            {"own": counts.get(place, 0)},
        )
        for place in range((ended_us - clients.began_us) // WINDOW_US)
    ]
    planner = FastPlanner(setup.pool_terms(), None, clients.began_us)
    spans = play_windows(planner, windows, rented.classes, terms, serving=0, drain_us=drains_us)
    return reduce(add, (span.advised for span in spans), PlanSum())


def in_the_books(rented, clients, ended_us: int) -> PlanSum:
    """Rent of the engines and dollars of the API, as the ledger has them."""
    rent = sum(row.rent_pusd(clients.began_us, ended_us) for row in rented.rows())
    api = sum(
        row["cost_pusd"] or 0
        for row in rented.host.rows("backend = 'api'")
        if row["opened_us"] >= clients.began_us
    )
    return PlanSum(rent, api)


@pytest.mark.long
def test_a_day_of_real_engines_costs_what_it_costs_in_virtual_time(rented_host, patiently):
    rented = rented_host()
    clients, ended_us = play(rented, DAY_S)
    patiently(lambda: len(rented.host.rows("settled_us IS NOT NULL")) >= clients.whole)
    books = in_the_books(rented, clients, ended_us)
    virtual = in_virtual_time(rented, clients, ended_us)
    print(f"{clients.whole} streams; books {books}; virtual time {virtual}")
    assert books.total_pusd == pytest.approx(virtual.total_pusd, rel=0.05)
    assert len({row.place for row in rented.rows()}) >= 3
    assert [row.token for row in rented.rows() if not row.owned] == []
    with rented.ledger.connect() as connection:
        done = changes(connection, "main")
        assert sum(item.verb == "stop" for item in done) >= 3
        assert verify(connection).findings == ()


def test_faulty_programs_leave_no_engine_unnamed_and_no_rent_unseen(
    rented_host, patiently, scripted_plan
):
    """Each fault in its turn, beside streams that go on; the program's own journal is the judge."""
    rented = rented_host()
    plan = rented.plan = scripted_plan(1)
    rented.set_faults(never_ready=True)
    words = [sys.executable, "-S", RENTING, rented.folder, "start", "by.hand", "3"]
    subprocess.run(words, check=True, cwd=ROOT)
    assert any("has no row" in words for words in rented.unseen()), "the control: nobody looked yet"
    rented.set_faults()
    rented.loop.step()
    assert [row.owned for row in rented.rows() if row.place == 3] == [False]
    clients = DayOfClients(rented.host, [place * 0.2 for place in range(60)])
    clients.start()

    def tells(kind: str) -> bool:
        rented.loop.step()
        return read_scaling(rented.runtime.run_dir)["main"].findings.get(kind, 0) > 0

    def runs(count: int) -> bool:
        rented.loop.step()
        live = [row for row in rented.rows() if row.is_live and row.ready_us]
        return len(live) == count and len(rented.loop._probes["main"].serving()) == count

    patiently(lambda: runs(1))
    rented.set_faults(hangs=["list"])
    patiently(lambda: tells("unreachable"))
    rented.set_faults(lies=["start"])  # it says that it is done, and nothing comes
    plan.wanted = 2
    rented.give_up_after(0.5)
    patiently(lambda: tells("never_ready"))
    rented.give_up_after(600)
    rented.set_faults(starts_two=True)
    patiently(lambda: tells("duplicate"))
    rented.set_faults(lies=["stop"])
    plan.wanted = 1
    patiently(lambda: tells("stuck"))
    rented.set_faults(forgets=[row.token for row in rented.rows() if row.is_live])
    patiently(lambda: tells("forgotten"))
    rented.set_faults()
    patiently(lambda: runs(1))
    patiently(lambda: clients.is_over)
    assert clients.broken == []
    assert rented.unseen() == []
    with rented.ledger.connect() as connection:
        assert verify(connection).findings == ()
