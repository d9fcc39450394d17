"""Telemetry process: `python -m gateway.host.telemetry --config FILE --runtime FILE`.

It reads every engine's metrics twice a second and publishes routing state; every ten seconds it
stores samples in the ledger. It also sends budget alerts. If it dies, workers use the last values
until they are stale; then the engine is `unknown`. An engine that `serve` runs is read only while
the parent reports that its own process serves: any other process on its port is ignored. Each new
process is measured, and results of a process that was replaced meanwhile are dropped. A restarted
telemetry continues from the published values of the running process.
"""

import asyncio
import logging
import os
import signal
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

import uvloop
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from backends import health
from backends.address_policy import INSIDE
from backends.errors import BackendError
from backends.health import EngineHealth, HealthState, ProbeResult
from backends.http import HttpClient
from backends.metrics import ProbeFailed, parse, path_of
from backends.roundtrip import round_trip_s
from gateway.clock import Clock, next_tick
from gateway.config.credentials import engine_headers
from gateway.config.settings import Settings
from gateway.control.senders import run_senders
from gateway.fleet.demand_counter import BidPricePublisher
from gateway.fleet.engine_notes import TELEMETRY, EngineStatusNotes
from gateway.fleet.kv_event_listener import listen
from gateway.fleet.measurements import MeasurementNotes
from gateway.fleet.prefix_index import PREFIXES_FILE, PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.host.engine_records import capacity_row, catalog_row, reason_of
from gateway.host.operated_samples import apply_overrides
from gateway.host.page_reader import PageReader, read_metrics
from gateway.host.rate_limit_service import RateLimitService
from gateway.host.sample_backlog import SampleBacklog, unobserved_sample
from gateway.host.scrape import EngineScraper, EngineStartLimits, turn_s
from gateway.policies.overrides import standing_overrides
from gateway.process import start_process
from gateway.request.limits.rate_limiter import are_shared
from gateway.runtime import EngineReplica, Runtime
from gateway.table_layout import HEALTHS
from gateway.table_layout import EngineCell as Published
from ledger.database import make_engine
from ledger.fleet.samples import (
    FleetSample,
    add_capacity,
    add_catalog,
    add_round_trips,
    add_samples,
)
from ledger.money import usd_to_pusd
from ledger.overrides import overrides
from router.bid_price import TICK_S

SAMPLE_S = 10.0
LIVE_S = 0.25
WAY_S, WAY_LOOK_S = 60.0, 1.0
NOT_SERVING = {  # stages of a managed engine other than a start in progress
    "draining": HealthState.DRAINING,
    "backing_off": HealthState.DOWN,
    "blocked": HealthState.DOWN,
    "stopped": HealthState.DOWN,
    "resting": HealthState.OFF,
}

log = logging.getLogger("breakeven.telemetry")

if TYPE_CHECKING:  # a host without engines meets none: it needs none of these
    import httpx

    from gateway.host.stepfits import EngineFit, StepFitStore


