"""Order of waiting tenants: weighted shares, and least slack first within a tenant.

The algorithm is start-time fair queuing. Each tenant has a clock that advances by tokens over
weight with each served request; the tenant whose clock is furthest behind is next. A tenant that
returns after a pause starts at the present clock: it gains no credit while idle and has no debt.
When the queue is empty, all tenants are forgotten, so memory is bounded by the queue length.
"""

from bisect import insort
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class QueuedRequest(Generic[T]):
    """A waiting request. `tokens` is its demand; `due_s` minus `needs_s` is its latest start."""

    tenant: str
    tokens: float
    due_s: float
    needs_s: float
    what: T
    number: int = 0

    @property
    def rank(self) -> tuple[float, int]:
        """Return the sort key: least slack first, then order of arrival."""
        return self.due_s - self.needs_s, self.number


@dataclass(slots=True)
class _Tenant(Generic[T]):
    weight: float
    clock: float
    waiting: list[QueuedRequest[T]] = field(default_factory=list)  # by rank


class FairQueue(Generic[T]):
    """Weighted fair queue of at most `most` requests; `weights` by tenant, 1 where not named."""

    def __init__(self, most: int, weights: dict[str, float]) -> None:
        self._most = most
        self._weights = weights
        self._tenants: dict[str, _Tenant[T]] = {}
        self._clock = 0.0
        self._numbers = count()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, waiter: QueuedRequest[T]) -> bool:
        """Add a waiter. Return false if the queue is full."""
        if self._length >= self._most:
            return False
        tenant = self._tenants.get(waiter.tenant)
        if tenant is None:
            weight = self._weights.get(waiter.tenant, 1.0)
            tenant = self._tenants[waiter.tenant] = _Tenant(weight, self._clock)
        elif not tenant.waiting:
            tenant.clock = max(tenant.clock, self._clock)
        waiter.number = next(self._numbers)
        insort(tenant.waiting, waiter, key=_rank)
        self._length += 1
        return True

    def remove(self, waiter: QueuedRequest[T]) -> None:
        """Remove a waiter that was not served; do nothing if it is not in the queue."""
        tenant = self._tenants.get(waiter.tenant)
        if tenant is None or waiter not in tenant.waiting:
            return
        tenant.waiting.remove(waiter)
        self._length -= 1
        self._forget()

    def serve(self, waiter: QueuedRequest[T]) -> None:
        """Remove a waiter that is served and advance its tenant's clock."""
        tenant = self._tenants[waiter.tenant]
        self._clock = max(self._clock, tenant.clock)
        tenant.clock += waiter.tokens / tenant.weight
        self.remove(waiter)

    def heads(self) -> list[QueuedRequest[T]]:
        """Return the first waiter of each tenant, starting with the tenant furthest behind."""
        backlogged = [tenant for tenant in self._tenants.values() if tenant.waiting]
        backlogged.sort(key=lambda tenant: (tenant.clock, tenant.waiting[0].rank))
        return [tenant.waiting[0] for tenant in backlogged]

    def everybody(self) -> list[QueuedRequest[T]]:
        return [waiter for tenant in self._tenants.values() for waiter in tenant.waiting]

    def ahead(self, waiter: QueuedRequest[T]) -> float:
        """Return the maximum tokens served before this waiter if no further request arrives."""
        tenant = self._tenants[waiter.tenant]
        own = sum(request.tokens for request in tenant.waiting if request.rank < waiter.rank)
        others = 0.0
        for other in self._tenants.values():
            if other is not tenant:
                queued = sum(request.tokens for request in other.waiting)
                behind = max(0.0, tenant.clock - other.clock) * other.weight
                others += min(queued, behind + own * other.weight / tenant.weight)
        return own + others

    def _forget(self) -> None:
        if not self._length:
            self._tenants.clear()
            self._clock = 0.0
            return
        done = [
            name
            for name, tenant in self._tenants.items()
            if not tenant.waiting and tenant.clock <= self._clock
        ]
        for name in done:
            del self._tenants[name]


def _rank(waiter: QueuedRequest[T]) -> tuple[float, int]:
    return waiter.rank
