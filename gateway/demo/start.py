"""Start of `breakeven demo`: a new ledger, a replayed month, then live traffic.

The demo has its own state directory, created anew by each start. The month is computed by the real
router on simulated engines (`gateway.demo.history`) and marked as replayed. After that the demo is
an ordinary `serve`.
"""

import asyncio
import contextlib
import os
import random
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Engine

from gateway.clock import Clock
from gateway.config.declarations import budgets
from gateway.config.settings import Settings, load
from gateway.config.starter import USUAL_PORTS, StarterPorts
from gateway.config.state_errors import translate_state_errors
from gateway.config.statedir import hold
from gateway.demo.demand import TEAMS
from gateway.demo.history import DemoScenario, replay
from gateway.demo.replay_records import DemoCaller
from gateway.demo.traffic import drive
from gateway.host.banner import banner
from gateway.host.children import Forks
from gateway.host.fork_client import listening
from gateway.host.http_wait import wait_until_answering
from gateway.host.port_claims import PortClaims, free_ports
from gateway.host.serve import STOPPING, HostServer, on_hangup, on_signals
from gateway.host.stages import StartStages
from gateway.runtime import Runtime
from ledger.budgets.backfill import BudgetSweep, backfill
from ledger.budgets.windows import Period, window_at
from ledger.database import make_engine
from ledger.fleet.hours import close_hours
from ledger.fleet.samples import add_samples
from ledger.identity.keys import CreatedKey, KeySpec, create_key, load_pepper
from ledger.prices.stored import load_price_book
from ledger.writing.repository import LedgerRepository

SEED = 20
ORGANISATION = "demo"
JOURNAL = "replayed"
ACCESS = """# Whoever opens the demo's dashboard on this machine is its finance person.
here = "finance@demo"
[people."finance@demo"]
role = "finance"
"""


class StartAborted(Exception):
    """Error: a stop was requested during the start."""


class DemoStart:
    def __init__(
        self, ports: StarterPorts, *, say: Callable[[str], None], environ: Mapping[str, str]
    ) -> None:
        self._ports = ports
        self._say = say
        self._stages = StartStages(clock=time.monotonic, say=say)
        self._stages.resume(environ)
        self._stop = asyncio.Event()
        self._keys: dict[str, CreatedKey] = {}

    async def run(self) -> None:
        """Run the demo until SIGINT, SIGTERM or SIGHUP."""
        on_signals(self._stop.set)
        on_hangup(self._stop.set)
        with PortClaims() as claims:
            path = fresh_state(await free_ports(self._ports, claims, self._say))
            async with listening(os.environ) as forks:
                await self._run(path, forks)

    async def _run(self, path: Path, forks: Forks | None) -> None:
        settings = load(path)
        serving = HostServer(settings, path, self._say, forks=forks)
        try:
            await serving.start(between=lambda runtime: self._history(settings, runtime))
            with self._stages.stage("gateway and dashboard answer"):
                await wait_until_answering(settings, serving.address)
            await self._live(settings, serving)
        except StartAborted:
            return
        finally:
            self._say(STOPPING)
            on_signals(serving.hurry)
            await serving.stop()

    async def _history(self, settings: Settings, runtime: Runtime) -> None:
        """Create the keys of the demo's teams, and their month."""
        with self._stages.stage("30 past days replayed in virtual time"):
            ledger = make_engine(runtime.ledger_url)
            self._keys = team_keys(settings, ledger)
            replayed = in_background(lambda: _replay(settings, ledger, self._keys))
            stopped = asyncio.create_task(self._stop.wait())
            either: set[asyncio.Future[Any]] = {replayed, stopped}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not replayed.done():
                raise StartAborted
            stopped.cancel()
            if not replayed.result():
                raise RuntimeError("the history could not be made: see the traceback above")
            ledger.dispose()

    async def _live(self, settings: Settings, serving: HostServer) -> None:
        token = next(iter(self._keys.values())).token
        self._say(banner(settings, serving.address, token, simulated=True))
        self._say("Replayed: 30 days. Live: simulated traffic at its real pace.")
        self._say("\n".join(self._stages.table()))
        host, port = serving.address
        tokens = {team: key.token for team, key in self._keys.items()}
        rng = random.Random(SEED)  # noqa: S311 - a demo's traffic, not a secret
        traffic = asyncio.create_task(drive(f"http://{host}:{port}/v1", tokens, rng, self._stop))
        await self._stop.wait()
        traffic.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await traffic


def in_background(work: Callable[[], None]) -> asyncio.Future[bool]:
    """Run `work` in a daemon thread; the future tells whether it completed.

    An incomplete history is recreated by the next start. An error appears as the thread's
    traceback.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[bool] = loop.create_future()

    def set_outcome(whole: bool) -> None:
        if not ended.cancelled():
            ended.set_result(whole)

    def body() -> None:
        whole = False
        try:
            work()
            whole = True
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(set_outcome, whole)

    threading.Thread(target=body, name="replay", daemon=True).start()
    return ended


def fresh_state(ports: StarterPorts) -> Path:
    """Create an empty state directory with the demo's configuration; return the configuration."""
    text = files("gateway.demo").joinpath("demo.yaml").read_text(encoding="utf-8")
    text = text.replace(f"port: {USUAL_PORTS.gateway}", f"port: {ports.gateway}")
    text = text.replace(f"port: {USUAL_PORTS.dashboard}", f"port: {ports.dashboard}")
    text = text.replace(f"port: {USUAL_PORTS.engines}", f"port: {ports.engines}")
    draft = Path(Settings().state_dir) / "demo.yaml"
    with translate_state_errors(Settings()):
        draft.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
    settings = load(draft)
    held = hold(settings)  # fails if a demo is running
    shutil.rmtree(settings.state, ignore_errors=True)
    held.release()
    draft.with_name("demo-access.toml").write_text(ACCESS, encoding="utf-8")
    return draft


def team_keys(settings: Settings, ledger: Engine) -> dict[str, CreatedKey]:
    pepper, now_us = load_pepper(settings.state.resolve()), Clock().wall_us()
    with ledger.begin() as connection:
        return {
            team.name: create_key(
                connection,
                KeySpec(name=f"{team.name} (demo)", team=team.name, org=ORGANISATION),
                pepper=pepper,
                now_us=now_us,
            )
            for team in TEAMS
        }


def count_budgets(settings: Settings, ledger: Engine, now_us: int) -> None:
    """Let budgets start with the spending in their windows, as for one declared late."""
    with ledger.begin() as connection:
        for budget in budgets(settings):
            window = window_at(cast("Period", budget.period), budget.timezone, now_us // 10**6)
            backfill(connection, BudgetSweep(budget.as_line(), window))


def _replay(settings: Settings, ledger: Engine, keys: Mapping[str, CreatedKey]) -> None:
    now_us = Clock().wall_us()
    callers = {team: DemoCaller(ORGANISATION, team, None, key.key_id) for team, key in keys.items()}
    scenario = DemoScenario(settings, load_price_book(ledger), callers, now_us)
    history = replay(scenario, random.Random(SEED))  # noqa: S311 - a demo's history
    LedgerRepository(ledger, host=JOURNAL).import_records(
        history.records, journal=JOURNAL, at_us=now_us
    )
    add_samples(ledger, history.samples)
    count_budgets(settings, ledger, now_us)
    while close_hours(ledger, at_us=now_us):
        pass
