"""A runner's dealings with providers' batches: which lines leave, and what is out.

Built only where a provider takes batches, or where some of our batches are still out.
"""

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError

from gateway.batches.carrying import Carrier
from gateway.batches.collecting import Collector
from gateway.batches.courier import Courier
from gateway.batches.onward import ENDPOINTS, Onward, Pace, Queue, surplus
from gateway.clock import Clock
from ledger.batches.lines import LineStore
from ledger.batches.store import IN_PROGRESS, BatchRecord

DECIDE_S = 5.0  # between two looks at lines of models without engines
COUNT_S = 30.0  # and of those with engines: that counts what waits
PAUSE_S = 5.0  # no line that is to leave is claimed for an engine meanwhile
_US = 1e6

log = logging.getLogger("breakeven.batches")


@dataclass(slots=True)
class Outward:
    """`of` says of a model what may take its lines; `carrier` has those of own engines."""

    collector: Collector
    courier: Courier
    lines: LineStore
    of: Callable[[str], Onward]
    carrier: Carrier
    clock: Clock
    hand_on_s: float
    spill_s: float
    _collecting: asyncio.Task[None] | None = None
    _paces: dict[str, Pace] = field(default_factory=dict)
    _decided_s: dict[str, float] = field(default_factory=dict)

    async def look(self, found: Sequence[BatchRecord], models: Sequence[str]) -> None:
        """Everything that is due; `found` are the open batches, `models` those of their lines."""
        known = {one.id: one for one in found}
        await self.courier.step(known, self.collector.collecting)
        now_us = self.clock.wall_us()
        open_ = {
            one.id: one
            for one in found
            if one.status == IN_PROGRESS and one.expires_us > now_us and one.endpoint in ENDPOINTS
        }
        due = [one for one in models if self.of(one).onward and self._is_due(one)]
        if open_ and due and (self._collecting is None or self._collecting.done()):
            self._collecting = asyncio.create_task(self._collect(due, open_))

    async def stop(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.gather(self._collecting, return_exceptions=True)
        await self.courier.stop()

    async def _collect(self, models: Sequence[str], open_: dict[str, BatchRecord]) -> None:
        """Beside all else: thousands of lines take minutes."""
        try:
            for model in models:
                for batch_id, wanted in (await self._surplus(model, open_)).items():
                    await self.collector.collect(open_[batch_id], model, wanted)
        except DBAPIError as error:
            log.warning("lines wait to leave: %s", error.orig)

    async def _surplus(self, model: str, open_: dict[str, BatchRecord]) -> dict[str, int]:
        waiting = Counter(await asyncio.to_thread(self.lines.waiting, model))
        if not self.of(model).own:
            return surplus(self._queues(waiting, open_), 0.0, math.inf)
        now_s = self.clock.now_s()
        pace = self._paces.setdefault(model, Pace())
        pace.saw(self.carrier.done(model), now_s)
        per_s = pace.per_s(now_s)
        if per_s is None:
            return {}
        queues = self._queues(waiting + self.carrier.ready(model), open_)
        if all(one.left_s + self.spill_s > self.hand_on_s for one in queues):
            return {}
        hosts = max(1, await asyncio.to_thread(self.lines.runners, model))
        found = surplus(queues, per_s * hosts, self.hand_on_s - self.spill_s)
        if any(count > waiting[batch_id] for batch_id, count in found.items()):
            await self.carrier.give_back(model, PAUSE_S)
        return found

    def _queues(self, counts: Mapping[str, int], open_: Mapping[str, BatchRecord]) -> list[Queue]:
        return [
            Queue(batch_id, count, self._left_s(open_[batch_id]))
            for batch_id, count in counts.items()
            if batch_id in open_
        ]

    def _left_s(self, record: BatchRecord) -> float:
        return (record.expires_us - self.clock.wall_us()) / _US - self.spill_s

    def _is_due(self, model: str) -> bool:
        now_s, each_s = self.clock.now_s(), COUNT_S if self.of(model).own else DECIDE_S
        if now_s - self._decided_s.get(model, -math.inf) < each_s:
            return False
        self._decided_s[model] = now_s
        return True
