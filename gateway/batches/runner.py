"""Batch runner of a host, started with the first batch.

It runs as `python -m gateway.batches.runner --config FILE --runtime FILE --address HOST:PORT`.
Runners of several hosts share the work only through the database. After a crash, the next runner
continues from the database: open lines were disconnected and are claimed again at once.
"""

import asyncio
import logging
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.batches.authority import load_authority
from gateway.batches.batch_finalizer import BatchFinalizer
from gateway.batches.batch_spill_policy import spill_policy_of
from gateway.batches.batch_validator import BatchValidator, LeaseLost
from gateway.batches.line_executor import LineExecutor
from gateway.batches.line_learner import LineLearner
from gateway.batches.line_sender import LineSender
from gateway.batches.pace import select_turns
from gateway.batches.provider_batch_client import BatchProviders, make_batch_providers
from gateway.batches.provider_batch_loop import ProviderBatchBuilder, ProviderBatchLoop
from gateway.batches.provider_batch_sync import ProviderBatchSync
from gateway.batches.wake import RunnerProgress, WakeSignal, write_progress
from gateway.clock import Clock
from gateway.config.settings import Settings, resolve_model
from gateway.fleet.estimate_table import ESTIMATES_FILE, EstimateTable
from gateway.ids import BatchIds
from gateway.process import WHERE_WORKERS_LISTEN, ProcessStart, start_process
from gateway.runtime import Runtime
from ledger.batches.files import FileStore
from ledger.batches.lines import LineClaim, LineStore
from ledger.batches.outgoing import OutgoingStore
from ledger.batches.store import (
    CANCELLING,
    FINALIZING,
    IN_PROGRESS,
    VALIDATING,
    BatchRecord,
    BatchStore,
)
from ledger.database import make_engine

FEED_S = 0.05
LOOK_S = 0.5  # between polls of open batches, unless woken
RENEW_S = 5.0
SWEEP_S = 30.0
PATIENCE_S = 2.0  # for running steps at shutdown
STEPS = 4  # states from the input to the output files
AWAY_S = 1.0
HELD_US = 60 * 1_000_000  # lease for validating or finalizing one batch
DAY_US = 86_400 * 1_000_000

log = logging.getLogger("breakeven.batches")


