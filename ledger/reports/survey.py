"""A survey of the ledger: every figure of the first page, read at one point in time.

The dashboard and the reports call `survey` and add up its result, so that their figures agree.
Statements are in `ledger.queries`, the arithmetic is in `ledger.economics` and `fleet_economics`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from sqlalchemy import Connection

from ledger.economics.cost import TokenBasis, Volume
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.fleet.bills import BilledOps, PoolBill, billed_ops, pool_bill
from ledger.fleet.capability import PoolCapability, combine_pools, load_of, pool_capability
from ledger.fleet.entered_offers import reserved_offers
from ledger.fleet.paidrates import ops_sources
from ledger.fleet.running import OpenHours, running
from ledger.invoices.adjusted import INSTANT, Adjustment, posted_adjustments
from ledger.queries import reads as queries
from ledger.queries.load import PoolLoads, loads
from ledger.queries.reads import (
    AttemptCell,
    ComparatorCost,
    ContractVersion,
    Freshness,
    HourCell,
    Scope,
    TeamCell,
)
from ledger.queries.rollups import RollupProgress, read_consistently
from ledger.reporting_zone import UTC_DAYS, ReportingZone, reporting_zone
from ledger.reports.billed_share import billed_shares
from ledger.reports.facts import BucketSums, SpanFacts, facts, home_pools, moments
from ledger.reports.fleet_economics import FleetEconomics, fleet_economics, rated_pools
from ledger.reports.fleet_sheet import PoolReads, SheetReads, fleet_verdict
from ledger.reports.pool_demand import KeptMix, read_mix
from ledger.reports.zone_days import day_hours, day_moments, day_team_hours
from ledger.spans import DAY_US


@dataclass(frozen=True, slots=True)
class PoolSurvey:
    """One pool alone: its bill, comparators, capacity and load by minute."""

    standing: FleetEconomics
    capability: PoolCapability | None
    load: tuple[int, ...]  # requested tokens in every minute of the billed hours


@dataclass(frozen=True, slots=True)
class Survey:
    """All figures of a span.

    `cells` have the span as one bucket, `moments` are by `bucket_us`. `pools` are the pools in
    `standing`, each alone; a survey of spending has none. `running` is the open part of the bills,
    by pool, cut at bucket borders. `verdict` is that of the fleet; a survey of one team, of
    spending, or on output tokens has none.
    """

    scope: Scope
    bucket_us: int
    cells: tuple[AttemptCell, ...]
    moments: tuple[BucketSums, ...]
    hours: tuple[HourCell, ...]
    team_hours: tuple[TeamCell, ...]
    contracts: tuple[ContractVersion, ...]
    pools: dict[str, PoolSurvey]
    standing: FleetEconomics
    freshness: Freshness
    running: tuple[OpenHours, ...]
    zone: ReportingZone = UTC_DAYS
    verdict: FleetVerdict | None = None
    ops: tuple[BilledOps, ...] = ()  # of rated pools, where anything is entered; a team has none
    adjustments: tuple[Adjustment, ...] = ()  # to bills, each at its instant; a team has none

    def bucket_of(self, at_us: int) -> tuple[int, int]:
        """Return start and end of the bucket at `at_us`; days are those of the reporting zone."""
        if self.bucket_us == DAY_US:
            return self.zone.day(at_us)
        start_us = at_us - at_us % self.bucket_us
        return start_us, start_us + self.bucket_us

    @property
    def api_pusd(self) -> int:
        return sum(cell.cost_pusd for cell in self.cells if cell.backend == "api")

    @property
    def own_pusd(self) -> int:
        return sum(bill.bill_pusd for bill in self.standing.bills)

    @property
    def adjusted_pusd(self) -> int:
        return sum(adjustment.pusd for adjustment in self.adjustments)

    @property
    def unpriced(self) -> int:
        return sum(cell.unpriced for cell in self.cells if cell.backend == "api")


def survey(connection: Connection, scope: Scope, *, bucket_us: int, basis: TokenBasis) -> Survey:
    """Return all figures of a span. The open hour ends at `scope.end_us`, the reader's clock."""
    books = _Books(connection, scope, bucket_us, basis, [scope.team], alone=[scope.team])
    return books.survey(scope.team)


def spending(connection: Connection, scope: Scope, *, bucket_us: int, basis: TokenBasis) -> Survey:
    """Return a survey without loads by minute, so without capacity and pools' own loads.

    It takes half the time of `survey`, for pages about spend only.
    """
    return _Books(connection, scope, bucket_us, basis, [scope.team], alone=[]).survey(scope.team)


def surveys(
    connection: Connection, scope: Scope, *, bucket_us: int, basis: TokenBasis
) -> tuple[Survey, Survey]:
    """Return the survey of all teams and that of the scope's team, from one read."""
    books = _Books(connection, scope, bucket_us, basis, [None, scope.team], alone=[None])
    return books.survey(None), books.survey(scope.team)


