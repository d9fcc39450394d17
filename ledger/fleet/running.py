"""The open hours since a pool's last close, split as the close will split them.

`accrual.split` divides each hour, or its past part, with the same evidence as the close. For
charts, every hour is spread over smaller parts by their work and down time. The parts add up to the
hour exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from sqlalchemy import Connection

from ledger.fleet.accrual import (
    HourSplit,
    Version,
    bill_pusd,
    bill_start_us,
    hours_of,
    last_closed_us,
    rated_versions,
    split,
    version_in_force,
)
from ledger.fleet.pool_records import ContractVersion, HourCell
from ledger.fleet.use import PoolUse, uses
from ledger.spans import HOUR_US, Scope


@dataclass(frozen=True, slots=True)
class OpenHoursPart:
    """A part of the open hours in one bucket: used + idle + unavailable = bill."""

    start_us: int
    bill_pusd: int
    used_pusd: int
    idle_pusd: int
    unavailable_pusd: int


@dataclass(frozen=True, slots=True)
class OpenHours:
    """The open hours of one pool. `used_pusd` is by team. Without a rate there is no bill."""

    pool: str
    from_us: int
    used_pusd: Mapping[str, int]
    idle_pusd: int
    unavailable_pusd: int
    paid_us: int
    unavailable_us: int
    parts: tuple[OpenHoursPart, ...]

    @property
    def bill_pusd(self) -> int:
        return sum(self.used_pusd.values()) + self.idle_pusd + self.unavailable_pusd


@dataclass(frozen=True, slots=True)
class _SampleSpan:
    """Use of a pool in buckets of `width_us`, by their starts."""

    width_us: int
    uses: Mapping[int, PoolUse]

    def shares(self, replicas: int, piece: tuple[int, int]) -> tuple[Fraction, Fraction]:
        """Return the busy and the unavailable share of a piece's engine time."""
        use = self.uses.get(piece[0] // self.width_us * self.width_us) or PoolUse()
        paid_us = replicas * (piece[1] - piece[0]) or 1
        return Fraction(sum(use.busy_us.values()), paid_us), Fraction(use.down_us, paid_us)


def running(
    connection: Connection,
    contract: ContractVersion,
    closed: Iterable[HourCell],
    scope: Scope,
    *,
    bucket_us: int = HOUR_US,
) -> OpenHours:
    """Return the open hours from the last close, or the start of the bill, to the scope's end."""
    pool, width_us = contract.pool, min(bucket_us, HOUR_US)
    from_us = open_from(connection, contract, closed, scope)
    versions = rated_versions(connection, pool)
    if contract.pusd_per_hour is None or not versions or from_us >= scope.end_us:
        return OpenHours(pool, from_us, {}, 0, 0, 0, 0, ())
    whole = uses(connection, pool, from_us, scope.end_us)
    fine = whole
    if width_us < HOUR_US:
        fine = uses(connection, pool, from_us, scope.end_us, width_us=width_us)
    seen = _SampleSpan(width_us, fine)
    splits: list[HourSplit] = []
    parts: list[OpenHoursPart] = []
    for span in hours_of(from_us, scope.end_us):
        hour_us = span[0] // HOUR_US * HOUR_US
        version, use = version_in_force(versions, hour_us), whole.get(hour_us) or PoolUse()
        splits.append(split(pool, version, span, use))
        parts += _spread(splits[-1], version, span, use, seen)
    used: dict[str, int] = {}
    for each_split in splits:
        for team, pusd in each_split.close.used_pusd.items():
            used[team] = used.get(team, 0) + pusd
    return OpenHours(
        pool,
        from_us,
        used,
        sum(each_split.close.idle_pusd for each_split in splits),
        sum(each_split.close.unavailable_pusd for each_split in splits),
        sum(each_split.paid_us for each_split in splits),
        sum(each_split.unavailable_us for each_split in splits),
        tuple(parts),
    )


def open_from(
    connection: Connection, contract: ContractVersion, closed: Iterable[HourCell], scope: Scope
) -> int:
    """Return the start of the open hours: the end of the last closed one, or the bill's start."""
    pool = contract.pool
    last = max((cell.last_hour_us for cell in closed if cell.pool == pool), default=None)
    if last is not None:
        return last + HOUR_US
    if last_closed_us(connection, pool) is not None:
        return scope.start_us
    first = next(iter(rated_versions(connection, pool)), None)
    since, recorded_us = (
        (contract.since, contract.recorded_us)
        if first is None
        else (first["since"], first["recorded_us"])
    )
    begins = bill_start_us(connection, pool, since=since, recorded_us=recorded_us)
    return max(scope.start_us, begins)


def pieces_of(span: tuple[int, int], width_us: int) -> list[tuple[int, int]]:
    """Return the span cut at the multiples of `width_us`."""
    cuts = range(span[0] // width_us * width_us + width_us, span[1], width_us)
    edges = [span[0], *cuts, span[1]]
    return list(pairwise(edges))


def fit(wanted: Sequence[int], rooms: Sequence[int], total: int) -> list[int]:
    """Return shares of `total` near `wanted`, none above its room.

    `total` must not exceed the sum of `rooms`. An amount that does not fit moves on to the next
    part; the rest at the end fills earlier rooms from the back.
    """
    shares = []
    carried = 0
    for want, room in zip(wanted, rooms, strict=True):
        share = min(room, want + carried, total)
        carried += want - share
        total -= share
        shares.append(share)
    for place in reversed(range(len(shares))):
        more = min(rooms[place] - shares[place], total)
        shares[place] += more
        total -= more
    return shares


def _spread(
    whole: HourSplit, contract: Version, span: tuple[int, int], use: PoolUse, seen: _SampleSpan
) -> list[OpenHoursPart]:
    """Return one hour's split over its pieces, whose bills add up to the hour's."""
    pieces = pieces_of(span, seen.width_us)
    bills = [bill_pusd(contract, piece, use) for piece in pieces]
    busy, down = zip(*(seen.shares(contract["replicas"], piece) for piece in pieces), strict=True)
    lost = fit(
        [int(bill * share) for bill, share in zip(bills, down, strict=True)],
        bills,
        whole.close.unavailable_pusd,
    )
    used = fit(
        [int(bill * share) for bill, share in zip(bills, busy, strict=True)],
        [bill - gone for bill, gone in zip(bills, lost, strict=True)],
        sum(whole.close.used_pusd.values()),
    )
    return [
        OpenHoursPart(start, bill, share, bill - share - gone, gone)
        for (start, _), bill, share, gone in zip(pieces, bills, used, lost, strict=True)
    ]
