"""Costs of past days at the rates of future days, and the certain cost of future days.

Past days keep their booked cost; only the pace uses other rates. A reserved or owned GPU is billed
at any load, so its future cost is certain, and so are ops costs. On-demand GPUs, and a team's use
of any GPU, continue at past GPU hours and the rate of each future day: contracts in force, and
rates that people entered for later. A pool with an unknown rate is named and left out.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import msgspec
from sqlalchemy import Connection

from ledger.fleet.accrual import midnight_us
from ledger.fleet.bills import ops_pusd
from ledger.fleet.paidrates import rate_of
from ledger.fleet.pool_records import ContractVersion
from ledger.fleet.running import running
from ledger.manual_entries import RATE, entries, entries_in_force, latest_us, upcoming_entries
from ledger.queries import reads as queries
from ledger.reports.daily import DaySpend
from ledger.spans import HOUR_US, Scope

ON_DEMAND = "on_demand"


@dataclass(frozen=True, slots=True)
class MonthPace:
    """The pace of spend.

    `pasts` has the past days' uncertain costs at each future day's rates. `unknown` lists pools
    whose future rate or past GPU hours are unknown.
    """

    pasts: tuple[tuple[int, ...], ...]
    certain_pusd: int
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PoolRates:
    """A pool's contract versions, oldest first, including known future ones."""

    versions: tuple[ContractVersion, ...]

    def bill_pusd(self, start_us: int, end_us: int) -> Fraction | None:
        """Return the bill of a span in which all GPUs run, `None` if a rate is unknown."""
        total, at_us = Fraction(0), start_us
        while at_us < end_us:
            version, until_us = self._in_force(at_us, end_us)
            since, ends = midnight_us(version.since), midnight_us(version.until, days=1)
            billed_us = min(until_us, ends or until_us) - max(at_us, since or at_us)
            if billed_us > 0 and version.pusd_per_hour is None:
                return None
            if billed_us > 0 and version.pusd_per_hour is not None:
                total += Fraction(version.pusd_per_hour * version.gpus * billed_us, HOUR_US)
            at_us = until_us
        return total

    def booked_per_hour(self, hour_us: int) -> int:
        """Return the cost of all GPUs in a closed hour; versions without a rate are not billed."""
        rated = [version for version in self.versions if version.pusd_per_hour is not None]
        stated = [version for version in rated if version.recorded_us < hour_us + HOUR_US]
        found = (stated[-1:] or rated[:1] or self.versions[:1])[0]
        return (found.pusd_per_hour or 0) * found.gpus

    def ops_pusd(self, start_us: int, end_us: int) -> Fraction:
        """Return the ops cost of the days in a span with a contract that has a rate."""
        last = self.versions[-1]
        since, ends = midnight_us(last.since), midnight_us(last.until, days=1)
        start_us, end_us = max(start_us, since or start_us), min(end_us, ends or end_us)
        if last.pusd_per_hour is None or end_us <= start_us:
            return Fraction(0)
        return ops_pusd(self.versions, start_us, end_us)

    def _in_force(self, at_us: int, end_us: int) -> tuple[ContractVersion, int]:
        """Return the version that the close of an hour uses, and the start of the next version."""
        current = self.versions[0]
        for version in self.versions[1:]:
            first_us = version.recorded_us // HOUR_US * HOUR_US
            if first_us > at_us:
                return current, min(first_us, end_us)
            current = version
        return current, end_us


def known_rates(connection: Connection, now_us: int) -> dict[str, PoolRates]:
    """Return the rates of every pool, including entered rates that no host has applied yet."""
    versions: dict[str, list[ContractVersion]] = {}
    for version in queries.contract_versions(connection):
        versions.setdefault(version.pool, []).append(version)
    for pool, all_of in versions.items():
        if all_of[-1].pusd_per_hour is not None:  # then hours without a rate are billed at others
            versions[pool] = [version for version in all_of if version.pusd_per_hour is not None]
    found = entries(connection, RATE)
    standing = entries_in_force(found, latest_us(found, now_us)).values()
    later = upcoming_entries(found, now_us)
    for entry in [*standing, *later]:
        mine, rate = versions.get(entry.name), rate_of(entry)
        if mine is None or (rate is None and entry not in later):
            continue  # the contract includes the effect of withdrawn entries
        said = {"pusd_per_hour": None} if rate is None else msgspec.structs.asdict(rate)
        coming = replace(mine[-1], **said)
        if coming != mine[-1]:
            recorded_us = max(entry.from_us, mine[-1].recorded_us)
            mine.append(replace(coming, recorded_us=recorded_us))
    return {pool: PoolRates(tuple(mine)) for pool, mine in versions.items()}