@dataclass(frozen=True, slots=True)
class _SurveyReads:
    """Reads of attempts at one state of their sums; `moments` and `loads` are by team."""

    facts: SpanFacts
    homes: dict[str, str]
    moments: dict[str | None, tuple[BucketSums, ...]]
    loads: dict[str | None, PoolLoads]
    mix: KeptMix | None


class _Books:
    """The reads of a span, made once for the surveys of a team and of all teams (`None`).

    `alone`: the teams whose surveys have each pool alone. A pool's capacity depends on all teams'
    traffic, also in the survey of a team.
    """

    def __init__(
        self,
        connection: Connection,
        scope: Scope,
        bucket_us: int,
        basis: TokenBasis,
        teams: Sequence[str | None],
        *,
        alone: Sequence[str | None],
    ) -> None:
        self._connection, self._scope, self._bucket_us = connection, scope, bucket_us
        self._basis, self._alone = basis, alone
        self._zone = reporting_zone(connection)
        self._days_apart = bucket_us == DAY_US and self._zone != UTC_DAYS
        widest = replace(scope, team=None if None in teams else scope.team)
        self._read = read_consistently(connection, partial(self._read_settled, widest, teams))
        if self._days_apart:
            self._closed = day_hours(connection, scope, self._zone)
            self._teams = day_team_hours(connection, widest, self._zone)
        else:
            self._closed = queries.hours(connection, scope, bucket_us=bucket_us)
            self._teams = queries.hours_by_team(connection, widest, bucket_us=bucket_us)
        self._fresh = queries.freshness(connection)
        self._contracts = queries.contracts(connection)
        self._versions = queries.contract_versions(connection)
        self._able = queries.capacities(connection) if alone else []
        self._running: dict[ContractVersion, OpenHours] = {}
        self._abilities: dict[tuple[Any, ...], PoolCapability | None] = {}

    def _read_settled(
        self, widest: Scope, teams: Sequence[str | None], here: RollupProgress | None
    ) -> _SurveyReads:
        connection, scope = self._connection, self._scope
        spans = {name: replace(scope, team=name) for name in {None, *teams}}
        by_minute = {None, *self._alone} if self._alone else set()
        return _SurveyReads(
            facts(connection, widest, here, everyone=bool(self._alone)),
            home_pools(connection, here) if self._alone else {},
            {team: tuple(self._moments(spans[team], here)) for team in teams},
            {name: loads(connection, spans[name], here, basis=self._basis) for name in by_minute},
            read_mix(connection, scope, here) if self._has_verdict else None,
        )

    def _moments(self, scope: Scope, here: RollupProgress | None) -> list[BucketSums]:
        if self._days_apart:
            return day_moments(self._connection, scope, here, self._zone)
        return moments(self._connection, scope, here, bucket_us=self._bucket_us)

    @property
    def _has_verdict(self) -> bool:
        """Return whether there is a verdict: for all teams, on input and output tokens."""
        return None in self._alone and self._basis is TokenBasis.INPUT_OUTPUT

    def survey(self, team: str | None) -> Survey:
        scope, basis = replace(self._scope, team=team), self._basis
        mine = self._read.facts.of(team)
        cells = mine.cells()
        contracts = _contracts(self._contracts, cells, scope)
        rests = [self._open_hours_of(contract) for contract in contracts]
        shares = billed_shares(self._connection, scope, contracts, rests)
        bills = [
            replace(
                pool_bill(contract, self._closed, scope, rest, self._versions_of(contract.pool)),
                billed_share=shares.get(contract.pool, Fraction(1)),
            )
            for contract, rest in zip(contracts, rests, strict=True)
        ]
        rated = rated_pools(bills)
        served = {pool: _served_volume(cells, pool, basis) for pool in rated}
        found = [comparison for comparison in mine.comparisons() if comparison.pool in rated]
        main = {pool: main_kinds(cells, pool) for pool in rated}
        looks = {
            bill.pool: self._pool(mine, bill, found, served[bill.pool], main[bill.pool])
            for bill in bills
            if team in self._alone and bill.pool in rated
        }
        answer = fleet_economics(
            bills,
            found,
            served=Volume(sum(volume.tokens for volume in served.values()), basis),
            capability=combine_pools(
                {pool: look.capability for pool, look in looks.items()},
                {pool: int(volume.tokens) for pool, volume in served.items()},
                basis,
                kinds=main,
            )
            if team in self._alone
            else None,
        )
        return Survey(
            scope,
            self._bucket_us,
            tuple(cells),
            self._read.moments[team],
            tuple(self._closed),
            tuple(cell for cell in self._teams if team in (None, cell.team)),
            tuple(contracts),
            looks,
            answer,
            self._fresh,
            tuple(rests),
            self._zone,
            self._verdict(bills, contracts, looks, main) if team is None else None,
            self._ops(contracts, bills) if team is None else (),
            tuple(posted_adjustments(self._connection, scope, bucket_us=INSTANT)),
        )

    def _ops(
        self, contracts: Sequence[ContractVersion], bills: Sequence[PoolBill]
    ) -> tuple[BilledOps, ...]:
        return tuple(
            billed_ops(
                contract,
                self._closed,
                self._scope,
                self._open_hours_of(contract),
                self._versions_of(contract.pool),
            )
            for contract, bill in zip(contracts, bills, strict=True)
            if bill.is_rated and bill.ops_pusd
        )

    def _versions_of(self, pool: str) -> list[ContractVersion]:
        return [version for version in self._versions if version.pool == pool]

    def _verdict(
        self,
        bills: Sequence[PoolBill],
        contracts: Sequence[ContractVersion],
        looks: dict[str, PoolSurvey],
        kinds: dict[str, frozenset[str] | None],
    ) -> FleetVerdict | None:
        mix = self._read.mix
        if mix is None:
            return None
        offers = reserved_offers(self._connection, self._scope.end_us)
        refused = Counter[str]()
        for count in queries.refusals(self._connection, replace(self._scope, team=None)):
            refused[count.model] += count.requests
        loads_of_all, homes = self._read.loads[None], self._read.homes
        # Contracts are the current ones, which may have begun after the span.
        at_us = max([self._scope.end_us, *(contract.recorded_us for contract in contracts)])
        sources = ops_sources(self._connection, at_us)
        reads = SheetReads(self._read.facts, loads_of_all, homes, mix, offers, refused, sources)
        pools = [
            PoolReads(
                bill,
                contract,
                looks[bill.pool].capability if bill.pool in looks else None,
                kinds.get(bill.pool),
            )
            for bill, contract in zip(bills, contracts, strict=True)
        ]
        return fleet_verdict(reads, pools)

    def _open_hours_of(self, contract: ContractVersion) -> OpenHours:
        """Return the open hours of a contract, for all teams."""
        known = self._running.get(contract)
        if known is None:
            whole = replace(self._scope, team=None)
            known = self._running[contract] = running(
                self._connection, contract, self._closed, whole, bucket_us=self._bucket_us
            )
        return known

    def _pool(
        self,
        mine: SpanFacts,
        bill: PoolBill,
        found: Sequence[ComparatorCost],
        served: Volume,
        kinds: frozenset[str] | None,
    ) -> PoolSurvey:
        """Return the survey of one pool alone."""
        pool = bill.pool
        spills = [model for model, home in self._read.homes.items() if home == pool]
        which: Any = {"spills": spills, "kinds": kinds}
        can = self._ability(mine, bill, which)
        load = self._read.loads[mine.team].pool_load(pool=pool, **which)
        compared = [cost for cost in found if cost.pool == pool]
        alone = fleet_economics(
            [bill], compared, served=served, capability=None if can is None else can.capability
        )
        return PoolSurvey(alone, can, tuple(load_of(load, bill, self._scope.end_us)))

    def _ability(self, mine: SpanFacts, bill: PoolBill, which: Any) -> PoolCapability | None:
        key = bill.pool, which["kinds"]
        if key not in self._abilities:
            self._abilities[key] = pool_capability(
                bill,
                self._able,
                mine.traffic(pool=bill.pool, **which),
                self._read.loads[None].pool_load(pool=bill.pool, **which),
                span_end_us=self._scope.end_us,
                basis=self._basis,
            )
        return self._abilities[key]