class TelemetryProcess:
    """Telemetry of one host; `_fits` supplies each engine's step model."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        board: SharedLoadTable,
        ledger: Engine,
        clock: Clock,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._board = board
        self._ledger = ledger
        self._clock = clock
        self._limits = health.HealthLimits(stale_s=settings.telemetry.stale_s)
        self._seats = runtime.engines
        self._words = EngineStatusNotes(runtime.run_dir, TELEMETRY)
        self._notes = MeasurementNotes(runtime.run_dir)
        self._measuring: dict[int, asyncio.Task[None]] = {}  # by row, parallel to the scrapes
        self._watches = [self._watch(row, seat) for row, seat in enumerate(runtime.engines)]
        self._runtime = runtime
        self._prefixes = PrefixIndex(runtime.run_dir / PREFIXES_FILE, board)
        self._backlog = SampleBacklog(self._store)

    @cached_property
    def _fits(self) -> "StepFitStore":
        from gateway.host.stepfits import StepFitStore  # noqa: PLC0415  (as said above)

        return StepFitStore(self._settings, self._environ)

    async def run(self) -> None:
        """Run until cancelled."""
        has_tls = any(seat.base_url.startswith("https:") for seat in self._seats)
        tls = ssl.create_default_context() if has_tls else None  # it holds every authority
        pages = HttpClient(tls=tls)
        async with AsyncExitStack() as clients, asyncio.TaskGroup() as tasks:
            clients.push_async_callback(pages.aclose)
            for seat, watch in zip(self._seats, self._watches, strict=True):
                from gateway.host.engine_client import make_engine_client  # noqa: PLC0415  (as said above)

                made = make_engine_client(self._headers(seat), tls)
                client = await clients.enter_async_context(made)
                tasks.create_task(self._follow(seat, watch, self._pages(seat, pages), client))
                if seat.kv_events is not None:
                    tasks.create_task(listen(seat.name, seat.kv_events, watch.memory, self._clock))
            for chore in (self._measure_ways, self._live, self._sample, self._store_samples):
                tasks.create_task(chore())
            tasks.create_task(self._price())
            tasks.create_task(run_senders(self._settings, self._ledger, self._clock))
            if self._settings.limits and are_shared(self._runtime.ledger_url):
                here = self._runtime
                desk = RateLimitService(self._ledger, here.host, here.run_dir, self._clock)
                tasks.create_task(desk.run())

    def _pages(self, seat: EngineReplica, client: HttpClient) -> PageReader:
        """Return the reader of an engine's metrics, which are read twice a second."""
        address = seat.base_url.removesuffix("/v1")
        return PageReader(client, address, INSIDE, self._headers(seat))

    def _headers(self, seat: EngineReplica) -> Mapping[str, str]:
        return engine_headers(self._settings.pools[seat.pool].engine, seat.pool, self._environ)

    async def _follow(
        self,
        seat: EngineReplica,
        watch: EngineScraper,
        pages: PageReader,
        client: "httpx.AsyncClient",
    ) -> None:
        state = self._resumed_health(seat, watch)
        while True:
            life = self._board.life(watch.row)
            if life != watch.life:
                watch.reset(life)
                state = self._initial_health(seat)
            if seat.managed and not life:
                state = self._unserved_health(seat, watch, state)
            else:
                state = await self._scrape_engine(seat, watch, pages, state)
                if state.state is HealthState.HEALTHY and self._is_due(watch):
                    await self._meet(seat, watch, client)
                    watch.schedule_measurement(self._clock.now_s())
                elif watch.is_assumed and state.state is HealthState.HEALTHY:
                    self._measure_while_idle(seat, watch)
            if self._board.life(watch.row) == life:
                unmet = state.state is HealthState.HEALTHY and watch.step is None
                watch.health = (HealthState.LOADING if unmet else state.state).value
                self._words.publish(seat.name, reason_of(seat, state, life, unmet=unmet))
                watch.reckon_forgotten(self._prefixes, self._board, self._clock.now_s())
                watch.publish(self._board)
                period_s = self._settings.telemetry.scrape_s
                await next_tick(period_s, turn_s(watch.row, len(self._seats), period_s))

    def _is_due(self, watch: EngineScraper) -> bool:
        return watch.step is None and self._clock.now_s() >= watch.meet_again_s

    async def _live(self) -> None:
        """Publish a heartbeat, for workers that rely on telemetry's values."""
        while True:
            self._board.record_alive(self._clock.now_s())
            await next_tick(LIVE_S)

    def _resumed_health(self, seat: EngineReplica, watch: EngineScraper) -> EngineHealth:
        """Continue from the published state, so that a restart of telemetry costs no capacity."""
        if not watch.take_over(self._board, self._clock.now_s()):
            return self._initial_health(seat)
        log.warning("engine is healthy, state taken over engine=%s", seat.name)
        return EngineHealth(
            HealthState.HEALTHY, self._clock.now_s(), watch.read_s, reason="taken over"
        )

    def _initial_health(self, seat: EngineReplica) -> EngineHealth:
        now_s = self._clock.now_s()
        return health.starting_health(now_s) if seat.managed else health.attached_health(now_s)

    def _unserved_health(
        self, seat: EngineReplica, watch: EngineScraper, before: EngineHealth
    ) -> EngineHealth:
        """Return the health of an engine without an own process, as the parent reports it."""
        stage = self._board.stage(watch.row)
        state = NOT_SERVING.get(stage, HealthState.LOADING)
        if before.reason != stage:
            log.warning("engine changed engine=%s state=%s reason=%s", seat.name, state, stage)
        return EngineHealth(state, self._clock.now_s(), reason=stage)

    async def _scrape_engine(
        self,
        seat: EngineReplica,
        watch: EngineScraper,
        pages: PageReader,
        state: EngineHealth,
    ) -> EngineHealth:
        """Scrape an engine once and return its updated health."""
        probe, detail = ProbeResult.ALIVE, ""
        try:
            watch.page, page = await read_metrics(pages, watch.page)
            sample = watch.parse(page, seat.dialect)
            watch.observe_sample(sample, self._board, self._clock.now_s())
        except ProbeFailed as error:
            probe, detail = ProbeResult.BLIND, str(error)
        except TimeoutError:
            probe = ProbeResult.SILENT
        except BackendError as error:
            probe, detail = ProbeResult.REFUSED, str(error)
        before, last = state.state, state.last
        state = health.observe_probe(
            state, probe, self._clock.now_s(), detail=detail, limits=self._limits
        )
        if state.state is not before or (
            probe is not last and state.state is not HealthState.HEALTHY
        ):
            log.warning(
                "engine changed engine=%s state=%s reason=%s", seat.name, state.state, state.reason
            )
        return state

    async def _measure_ways(self) -> None:
        """Measure round trips once a minute, without delaying scrapes."""
        while True:
            now_s = self._clock.now_s()
            due = [
                (seat, watch)
                for seat, watch in zip(self._seats, self._watches, strict=True)
                if watch.health == HealthState.HEALTHY.value
                and (watch.way_measured_s is None or now_s - watch.way_measured_s >= WAY_S)
            ]
            await asyncio.gather(*(self._measure_way(*pair) for pair in due))
            await next_tick(WAY_LOOK_S)

    async def _measure_way(self, seat: EngineReplica, watch: EngineScraper) -> None:
        watch.way_measured_s = self._clock.now_s()
        watch.round_trip_s = await round_trip_s(seat.base_url)

    async def _meet(
        self, seat: EngineReplica, watch: EngineScraper, client: "httpx.AsyncClient"
    ) -> None:
        """Read the context limit and the step model of an engine at its first good scrape."""
        from backends.engine.probes import ProbeError, Workload, context_limit  # noqa: PLC0415  (as said above)

        watch.health = HealthState.LOADING.value
        watch.publish(self._board)
        try:
            limit = await context_limit(client, Workload(seat.base_url, seat.served_name, parse))
        except ProbeError as error:
            log.warning("cannot read the models of an engine engine=%s error=%s", seat.name, error)
            return
        watch.limits.context_tokens = limit or 0
        setting = self._fits.measure_setting(seat)
        waits = setting == "idle" and not watch.is_idle(self._board)
        is_assumed = setting == "off" or waits
        fitted = (
            self._fits.assume_model(seat) if is_assumed else await self._fits.measure_model(seat)
        )
        await self._fit(seat, watch, fitted)
        watch.is_assumed = waits and watch.step is not None

    def _measure_while_idle(self, seat: EngineReplica, watch: EngineScraper) -> None:
        """Measure an engine with an assumed step model when nothing runs there."""
        before = self._measuring.get(watch.row)
        if before is not None and not before.done():
            return
        if self._clock.now_s() >= watch.meet_again_s and watch.is_idle(self._board):
            watch.schedule_measurement(self._clock.now_s())
            self._measuring[watch.row] = asyncio.create_task(self._remeasure(seat, watch))

    async def _remeasure(self, seat: EngineReplica, watch: EngineScraper) -> None:
        fitted = await self._fits.measure_model(seat)
        if watch.is_assumed and await self._fit(seat, watch, fitted):
            watch.is_assumed = False

    async def _fit(
        self, seat: EngineReplica, watch: EngineScraper, fitted: "EngineFit | None"
    ) -> bool:
        """Use and record a step model from now on. Return false without one."""
        if fitted is None or self._board.life(watch.row) != watch.life:
            return False
        watch.step = fitted.step
        self._notes.add(self._fits.note(seat, fitted, self._clock.wall_us()))
        try:
            await asyncio.to_thread(self._record, seat, watch, fitted)
        except DBAPIError as error:
            log.warning("engine capacity was not stored engine=%s error=%s", seat.name, error.orig)
        return True

    async def _price(self) -> None:
        """Publish each pool's bid price, computed from recent requests."""
        markets = BidPricePublisher(self._board)
        healthy = float(HEALTHS.index(HealthState.HEALTHY.value))
        while True:
            markets.tick(self._clock.now_s(), healthy)
            await next_tick(TICK_S)

    def _mark_gap(self) -> None:
        """Mark the time since the last sample of an earlier telemetry as unobserved."""
        at_us = self._clock.wall_us()
        self._backlog.add(
            [
                unobserved_sample(seat.pool, seat.name, at_us, simulated=seat.simulated)
                for row, seat in enumerate(self._seats)
                if self._board.published(row)[Published.UPDATED_S]
            ]
        )

    async def _sample(self) -> None:
        self._mark_gap()
        while True:
            await asyncio.sleep(SAMPLE_S)
            now_s, at_us = self._clock.now_s(), self._clock.wall_us()
            self._backlog.add(
                [watch.row_for(self._board, at_us=at_us, now_s=now_s) for watch in self._watches]
            )

    async def _store_samples(self) -> None:
        """Store samples separately from sampling, which a hanging ledger must not delay."""
        while True:
            await asyncio.sleep(SAMPLE_S)
            at_us = self._clock.wall_us()
            if not self._backlog.is_due(at_us):
                continue
            if not await asyncio.to_thread(self._backlog.flush, at_us):
                continue
            try:
                trips = {watch.name: watch.new_round_trip_us() for watch in self._watches}
                told = {name: rtt_us for name, rtt_us in trips.items() if rtt_us is not None}
                await asyncio.to_thread(add_round_trips, self._ledger, at_us, told)
            except DBAPIError as error:
                log.warning("round trip times were not stored error=%s", error.orig)

    def _store(self, samples: Sequence[FleetSample]) -> None:
        """Store samples with the overrides that applied when they were taken."""
        known = standing_overrides(overrides(self._ledger), samples[0].at_us)
        add_samples(self._ledger, [apply_overrides(row, known) for row in samples])

    def _watch(self, row: int, seat: EngineReplica) -> EngineScraper:
        known = seat.kv_capacity_tokens
        limits = EngineStartLimits(
            seat.max_num_seqs, seat.prefill_budget_tokens, kv_capacity_tokens=known
        )
        watch = EngineScraper(seat.name, seat.pool, row, limits, simulated=seat.simulated)
        watch.page = path_of(seat.dialect)
        pool = self._settings.pools[seat.pool]
        watch.fixed_pusd_per_s = usd_to_pusd(pool.bid_price_usd_per_s)
        return watch

    def _record(self, seat: EngineReplica, watch: EngineScraper, fitted: "EngineFit") -> None:
        """Store versioned rows of the engine's description and capacity."""
        pool, at_us = self._settings.pools[seat.pool], self._clock.wall_us()
        add_catalog(self._ledger, catalog_row(at_us, seat, pool, watch, fitted.version))
        measured = self._fits.capacity(fitted)
        add_capacity(self._ledger, capacity_row(at_us, seat, watch) | measured)


async def _main(settings: Settings, runtime: Runtime) -> None:
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    telemetry = TelemetryProcess(settings, runtime, board, make_engine(runtime.ledger_url), Clock())
    task = asyncio.create_task(telemetry.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        return


def main(arguments: list[str] | None = None) -> None:
    begun = start_process("gateway.host.telemetry", "telemetry", __doc__, arguments)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(begun.settings, begun.runtime))


if __name__ == "__main__":
    main()