def month_pace(
    connection: Connection,
    days: Sequence[DaySpend],
    coming: Sequence[Scope],
    team: str | None,
    now_us: int,
) -> MonthPace:
    """Return the pace of past `days` for `coming`, the days from today to the month's end.

    Both hold whole days.
    """
    rates = known_rates(connection, now_us)
    fixed = {
        pool
        for pool, known in rates.items()
        if team is None and known.versions[-1].billing != ON_DEMAND
    }
    hours, free = _pool_hours(connection, days, rates, team)
    unknown: set[str] = set()
    certain, by_day = Fraction(0), []
    for day in coming:
        costs: dict[str, Fraction] = {}  # of an hour in which all of a pool's GPUs run
        for pool, known in rates.items():
            bill = known.bill_pusd(day.start_us, day.end_us)
            if bill is None:
                unknown |= {pool} if team is None or any(pool in mine for mine in hours) else set()
            elif pool in fixed:
                certain += bill
            else:
                unknown |= {pool} & free if bill else set()
                costs[pool] = bill * HOUR_US / (day.end_us - day.start_us)
        by_day.append(costs)
    if team is None and coming:
        span = coming[0].start_us, coming[-1].end_us
        certain += sum(known.ops_pusd(*span) for known in rates.values())
    pasts: list[tuple[int, ...]] = []
    for place, costs in enumerate(by_day):
        if place and costs == by_day[place - 1]:
            pasts.append(pasts[-1])
            continue
        pasts.append(tuple(
            day.api_pusd + round(sum(
                used * costs.get(pool, 0) for pool, used in mine.items() if pool not in fixed
            ))
            for day, mine in zip(days, hours, strict=True)
        ))  # fmt: skip
    return MonthPace(tuple(pasts), round(certain), tuple(sorted(unknown)))


def _pool_hours(
    connection: Connection,
    days: Sequence[DaySpend],
    rates: Mapping[str, PoolRates],
    team: str | None,
) -> tuple[list[dict[str, Fraction]], set[str]]:
    """Return the paid hours of all GPUs of a pool, for each day and by pool.

    The second value lists pools booked at a rate of zero, whose bills show no hours: at another
    rate their cost is unknown.
    """
    found: list[dict[str, Fraction]] = [{} for _ in days]
    unknown: set[str] = set()
    if not days:
        return found, unknown
    starts = [day.start_us for day in days]
    scope = Scope(starts[0], days[-1].end_us, team)
    for pool, hour_us, pusd, is_used in _booked(connection, scope):
        known = rates.get(pool)
        per_hour = 0 if known is None else known.booked_per_hour(hour_us)
        if per_hour and pusd:
            mine = found[bisect_right(starts, hour_us) - 1]
            mine[pool] = mine.get(pool, Fraction(0)) + Fraction(pusd, per_hour)
        elif is_used and not per_hour:
            unknown.add(pool)
    return found, unknown


def _booked(connection: Connection, scope: Scope) -> Iterator[tuple[str, int, int, bool]]:
    """Yield pool, hour, pico-USD (the bill, or a team's use) and whether anything ran.

    Hours that are not closed yet are computed from the contract, as everywhere.
    """
    closed = queries.hours(connection, scope, bucket_us=HOUR_US)
    whole = replace(scope, team=None)
    rests = [
        running(connection, contract, closed, whole) for contract in queries.contracts(connection)
    ]
    if scope.team is not None:
        for mine in queries.hours_by_team(connection, scope, bucket_us=HOUR_US):
            yield mine.pool, mine.start_us, mine.used_pusd, True
        for rest in rests:
            yield rest.pool, rest.from_us, rest.used_pusd.get(scope.team, 0), False
        return
    for cell in closed:
        yield cell.pool, cell.start_us, cell.bill_pusd, cell.busy_us > 0
    for rest in rests:
        for part in rest.parts:
            yield rest.pool, part.start_us, part.bill_pusd, False