def main_kinds(cells: Iterable[AttemptCell], pool: str) -> frozenset[str] | None:
    """Return the request kinds that define a pool's capacity: its chat, else all that it does.

    The result is `None` if the pool had no request.
    """
    seen = frozenset(cell.kind for cell in cells if cell.pool == pool)
    if seen & queries.CONVERSATION:
        return queries.CONVERSATION
    return seen or None


def _served_volume(cells: Iterable[AttemptCell], pool: str, basis: TokenBasis) -> Volume:
    good = [cell for cell in cells if cell.avoids and cell.pool == pool]
    output = basis is TokenBasis.OUTPUT
    return Volume(sum(c.output_tokens if output else c.tokens for c in good), basis)


def _contracts(
    known: list[ContractVersion], cells: Iterable[AttemptCell], scope: Scope
) -> list[ContractVersion]:
    """Return the contracts, with an unrated one for every pool that served without a contract."""
    named = {contract.pool for contract in known}
    seen = {cell.pool: cell for cell in cells if cell.backend == "own" and cell.pool}
    missing = [
        ContractVersion(
            pool=pool,
            gpu_type="unknown",
            gpus=1,
            replicas=1,
            billing="reserved",
            pusd_per_hour=None,
            source=None,
            since=None,
            until=None,
            ops_seconds_per_week=0,
            ops_pusd_per_hour=0,
            simulated=cell.simulated,
            recorded_us=scope.end_us,  # before it is what was seen of the pool
        )
        for pool, cell in sorted(seen.items())
        if pool is not None and pool not in named
    ]
    return known + missing
