"""Executor of claimed lines: sends them at each model's pace and stores the outcomes.

There is one per runner. It tracks all claimed lines: it renews their leases, ends the lines of
cancelled batches, and keeps an answer until the database can store it.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlalchemy.exc import DBAPIError

from gateway.batches.line_outcome import LineDone, LineRetry, judge_outcome
from gateway.batches.line_sender import LineSender
from gateway.batches.pace import LineConcurrency
from gateway.clock import Clock
from ledger.batches.lines import LineClaim, LineStore

LEASE_US = 30 * 1_000_000
RETRY_S = 1.0  # while the database is unavailable
DRY_S = 0.5  # pause after an empty claim, because claiming takes the database's lock

log = logging.getLogger("breakeven.batches")


@dataclass(slots=True)
class _Lane:
    """Lines of one model: waiting (`ready`) and sent (`out`)."""

    pace: LineConcurrency
    dry_until_s: float = 0.0  # end of the pause after an empty claim
    done: int = 0
    ready: deque[LineClaim] = field(default_factory=deque)
    out: dict[LineClaim, asyncio.Task[None]] = field(default_factory=dict)


@dataclass(slots=True)
class RunnerCounts:
    """Counts of lines since this runner started."""

    ok: int = 0
    failed: int = 0
    again: int = 0


class LineExecutor:
    """Executor of a runner's lines.

    `spill_us` is the time before the end of a batch in which its lines may go to APIs. For models
    for which `leaves` is true, only lines are claimed that may spill by then or that no provider's
    batch takes.
    """

    def __init__(
        self,
        lines: LineStore,
        sender: LineSender,
        clock: Clock,
        *,
        most: int,
        spill_us: int,
        leaves: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self.tally = RunnerCounts()
        self._lines = lines
        self._sender = sender
        self._clock = clock
        self._most = most
        self._spill_us = spill_us
        self._leaves = leaves
        self._lanes: dict[str, _Lane] = {}

    @property
    def open_claims(self) -> list[LineClaim]:
        """Return all lines that this runner has claimed."""
        return [claim for lane in self._lanes.values() for claim in (*lane.ready, *lane.out)]

    def answered_count(self, model: str) -> int:
        """Return the number of lines of a model that were answered here."""
        lane = self._lanes.get(model)
        return 0 if lane is None else lane.done

    def ready(self, model: str) -> Counter[str]:
        """Return the number of claimed lines that wait for an idle engine, by batch."""
        lane = self._lanes.get(model)
        return Counter(claim.batch_id for claim in lane.ready) if lane else Counter()

    async def release_ready(self, model: str, pause_s: float) -> None:
        """Release a model's waiting lines, and claim none for `pause_s`."""
        lane = self._lanes[model]
        lane.dry_until_s = self._clock.now_s() + pause_s
        while lane.ready:
            await asyncio.to_thread(self._lines.put_back, lane.ready.popleft())

    async def feed(self, models: list[str]) -> None:
        """Claim lines up to the concurrency limits and send them."""
        for model in models:
            lane = self._lanes.setdefault(model, _Lane(LineConcurrency(self._most)))
            now_s = self._clock.now_s()
            out = sum(len(each_lane.out) for each_lane in self._lanes.values())
            room = min(lane.pace.additional_lines(len(lane.out), now_s), self._most - out)
            wanted = room - len(lane.ready)
            if wanted > 0 and now_s >= lane.dry_until_s:
                now_us = self._clock.wall_us()
                claims = await asyncio.to_thread(
                    self._lines.claim, model, wanted, now_us=now_us, until_us=now_us + LEASE_US,
                    ends_by_us=now_us + self._spill_us if self._leaves(model) else None,
                )  # fmt: skip
                lane.ready += claims
                if len(claims) < wanted:
                    lane.dry_until_s = now_s + DRY_S
            for _ in range(min(room, len(lane.ready))):
                claim = lane.ready.popleft()
                lane.out[claim] = asyncio.create_task(self._carry(lane, claim))

    async def renew(self) -> None:
        """Renew the leases of all claims; drop the lines whose lease was lost."""
        claims = self.open_claims
        if claims:
            until_us = self._clock.wall_us() + LEASE_US
            lost = await asyncio.to_thread(self._lines.renew, claims, until_us=until_us)
            still = set(self.open_claims)  # without lines that were answered during the call
            if gone := still.intersection(lost):
                log.warning(
                    "batch lines were taken over by another runner: this one was stalled lines=%d",
                    len(gone),
                )
                await self.drop(gone.__contains__)

    async def drop(self, over: Callable[[LineClaim], bool]) -> None:
        """Cancel the lines for which `over` is true, and release their claims."""
        dropped: list[LineClaim] = []
        for lane in self._lanes.values():
            kept = [claim for claim in lane.ready if not over(claim)]
            dropped += [claim for claim in lane.ready if over(claim)]
            lane.ready = deque(kept)
            ending = [claim for claim in lane.out if over(claim)]
            for claim in ending:
                lane.out[claim].cancel()
            await asyncio.gather(
                *(lane.out[each_claim] for each_claim in ending), return_exceptions=True
            )
            dropped += ending
        for claim in dropped:
            await asyncio.to_thread(self._lines.put_back, claim)

    async def stop(self) -> None:
        """Cancel all lines, which ends them at the workers, and release the claims."""
        tasks = [task for lane in self._lanes.values() for task in lane.out.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._lines.release)

    async def _carry(self, lane: _Lane, claim: LineClaim) -> None:
        try:
            spill = self._clock.wall_us() >= claim.expires_us - self._spill_us
            verdict = judge_outcome(claim, await self._sender.send(claim, spill=spill))
            if isinstance(verdict, LineDone):
                await self._store_answer(claim, verdict)
                lane.done += 1
            elif isinstance(verdict, LineRetry):
                lane.pace.record_refusal(len(lane.out), self._clock.now_s())
                self.tally.again += 1
                next_us = self._clock.wall_us() + round(verdict.after_s * 1e6)
                await asyncio.to_thread(
                    self._lines.put_back, claim, next_us=next_us, failed=verdict.failed
                )
            else:
                lane.pace.record_refusal(len(lane.out), self._clock.now_s())
                lane.ready.appendleft(claim)
        except DBAPIError as error:  # the lease expires, and the line is retried
            log.warning(
                "batch line was not returned to the queue request=%s error=%s",
                claim.request_id,
                error.orig,
            )
        finally:
            lane.out.pop(claim, None)

    async def _store_answer(self, claim: LineClaim, done: LineDone) -> None:
        """Retry until the paid answer is stored, or another runner's answer counts."""
        while True:
            try:
                stored = await asyncio.to_thread(self._lines.answer, claim, done.line, ok=done.ok)
            except DBAPIError as error:
                log.warning(
                    "batch answer was not stored, retrying request=%s error=%s",
                    claim.request_id,
                    error.orig,
                )
                await asyncio.sleep(RETRY_S)
                continue
            if stored:
                self.tally.ok += done.ok
                self.tally.failed += not done.ok
            return
