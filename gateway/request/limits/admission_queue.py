"""Admission queue of policies with `queue`: bounded, fair between tenants, by deadline.

There is one queue for each set of pools in each worker. The first request plans again; if there is
no capacity for it, the next tenant's first request does. The others sleep. No request waits beyond
its deadline, and one that cannot be served by then at the queue's pace is refused at once. Each
worker keeps the shares on its own. The kernel spreads connections over the workers, so a host's
shares are close to them. A tenant with all connections at one worker gets its share of that worker.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Literal

from gateway.request.plan import RoutingPlan
from gateway.request.request_counters import QueueCounters
from router.fairshare import FairQueue, QueuedRequest

POLL_S = 0.02
TENANTS = 4  # that may plan in turn when there is no capacity for the one before
PACE_S = 5.0  # window of recently served requests
PACE_LEAST = 8  # minimum for an estimate
PACE_MOST = 4096
RETRY_S = 1.0

Ended = Literal["served", "late", "refused", "gone", "drained"]
Ticket = QueuedRequest[asyncio.Event]


class QueueFull(Exception):
    """The error for a queue without a place or a chance; retry after `wait_s` seconds."""

    def __init__(self, wait_s: float, *, hopeless: bool) -> None:
        super().__init__(wait_s)
        self.wait_s = wait_s
        self.hopeless = hopeless


class PoolQueue:
    """The queue of one set of pools in one worker."""

    def __init__(self, most: int, weights: dict[str, float]) -> None:
        self.line: FairQueue[asyncio.Event] = FairQueue(most, weights)
        self._served: deque[tuple[float, float]] = deque(maxlen=PACE_MOST)

    def pace(self, now_s: float) -> float | None:
        """Return the tokens a second served in the last `PACE_S`; `None` if too few were."""
        while self._served and self._served[0][0] < now_s - PACE_S:
            self._served.popleft()
        if len(self._served) < PACE_LEAST:
            return None
        span_s = now_s - self._served[0][0]
        return sum(tokens for _, tokens in self._served) / span_s if span_s > 0.0 else None

    def serve(self, ticket: Ticket, now_s: float) -> None:
        self.line.serve(ticket)
        self._served.append((now_s, ticket.tokens))

    def is_next(self, ticket: Ticket) -> bool:
        heads = self.line.heads()
        return bool(heads) and heads[0] is ticket

    def wake_next(self) -> None:
        for head in self.line.heads()[:1]:
            head.what.set()

    def wake_after(self, ticket: Ticket) -> None:
        """Give the turn to the next tenant, because this request does not fit."""
        heads = self.line.heads()[:TENANTS]
        for place, head in enumerate(heads[:-1]):
            if head is ticket:
                heads[place + 1].what.set()


class AdmissionQueue:
    """The queues of one worker. `most` is the places in each; `weights` are by team."""

    def __init__(
        self, most: int, weights: Mapping[str, float], metrics: QueueCounters,
        now_s: Callable[[], float],
    ) -> None:  # fmt: skip
        self._most = most
        self._weights = dict(weights)
        self._metrics = metrics
        self._now_s = now_s
        self._queues: dict[tuple[str, ...], PoolQueue] = {}
        self._draining = False

    def has_line(self, plan: RoutingPlan) -> bool:
        """Return whether requests wait for the same pools, so that a new one waits behind them."""
        queue = self._queues.get(_pools(plan))
        return queue is not None and len(queue.line) > 0

    def drain(self) -> None:
        """End all waits, and accept no new ones."""
        self._draining = True
        for queue in self._queues.values():
            for ticket in queue.line.everybody():
                ticket.what.set()

    async def wait(
        self, first: RoutingPlan, due_s: float, again: Callable[[], RoutingPlan]
    ) -> RoutingPlan:
        """Return a plan with capacity, or the last without; `due_s` is monotonic time.

        Raises `QueueFull` if there is no place, or no chance before `due_s`.
        """
        place, since_s = _pools(first), self._now_s()
        queue = self._queues.setdefault(place, PoolQueue(self._most, self._weights))
        best = first.best_own
        needs_ms = 0.0 if best is None or best.ttft_ms is None else best.ttft_ms
        tokens = first.request.prompt_tokens + first.request.n * first.request.output.mean
        ticket: Ticket = QueuedRequest(
            first.identity.team_id, tokens, due_s, needs_ms / 1e3, asyncio.Event()
        )
        ended: Ended = "gone"
        try:
            self._admit(queue, ticket, since_s)
            ended, plan = await self._await_turn(queue, ticket, first, again)
        except QueueFull:
            ended = "refused"
            raise
        finally:
            queue.line.remove(ticket)
            queue.wake_next()
            if not len(queue.line) and not queue.pace(self._now_s()):
                self._queues.pop(place, None)
            self._metrics.observe_queue_wait(ended, self._now_s() - since_s)
            self._metrics.set_queue_length(
                sum(len(each_queue.line) for each_queue in self._queues.values())
            )
        if ended == "drained" or (ended == "late" and plan.decision.order):
            raise QueueFull(RETRY_S, hopeless=ended == "late")  # earlier requests wait
        return plan

    def _admit(self, queue: PoolQueue, ticket: Ticket, now_s: float) -> None:
        if self._draining or not queue.line.add(ticket):
            raise QueueFull(RETRY_S, hopeless=False)
        pace = queue.pace(now_s)
        if pace:
            late_s = queue.line.ahead(ticket) / pace - (ticket.due_s - now_s)
            if late_s > 0.0:
                raise QueueFull(late_s, hopeless=True)
        self._metrics.set_queue_length(
            sum(len(each_queue.line) for each_queue in self._queues.values())
        )

    async def _await_turn(
        self, queue: PoolQueue, ticket: Ticket, plan: RoutingPlan, again: Callable[[], RoutingPlan]
    ) -> tuple[Ended, RoutingPlan]:
        asks = queue.is_next(ticket)
        while not self._draining:
            if asks:
                plan = again()
                if plan.decision.order:
                    queue.serve(ticket, self._now_s())
                    return "served", plan
                queue.wake_after(ticket)
            left_s = ticket.due_s - self._now_s()
            if left_s <= 0.0:
                return "late", plan
            ticket.what.clear()
            pause_s = min(left_s, POLL_S) if queue.is_next(ticket) else left_s
            try:
                async with asyncio.timeout(pause_s):
                    await ticket.what.wait()
                asks = True  # its turn came, or was passed on
            except TimeoutError:
                asks = queue.is_next(ticket)
        return "drained", plan


def _pools(plan: RoutingPlan) -> tuple[str, ...]:
    return tuple(sorted({target.pool for target in plan.route.targets if target.pool is not None}))
