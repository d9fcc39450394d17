"""Providers' batches of a runner: selects the lines that leave and follows what was sent.

It exists only if a provider takes batches, or some of our batches are still at one. Lines leave in
chunks of one transaction each, so a runner may crash between any two: chunks that left are sent,
other lines are claimed again.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError

from gateway.batches.batch_spill_policy import (
    ENDPOINTS,
    BatchBacklog,
    BatchSpillPolicy,
    CompletionRate,
    surplus_of,
)
from gateway.batches.line_executor import LineExecutor
from gateway.batches.line_sender import LineSender, SpillRefused
from gateway.batches.provider_batch_sync import ProviderBatchSync
from gateway.batches.provider_line_planner import ProviderLine
from gateway.clock import Clock
from ledger.batches.lines import LineClaim, LineStore
from ledger.batches.outgoing import LeavingLine, OutgoingRecord, OutgoingStore, ProviderBatchState
from ledger.batches.store import IN_PROGRESS, BatchRecord, BatchStore

CHUNK = 50
PLANNED_AT_ONCE = 4  # low, because the worker also plans live requests
LINES, BYTES = 5_000, 32 * 1024 * 1024  # limits of one provider's batch
HELD_US = 300 * 1_000_000
LEASE_US = 60 * 1_000_000
AWAY_US, BROKE_US = 30 * 1_000_000, 60 * 1_000_000


@dataclass(slots=True)
class _Open:
    """A provider's batch that still takes lines."""

    id: str
    lines: int = 0
    bytes: int = 0

    @property
    def is_full(self) -> bool:
        return self.lines >= LINES or self.bytes >= BYTES


@dataclass(slots=True)
class ProviderBatchBuilder:
    """Builder of providers' batches: claims lines, has a worker plan them, and adds them.

    There is one per runner. `collecting` holds the ids of its open batches. Lines that no
    provider's batch takes are marked and stay for own engines and APIs.
    """

    lines: LineStore
    store: OutgoingStore
    batches: BatchStore
    sender: LineSender
    owner: str
    clock: Clock
    new_id: Callable[[str], str]
    collecting: set[str] = field(default_factory=set)

    async def collect(self, record: BatchRecord, model: str, wanted: int) -> int:
        """Move up to `wanted` lines of a batch and model; return how many were moved."""
        opened: dict[tuple[str, str], _Open] = {}
        gone = 0
        try:
            while wanted > 0 and await self._mine(record):
                now_us = self.clock.wall_us()
                claims = await asyncio.to_thread(
                    self.lines.claim_onward, record.id, model, min(wanted, CHUNK),
                    now_us=now_us, until_us=now_us + LEASE_US,
                )  # fmt: skip
                if not claims:
                    break
                wanted -= len(claims)
                left = await self._send_lines(record, claims, opened)
                gone += left
                if not left:
                    break
        finally:
            for opening in opened.values():
                await self._close(opening)
        return gone

    async def _mine(self, record: BatchRecord) -> bool:
        """Lease the batch; return whether no other host moves lines of it."""
        now_us = self.clock.wall_us()
        until_us = now_us + LEASE_US
        return await asyncio.to_thread(
            self.batches.lease, record.id, self.owner, now_us=now_us, until_us=until_us
        )

    async def _send_lines(
        self, record: BatchRecord, claims: list[LineClaim], opened: dict[tuple[str, str], _Open]
    ) -> int:
        places = asyncio.Semaphore(PLANNED_AT_ONCE)
        planned = await asyncio.gather(*(self._plan_line(claim, places) for claim in claims))
        groups: dict[tuple[str, str], list[LeavingLine]] = {}
        for claim, handed in zip(claims, planned, strict=True):
            if handed is not None:
                place = (handed.provider, handed.upstream_model)
                leaving = LeavingLine(
                    claim, handed.opened, handed.scopes, handed.body, handed.terms
                )
                groups.setdefault(place, []).append(leaving)
        gone = 0
        for place, some in groups.items():
            open_ = opened.get(place) or await self._start_batch(record, place, opened)
            at_us = self.clock.wall_us()
            left = await asyncio.to_thread(self.store.send_lines, open_.id, some, at_us=at_us)
            for broke in left.broke:
                await self._back(broke.claim, BROKE_US)
            open_.lines += len(left.gone)
            open_.bytes += sum(len(line.body) for line in left.gone)
            gone += len(left.gone)
            if open_.is_full:
                await self._close(opened.pop(place))
        return gone

    async def _plan_line(self, claim: LineClaim, places: asyncio.Semaphore) -> ProviderLine | None:
        """Plan a line for a provider; `None` if it was put back."""
        async with places:
            try:
                handed = await self.sender.plan_at_provider(claim)
            except SpillRefused:
                await asyncio.to_thread(self.lines.put_back, claim, kept=True)
                return None
        if handed is None:
            await self._back(claim, AWAY_US)
        return handed

    async def _back(self, claim: LineClaim, after_us: int) -> None:
        next_us = self.clock.wall_us() + after_us
        await asyncio.to_thread(self.lines.put_back, claim, next_us=next_us)

    async def _start_batch(
        self,
        record: BatchRecord,
        place: tuple[str, str],
        opened: dict[tuple[str, str], _Open],
    ) -> _Open:
        now_us = self.clock.wall_us()
        open_ = opened[place] = _Open(self.new_id("out_"))
        self.collecting.add(open_.id)
        made = OutgoingRecord(
            open_.id,
            record.id,
            *place,
            record.endpoint,
            ProviderBatchState.COLLECTING,
            created_us=now_us,
        )
        await asyncio.to_thread(self.store.create, made, until_us=now_us + HELD_US)
        return open_

    async def _close(self, open_: _Open) -> None:
        state = ProviderBatchState.READY if open_.lines else ProviderBatchState.DONE
        await asyncio.to_thread(
            self.store.move, open_.id, ProviderBatchState.COLLECTING, state=state
        )
        self.collecting.discard(open_.id)


