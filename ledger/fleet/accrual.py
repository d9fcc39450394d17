"""The accrual of a pool's GPU contract: the version in force, and the split of each hour.

`split` is the only function that divides a bill into used, idle and unavailable. The hourly close
posts its result for a whole hour. Reports and the dashboard show its result for the part that has
passed, so an hour looks the same after it was closed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection, func, select

from ledger.accounts import HourClose, close_hour
from ledger.fleet.use import PoolUse
from ledger.gpu_contracts import GpuContract as Terms
from ledger.gpu_contracts import gpu_bill_pusd
from ledger.orm.books import AttemptRow
from ledger.orm.fleet import HOUR_US, EngineSampleRow, GpuContractRow, GpuHourRow

DAY_S = 86_400
Version = Mapping[str, Any]  # a row of `gpu_contracts`


@dataclass(frozen=True, slots=True)
class HourSplit:
    """The split of one piece of an hour. `close` has the payers; the times are engine time."""

    close: HourClose
    paid_us: int
    unavailable_us: int


def split(pool: str, contract: Version, span: tuple[int, int], use: PoolUse) -> HourSplit:
    """Divide the bill of `span`, which lies within one hour, by the use observed in it."""
    paid_us = paid_engine_us(contract["billing"], contract["replicas"], span, use)
    down_us = unavailable(use.busy_us, use.down_us, paid_us)
    close = close_hour(
        pool,
        bill_pusd(contract, span, use),
        busy_us=use.busy_us,
        unavailable_us=down_us,
        provisional_pusd=use.charged_pusd,
        hour_us=paid_us,
    )
    return HourSplit(close, paid_us, down_us)


def paid_engine_us(billing: str, replicas: int, span: tuple[int, int], use: PoolUse) -> int:
    """Return the billed engine time in microseconds.

    On demand, time in which an engine was stopped on purpose is not billed.
    """
    whole_us = replicas * (span[1] - span[0])
    return max(0, whole_us - use.off_us) if billing == "on_demand" else whole_us


def unavailable(busy_us: Mapping[str, int], down_us: int, paid_us: int) -> int:
    """Return the unavailable time: down time, limited to paid time without measured work."""
    return min(down_us, max(0, paid_us - sum(busy_us.values())))


def bill_pusd(contract: Version, span: tuple[int, int], use: PoolUse) -> int:
    """Return the contract's charge for a span. `use` has the times of on-demand machines."""
    terms = Terms(
        billing=contract["billing"],
        pusd_per_hour=contract["pusd_per_hour"],
        gpus=contract["gpus_per_replica"] * contract["replicas"],
        since_us=midnight_us(contract["since"]),
        until_us=midnight_us(contract["until"], days=1),
        running_us=tuple(use.up),
    )
    return gpu_bill_pusd(terms, *span)


def rated_versions(connection: Connection, pool: str, *, lock: bool = False) -> list[Version]:
    """Return the pool's contract versions with a rate, oldest first.

    `lock` holds them until the transaction ends, so that two closers do not post twice.
    """
    query = (
        select(*GpuContractRow.__table__.columns)
        .where(GpuContractRow.pool == pool, GpuContractRow.pusd_per_hour.is_not(None))
        .order_by(GpuContractRow.recorded_us, GpuContractRow.id)
    )
    found = connection.execute(query.with_for_update() if lock else query)
    return [dict(row) for row in found.mappings()]


def version_in_force(versions: Sequence[Version], hour_us: int) -> Version:
    """Return the latest version recorded by the hour's end, or the first version before that."""
    stated = [row for row in versions if row["recorded_us"] < hour_us + HOUR_US]
    return stated[-1] if stated else versions[0]


def last_closed_us(connection: Connection, pool: str) -> int | None:
    """Return the start of the pool's last closed hour, `None` without one."""
    query = select(func.max(GpuHourRow.hour_us)).where(GpuHourRow.pool == pool)
    return connection.execute(query).scalar_one()


def bill_start_us(
    connection: Connection, pool: str, *, since: date | None, recorded_us: int
) -> int:
    """Return the start of a pool's bill: its contract's first day, else the first evidence."""
    first_day = midnight_us(since)
    if first_day is not None:
        return first_day
    seen = [
        connection.execute(query).scalar_one_or_none()
        for query in (
            select(func.min(EngineSampleRow.at_us)).where(EngineSampleRow.pool == pool),
            # In index order, so that the scan ends at the first row of this pool.
            select(AttemptRow.opened_us)
            .where(AttemptRow.pool == pool)
            .order_by(AttemptRow.opened_us)
            .limit(1),
        )
    ]
    return min([recorded_us, *(at_us for at_us in seen if at_us is not None)])


def hours_of(from_us: int, until_us: int) -> Iterator[tuple[int, int]]:
    """Yield the span cut at full hours."""
    while from_us < until_us:
        end_us = min(until_us, (from_us // HOUR_US + 1) * HOUR_US)
        yield from_us, end_us
        from_us = end_us


def midnight_us(day: date | None, *, days: int = 0) -> int | None:
    """Return UTC midnight of `day` plus `days`, in microseconds; `None` for no day.

    The 31 December 9999 means no end.
    """
    if day is None:
        return None
    moment = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (int(moment.timestamp()) + days * DAY_S) * 1_000_000
