"""Lines on their way out: claimed, planned by a worker, and given to a provider's batch-to-be.

In chunks, each one transaction, so that a runner may die between any two: what has left is out,
what has not is claimed again. What no provider's batch takes stays for the ordinary way, marked.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.batches.handing import Handed
from gateway.batches.sending import NotOnward, Sender
from gateway.clock import Clock
from ledger.batches.lines import Claim, LineStore
from ledger.batches.outgoing import Leaving, OutgoingRecord, OutgoingStore, State
from ledger.batches.store import BatchRecord, BatchStore

CHUNK = 50
PLANNED_AT_ONCE = 4  # a worker has live requests to plan
LINES, BYTES = 5_000, 32 * 1024 * 1024  # of one provider's batch
HELD_US = 300 * 1_000_000
LEASE_US = 60 * 1_000_000
AWAY_US, BROKE_US = 30 * 1_000_000, 60 * 1_000_000


@dataclass(slots=True)
class _Open:
    """One that still takes lines."""

    id: str
    lines: int = 0
    bytes: int = 0

    @property
    def is_full(self) -> bool:
        return self.lines >= LINES or self.bytes >= BYTES


@dataclass(slots=True)
class Collector:
    """One per runner. `collecting` are those that its own hands have open."""

    lines: LineStore
    store: OutgoingStore
    batches: BatchStore
    sender: Sender
    owner: str
    clock: Clock
    new_id: Callable[[str], str]
    collecting: set[str] = field(default_factory=set)

    async def collect(self, record: BatchRecord, model: str, wanted: int) -> int:
        """Give away up to `wanted` lines of a batch and model; how many left."""
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
                left = await self._leave(record, claims, opened)
                gone += left
                if not left:
                    break
        finally:
            for one in opened.values():
                await self._close(one)
        return gone

    async def _mine(self, record: BatchRecord) -> bool:
        """Whether no other host gives lines of this batch away."""
        now_us = self.clock.wall_us()
        until_us = now_us + LEASE_US
        return await asyncio.to_thread(
            self.batches.take, record.id, self.owner, now_us=now_us, until_us=until_us
        )

    async def _leave(
        self, record: BatchRecord, claims: list[Claim], opened: dict[tuple[str, str], _Open]
    ) -> int:
        places = asyncio.Semaphore(PLANNED_AT_ONCE)
        planned = await asyncio.gather(*(self._planned(claim, places) for claim in claims))
        groups: dict[tuple[str, str], list[Leaving]] = {}
        for claim, handed in zip(claims, planned, strict=True):
            if handed is not None:
                place = (handed.provider, handed.upstream_model)
                leaving = Leaving(claim, handed.opened, handed.scopes, handed.body, handed.terms)
                groups.setdefault(place, []).append(leaving)
        gone = 0
        for place, some in groups.items():
            one = opened.get(place) or await self._begin(record, place, opened)
            at_us = self.clock.wall_us()
            left = await asyncio.to_thread(self.store.leave, one.id, some, at_us=at_us)
            for broke in left.broke:
                await self._back(broke.claim, BROKE_US)
            one.lines += len(left.gone)
            one.bytes += sum(len(line.body) for line in left.gone)
            gone += len(left.gone)
            if one.is_full:
                await self._close(opened.pop(place))
        return gone

    async def _planned(self, claim: Claim, places: asyncio.Semaphore) -> Handed | None:
        """`None`: the line is back where it was."""
        async with places:
            try:
                handed = await self.sender.onward(claim)
            except NotOnward:
                await asyncio.to_thread(self.lines.put_back, claim, kept=True)
                return None
        if handed is None:
            await self._back(claim, AWAY_US)
        return handed

    async def _back(self, claim: Claim, after_us: int) -> None:
        next_us = self.clock.wall_us() + after_us
        await asyncio.to_thread(self.lines.put_back, claim, next_us=next_us)

    async def _begin(
        self,
        record: BatchRecord,
        place: tuple[str, str],
        opened: dict[tuple[str, str], _Open],
    ) -> _Open:
        now_us = self.clock.wall_us()
        one = opened[place] = _Open(self.new_id("out_"))
        self.collecting.add(one.id)
        made = OutgoingRecord(
            one.id, record.id, *place, record.endpoint, State.COLLECTING, created_us=now_us
        )
        await asyncio.to_thread(self.store.begin, made, until_us=now_us + HELD_US)
        return one

    async def _close(self, one: _Open) -> None:
        state = State.READY if one.lines else State.DONE
        await asyncio.to_thread(self.store.move, one.id, State.COLLECTING, state=state)
        self.collecting.discard(one.id)