DECIDE_S = 5.0  # interval for models without own engines
COUNT_S = 30.0  # interval for models with own engines, which counts waiting lines
PAUSE_S = 5.0  # pause of claims for engines, so that the lines can leave
_US = 1e6

log = logging.getLogger("breakeven.batches")


@dataclass(slots=True)
class ProviderBatchLoop:
    """Loop over providers' batches.

    `of` returns a model's spill policy. `carrier` executes the lines of own engines.
    """

    collector: ProviderBatchBuilder
    courier: ProviderBatchSync
    lines: LineStore
    of: Callable[[str], BatchSpillPolicy]
    carrier: LineExecutor
    clock: Clock
    hand_on_s: float
    spill_s: float
    _collecting: asyncio.Task[None] | None = None
    _paces: dict[str, CompletionRate] = field(default_factory=dict)
    _decided_s: dict[str, float] = field(default_factory=dict)

    async def run_due(self, found: Sequence[BatchRecord], models: Sequence[str]) -> None:
        """Do what is due; `found` are the open batches, `models` the models of their lines."""
        known = {record.id: record for record in found}
        await self.courier.step(known, self.collector.collecting)
        now_us = self.clock.wall_us()
        open_ = {
            record.id: record
            for record in found
            if record.status == IN_PROGRESS
            and record.expires_us > now_us
            and record.endpoint in ENDPOINTS
        }
        due = [model for model in models if self.of(model).onward and self._is_due(model)]
        if open_ and due and (self._collecting is None or self._collecting.done()):
            self._collecting = asyncio.create_task(self._collect(due, open_))

    async def stop(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.gather(self._collecting, return_exceptions=True)
        await self.courier.stop()

    async def _collect(self, models: Sequence[str], open_: dict[str, BatchRecord]) -> None:
        """Collect lines in a task of its own, because thousands of lines take minutes."""
        try:
            for model in models:
                for batch_id, wanted in (await self._surplus(model, open_)).items():
                    await self.collector.collect(open_[batch_id], model, wanted)
        except DBAPIError as error:
            log.warning("batch lines were not sent to a provider, retrying error=%s", error.orig)

    async def _surplus(self, model: str, open_: dict[str, BatchRecord]) -> dict[str, int]:
        waiting = Counter(await asyncio.to_thread(self.lines.waiting_counts, model))
        if not self.of(model).own:
            return surplus_of(self._queues(waiting, open_), 0.0, math.inf)
        now_s = self.clock.now_s()
        pace = self._paces.setdefault(model, CompletionRate())
        pace.observe(self.carrier.answered_count(model), now_s)
        per_s = pace.per_s(now_s)
        if per_s is None:
            return {}
        queues = self._queues(waiting + self.carrier.ready(model), open_)
        if all(queue.left_s + self.spill_s > self.hand_on_s for queue in queues):
            return {}
        hosts = max(1, await asyncio.to_thread(self.lines.runners, model))
        found = surplus_of(queues, per_s * hosts, self.hand_on_s - self.spill_s)
        if any(count > waiting[batch_id] for batch_id, count in found.items()):
            await self.carrier.release_ready(model, PAUSE_S)
        return found

    def _queues(
        self, counts: Mapping[str, int], open_: Mapping[str, BatchRecord]
    ) -> list[BatchBacklog]:
        return [
            BatchBacklog(batch_id, count, self._remaining_s(open_[batch_id]))
            for batch_id, count in counts.items()
            if batch_id in open_
        ]

    def _remaining_s(self, record: BatchRecord) -> float:
        return (record.expires_us - self.clock.wall_us()) / _US - self.spill_s

    def _is_due(self, model: str) -> bool:
        now_s, each_s = self.clock.now_s(), COUNT_S if self.of(model).own else DECIDE_S
        if now_s - self._decided_s.get(model, -math.inf) < each_s:
            return False
        self._decided_s[model] = now_s
        return True
