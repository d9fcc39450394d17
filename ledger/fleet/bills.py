"""Bills of own GPUs over a span: closed hours, and the open hours by contract.

Closed hours are final: used + idle + unavailable = bill. Open hours are computed from the contract
at the reader's time: used is the provisional charge of attempts, the rest is idle until the close.
A pool without a rate has hours but no bill. Ops are charged by day, at the terms in force when the
day began: an entry today changes no past day.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import ops_cost, weeks_of
from ledger.fleet.accrual import midnight_us
from ledger.fleet.pool_records import ContractVersion, HourCell
from ledger.fleet.running import OpenHours
from ledger.spans import DAY_US, HOUR_US, Scope

PPM = 1_000_000
_SECONDS_PER_HOUR = 3600
_NONE = Fraction(0)


@dataclass(frozen=True, slots=True)
class PoolBill:
    """One pool's bill over a span."""

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
    available_share: Fraction  # of the hours that were paid for; 1 without any
    machine: str | None = None  # shared with other pools; `share` is this pool's part of it
    share: Fraction = Fraction(1)
    billed_share: Fraction = Fraction(1)  # of the hours; less for GPUs on demand that rest

    @property
    def is_rated(self) -> bool:
        return self.pusd_per_hour is not None

    @property
    def gpu_hours(self) -> Fraction:
        """Return the GPU hours that were billed."""
        return self.gpus * self.share * self.hours * self.billed_share


@dataclass(frozen=True, slots=True)
class BilledOps:
    """Ops of one pool over the billed hours, which end at `end_us`. Exact for any part."""

    versions: Sequence[ContractVersion]
    start_us: int
    end_us: int

    def until(self, at_us: int) -> Fraction:
        """Return ops in pico-USD from the first billed hour up to a time."""
        end_us = min(at_us, self.end_us)
        return ops_pusd(self.versions, self.start_us, end_us) if end_us > self.start_us else _NONE

    def between(self, start_us: int, end_us: int) -> int:
        """Return ops of a part in whole pico-USD. Adjacent parts add up to the whole."""
        return round(self.until(end_us)) - round(self.until(start_us))

    def of_days(self, start_us: int, end_us: int) -> int:
        """Return ops between two midnights: as in bills, an hour is of the day in which it begins.

        In zones that are offset by half an hour, midnight cuts an hour.
        """
        first_us = start_us if start_us <= self.start_us else _next_hour_us(start_us)
        return self.between(first_us, _next_hour_us(end_us))


def billed_ops(
    contract: ContractVersion,
    closed: Sequence[HourCell],
    scope: Scope,
    rest: OpenHours,
    versions: Sequence[ContractVersion] = (),
) -> BilledOps:
    """Return the ops of the hours that `pool_bill` bills with the same arguments."""
    until = midnight_us(contract.until, days=1)
    mine = [cell for cell in closed if cell.pool == contract.pool]
    end_us = scope.end_us
    if mine:  # a closed hour that the scope's end cuts is billed whole
        end_us = max(end_us, min(rest.from_us, _next_hour_us(end_us)))
    end_us = end_us if until is None else min(end_us, until)
    span_us = sum(cell.span_us for cell in mine)
    span_us += max(0, end_us - rest.from_us)
    return BilledOps(versions or [contract], end_us - span_us, end_us)


def pool_bill(
    contract: ContractVersion,
    closed: Sequence[HourCell],
    scope: Scope,
    rest: OpenHours,
    versions: Sequence[ContractVersion] = (),
) -> PoolBill:
    """Return the bill of the span: closed hours plus open hours up to the span's end.

    `versions` are all versions of the pool's contract, oldest first. Without them, `contract`
    applies to the whole span.
    """
    mine = [cell for cell in closed if cell.pool == contract.pool]
    ops = billed_ops(contract, mine, scope, rest, versions)
    span_us = ops.end_us - ops.start_us
    paid_us = sum(cell.replica_us for cell in mine) + rest.paid_us
    down_us = sum(cell.unavailable_us for cell in mine) + rest.unavailable_us
    hours = Fraction(span_us, HOUR_US)
    return PoolBill(
        pool=contract.pool,
        gpu_type=contract.gpu_type,
        gpus=contract.gpus,
        replicas=contract.replicas,
        pusd_per_hour=contract.pusd_per_hour,
        source=contract.source,
        simulated=contract.simulated,
        bill_pusd=sum(cell.bill_pusd for cell in mine) + rest.bill_pusd,
        used_pusd=sum(cell.used_pusd for cell in mine) + sum(rest.used_pusd.values()),
        idle_pusd=sum(cell.idle_pusd for cell in mine) + rest.idle_pusd,
        unavailable_pusd=sum(cell.unavailable_pusd for cell in mine) + rest.unavailable_pusd,
        ops_pusd=ops.until(ops.end_us),
        hours=hours,
        available_share=1 - Fraction(down_us, paid_us) if paid_us else Fraction(1),
        machine=contract.machine,
        share=Fraction(contract.share_ppm, PPM),
    )


def ops_pusd(versions: Sequence[ContractVersion], start_us: int, end_us: int) -> Fraction:
    """Return ops of a span in pico-USD. Each UTC day has the terms in force when it began.

    Days before the first version have its terms. Adjacent spans add up exactly.
    """
    changes = [(_first_day_us(version.recorded_us), version) for version in versions[1:]]
    total, at_us, current = Fraction(0), start_us, versions[0]
    for day_us, version in changes:
        until_us = min(max(at_us, day_us), end_us)
        total += _ops_of(current, until_us - at_us)
        at_us, current = until_us, version
    return total + _ops_of(current, max(0, end_us - at_us))


def _next_hour_us(at_us: int) -> int:
    return -(-at_us // HOUR_US) * HOUR_US


def _first_day_us(recorded_us: int) -> int:
    """Return the first midnight after the entry: a version does not change its own day."""
    return -(-recorded_us // DAY_US) * DAY_US


def _ops_of(contract: ContractVersion, span_us: int) -> Fraction:
    return Fraction(
        ops_cost(
            hours_per_week=Fraction(contract.ops_seconds_per_week, _SECONDS_PER_HOUR),
            pusd_per_hour=contract.ops_pusd_per_hour,
            weeks=weeks_of(Fraction(span_us, HOUR_US)),
        )
    )
