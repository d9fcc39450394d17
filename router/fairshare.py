"""The order of waiting tenants: shares by weight, and within a tenant the least slack first.

Start-time fair queuing. Each tenant has a clock that moves on by tokens over weight with whatever
it is served, and the tenant whose clock is furthest behind is next. Whoever was silent takes part
from the present on: it gathers no claim while it asks for nothing, and owes nothing either. When
nobody waits, everything is forgotten, so memory is bounded by who waits.
"""

from bisect import insort
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class QueuedRequest(Generic[T]):
    """`tokens` are what it will take of an engine; `due_s` less `needs_s` is its latest start."""

    tenant: str
    tokens: float
    due_s: float
    needs_s: float
    what: T
    number: int = 0

    @property
    def rank(self) -> tuple[float, int]:
        """Least slack first; who came first among equals."""
        return self.due_s - self.needs_s, self.number


@dataclass(slots=True)
class _Tenant(Generic[T]):
    weight: float
    clock: float
    waiting: list[QueuedRequest[T]] = field(default_factory=list)  # by rank


class FairQueue(Generic[T]):
    """`most`: places; `weights`: by tenant, 1 for those not named."""

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
        """Add a waiter. Return False if all places are taken."""
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
        """Remove a waiter that was not served; do nothing if it is not here."""
        tenant = self._tenants.get(waiter.tenant)
        if tenant is None or waiter not in tenant.waiting:
            return
        tenant.waiting.remove(waiter)
        self._length -= 1
        self._forget()

    def serve(self, waiter: QueuedRequest[T]) -> None:
        """Record that a waiter is served: its tenant's clock moves on."""
        tenant = self._tenants[waiter.tenant]
        self._clock = max(self._clock, tenant.clock)
        tenant.clock += waiter.tokens / tenant.weight
        self.remove(waiter)

    def heads(self) -> list[QueuedRequest[T]]:
        """Return each tenant's first, the tenant that is furthest behind first."""
        backlogged = [tenant for tenant in self._tenants.values() if tenant.waiting]
        backlogged.sort(key=lambda tenant: (tenant.clock, tenant.waiting[0].rank))
        return [tenant.waiting[0] for tenant in backlogged]

    def everybody(self) -> list[QueuedRequest[T]]:
        return [waiter for tenant in self._tenants.values() for waiter in tenant.waiting]

    def ahead(self, waiter: QueuedRequest[T]) -> float:
        """Return tokens that will be served before it at most, were nobody else to come."""
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
