"""What own GPUs cost over a span: closed hours from the books, and what runs since, by contract.

Closed hours are final: used + idle + unavailable = bill. The open rest is computed from the
contract at the reader's clock: used is what attempts were charged provisionally, the remainder is
idle until the close knows better. A pool without a rate has no bill, only hours.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from ledger import contracts as terms
from ledger.economics import ops_cost, weeks_of
from ledger.queries_fleet import Contract, HourCell
from ledger.queries_scope import HOUR_US, Scope

_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class PoolBill:
    """One pool's bill over a span. `open_from_us` is where the closed hours end."""

    pool: str
    gpu_type: str
    gpus: int
    replicas: int
    pusd_per_hour: int | None
    source: str | None
    simulated: bool
    bill_pusd: int
    used_pusd: int
    idle_pusd: int
    unavailable_pusd: int
    ops_pusd: Fraction
    hours: Fraction
    available_share: Fraction  # of the closed hours; 1 without any
    open_from_us: int

    @property
    def rated(self) -> bool:
        return self.pusd_per_hour is not None

    @property
    def gpu_hours(self) -> Fraction:
        return self.gpus * self.hours


def open_from(
    contract: Contract, closed: Iterable[HourCell], scope: Scope, *, first_us: int | None
) -> int:
    """Where the open rest of a pool's bill begins: after its last closed hour.

    With no closed hour in the span it begins with the pool's life in these books: its contract
    or the first attempt, whichever is earlier, and never before the contract's first day.
    """
    last = max((cell.last_hour_us for cell in closed if cell.pool == contract.pool), default=None)
    if last is not None:
        return last + HOUR_US
    begin = contract.recorded_us if first_us is None else min(contract.recorded_us, first_us)
    return max(scope.start_us, begin, _midnight_us(contract.since) or 0)


def pool_bill(
    contract: Contract,
    closed: Sequence[HourCell],
    scope: Scope,
    *,
    open_from_us: int,
    provisional_pusd: int,
) -> PoolBill:
    """Closed hours of the span plus the open rest up to the span's end."""
    mine = [cell for cell in closed if cell.pool == contract.pool]
    bill, used, idle, unavailable = (
        sum(getattr(cell, name) for cell in mine)
        for name in ("bill_pusd", "used_pusd", "idle_pusd", "unavailable_pusd")
    )
    live = live_pusd(contract, open_from_us, scope.end_us)
    live_used = min(live, provisional_pusd)
    until = _midnight_us(contract.until, days=1)
    end_us = scope.end_us if until is None else min(scope.end_us, until)
    replica_us = sum(cell.replica_us for cell in mine)
    down_us = sum(cell.unavailable_us for cell in mine)
    open_us = max(0, end_us - open_from_us)
    hours = sum(cell.hours for cell in mine) + Fraction(open_us, HOUR_US)
    return PoolBill(
        pool=contract.pool,
        gpu_type=contract.gpu_type,
        gpus=contract.gpus,
        replicas=contract.replicas,
        pusd_per_hour=contract.pusd_per_hour,
        source=contract.source,
        simulated=contract.simulated,
        bill_pusd=bill + live,
        used_pusd=used + live_used,
        idle_pusd=idle + live - live_used,
        unavailable_pusd=unavailable,
        ops_pusd=_ops_pusd(contract, hours),
        hours=hours,
        available_share=1 - Fraction(down_us, replica_us) if replica_us else Fraction(1),
        open_from_us=open_from_us,
    )


def live_pusd(contract: Contract, from_us: int, until_us: int) -> int:
    """The open rest at the contract's rate; a machine on demand is taken to be running."""
    if contract.pusd_per_hour is None or until_us <= from_us:
        return 0
    term = terms.GpuContract(
        billing="reserved",
        pusd_per_hour=contract.pusd_per_hour,
        gpus=contract.gpus,
        since_us=_midnight_us(contract.since),
        until_us=_midnight_us(contract.until, days=1),
    )
    return terms.gpu_bill_pusd(term, from_us, until_us)


def _ops_pusd(contract: Contract, hours: Fraction) -> Fraction:
    return Fraction(
        ops_cost(
            hours_per_week=Fraction(contract.ops_seconds_per_week, _SECONDS_PER_HOUR),
            pusd_per_hour=contract.ops_pusd_per_hour,
            weeks=weeks_of(hours),
        )
    )


def _midnight_us(day: date | None, *, days: int = 0) -> int | None:
    if day is None:
        return None
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=days)
    return int(moment.timestamp()) * 10**6