class BatchRunner:
    """Batch runner that works until `stop` is set."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        engine: Engine,
        address: str,
        *,
        providers: Mapping[str, BatchProviders] | None = None,
    ) -> None:
        """Take over the work of the last runner of this `host`; `providers` take batches."""
        providers, clock = providers or {}, Clock()
        limits = settings.batches
        self._seat = f"{runtime.host}:{runtime.state_dir}"
        self._owner = f"{self._seat}/{secrets.token_hex(8)}"
        self._settings, self._run_dir, self._clock = settings, runtime.run_dir, clock
        self._batches = BatchStore(engine)
        self._lines = LineStore(engine, self._owner)
        self._files = FileStore(engine)
        self._bell = WakeSignal(runtime.run_dir)
        self._outgoing = OutgoingStore(engine, self._owner)
        self._estimates = EstimateTable(runtime.run_dir / ESTIMATES_FILE)
        sender = LineSender(
            f"http://{address}",
            load_authority(runtime.run_dir),
            total_s=settings.server.timeouts.total_s,
            at_once=limits.in_flight,
            now_us=clock.wall_us,
        )
        self._sender = sender
        spill_us = round(limits.spill_s * 1e6)
        self._carrier = LineExecutor(
            self._lines, sender, clock, most=limits.in_flight, spill_us=spill_us,
            leaves=lambda model: spill_policy_of(settings, model).is_provider_only,
        )  # fmt: skip
        self._outward = ProviderBatchLoop(
            ProviderBatchBuilder(
                self._lines, self._outgoing, self._batches, sender, self._owner, clock, BatchIds()
            ),
            ProviderBatchSync(
                self._outgoing, providers, clock, spill_us,
                learner=LineLearner(self._estimates, clock),
            ),
            self._lines, partial(spill_policy_of, settings), self._carrier, clock,
            limits.hand_on_s, limits.spill_s,
        )  # fmt: skip
        self._finishing = BatchFinalizer(
            self._batches, self._lines, self._files, self._owner, clock.wall_us, BatchIds(),
            limits.keep_days * DAY_US,
        )  # fmt: skip
        self._validation = BatchValidator(
            self._batches, self._lines, self._files,
            lines_limit=limits.lines_limit, line_bytes=settings.server.body_limit_bytes,
        )  # fmt: skip
        self._models: list[str] = []

    async def run(self, stop: asyncio.Event) -> None:
        await self._recover_leases(stop)
        chores = [
            asyncio.create_task(self._every(seconds, work, stop))
            for seconds, work in (
                (FEED_S, self._feed),
                (LOOK_S, self._run_steps),
                (RENEW_S, self._carrier.renew),
                (SWEEP_S, self._sweep),
            )
        ]
        await stop.wait()
        _, late = await asyncio.wait(chores, timeout=PATIENCE_S)
        for chore in late:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        await self._outward.stop()
        try:
            await self._carrier.stop()
        except DBAPIError as error:
            log.warning("batch claims were not released, they expire error=%s", error.orig)
        await self._sender.aclose()
        self._estimates.close()

    async def _recover_leases(self, stop: asyncio.Event) -> None:
        """Release the leases of the last runner once the database is available."""
        while not stop.is_set():
            try:
                await asyncio.to_thread(self._lines.take_over, self._seat)
                await asyncio.to_thread(self._outgoing.take_over, self._seat)
            except DBAPIError as error:
                log.warning("batches wait: cannot reach the ledger error=%s", error.orig)
                await asyncio.sleep(AWAY_S)
            else:
                return

    async def _every(
        self, seconds: float, work: Callable[[], Awaitable[None]], stop: asyncio.Event
    ) -> None:
        while not stop.is_set():
            pause_s = seconds
            try:
                await work()
            except DBAPIError as error:
                log.warning("batches wait: cannot reach the ledger error=%s", error.orig)
                pause_s = AWAY_S
            except Exception:  # such as a full disk: the task must continue
                log.exception("batches failed, retrying")
                pause_s = AWAY_S
            for _ in range(round(pause_s / FEED_S)):
                await asyncio.sleep(FEED_S)
                if stop.is_set() or (seconds == LOOK_S and self._bell.has_rung()):
                    break

    async def _feed(self) -> None:
        if self._models:
            await self._carrier.feed(self._models)

    async def _run_steps(self) -> None:
        """Advance the open batches, by team in turn, up to `STEPS` times."""
        for _ in range(STEPS):
            if not await self._further():
                return

    async def _further(self) -> bool:
        """Advance all open batches by one step; return whether any changed."""
        found = await asyncio.to_thread(self._batches.unfinished)
        now_us = self._clock.wall_us()
        running = {
            finding.id
            for finding in found
            if finding.status == IN_PROGRESS and finding.expires_us > now_us
        }

        def over(claim: LineClaim) -> bool:
            return claim.batch_id not in running

        await self._carrier.drop(over)
        self._models = await asyncio.to_thread(self._lines.models) if running else []
        await self._outward.run_due(found, self._models)
        moved = [await asyncio.to_thread(self._step, record) for record in select_turns(found)]
        self._publish_progress(found)
        return any(moved)

    def _publish_progress(self, found: list[BatchRecord]) -> None:
        write_progress(
            self._run_dir,
            RunnerProgress(
                batches=len(found),
                lines=sum(record.total - record.completed - record.failed for record in found),
                out=len(self._carrier.open_claims),
                ok=self._carrier.tally.ok,
                failed=self._carrier.tally.failed,
                again=self._carrier.tally.again,
            ),
        )

    def _step(self, record: BatchRecord) -> bool:
        """Advance a batch in a thread; skip it if another runner has leased it."""
        if record.status == IN_PROGRESS and not self._is_over(record):
            return False
        if not self._lease_batch(record.id):
            return False
        try:
            if record.status == VALIDATING:
                self._validation.run(
                    record, self._owner, known=self._is_known, hold=self._hold(record.id),
                    now_us=self._clock.wall_us,
                )  # fmt: skip
            elif record.status in (IN_PROGRESS, CANCELLING):
                return self._finishing.start_finalizing(record)
            elif record.status == FINALIZING:
                self._finishing.end(record, self._hold(record.id))
        except LeaseLost:
            log.warning("batch was taken over by another runner batch=%s", record.id)
            return False
        return True

    def _is_over(self, record: BatchRecord) -> bool:
        done = record.completed + record.failed >= record.total
        return done or self._clock.wall_us() >= record.expires_us

    def _lease_batch(self, batch_id: str) -> bool:
        now_us = self._clock.wall_us()
        until_us = now_us + HELD_US
        return self._batches.lease(batch_id, self._owner, now_us=now_us, until_us=until_us)

    def _hold(self, batch_id: str) -> Callable[[], None]:
        def hold() -> None:
            if not self._lease_batch(batch_id):
                raise LeaseLost(batch_id)

        return hold

    def _is_known(self, model: str) -> bool:
        return resolve_model(self._settings, model) is not None

    async def _sweep(self) -> None:
        while await asyncio.to_thread(self._files.sweep, self._clock.wall_us()):
            pass


async def _main(begun: ProcessStart) -> None:
    settings, runtime, sink, given = begun
    engine = make_engine(runtime.ledger_url, keep_open=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    taking = make_batch_providers(settings, runtime, os.environ)
    sink.hide(secret for each in taking.values() for secret in each.secrets)
    await BatchRunner(settings, runtime, engine, given.address, providers=taking).run(stop)
    engine.dispose()


def main(arguments: list[str] | None = None) -> None:
    begun = start_process(
        "gateway.batches.runner", "batches", __doc__, arguments, address=WHERE_WORKERS_LISTEN
    )
    asyncio.run(_main(begun))


if __name__ == "__main__":
    main()
