"""One look at the books: every figure of the first page, read at one instant.

The dashboard and the reports call `survey` and add up what it returns, so that they cannot
disagree. Reading and deciding stay apart: the statements are in `queries_*`, the arithmetic in
`bills`, `standing` and `breakeven`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from ledger.economics.bought import OverflowPrice, overflow_prices
from ledger.economics.cost import TokenBasis, Volume
from ledger.economics.standing import Standing, rated_pools, standing
from ledger.fleet.bills import PoolBill, pool_bill
from ledger.fleet.capability import PoolCapability, load_of, pool_capability, together
from ledger.fleet.running import Running, running
from ledger.queries import reads as queries
from ledger.queries.load import Loads, loads
from ledger.queries.reads import (
    CapacityRow,
    Cell,
    Comparison,
    Contract,
    Freshness,
    HourCell,
    Scope,
    TeamCell,
)
from ledger.queries.rollups import Rolled, settle_on
from ledger.reports.facts import Facts, Moment, facts, homes, moments


@dataclass(frozen=True, slots=True)
class PoolLook:
    """One pool alone: its bill, comparators, capacity, load by minute, and prices of overflow."""

    standing: Standing
    capability: PoolCapability | None
    load: tuple[int, ...]  # tokens asked in every minute of the billed hours
    overflow: tuple[OverflowPrice, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """`cells` are of the span as one bucket; over time there are `moments`, by `bucket_us`.

    `pools` are those that the standing counts, each alone.

    `running` is the part of the bills that is not closed, by pool, cut at the buckets.
    """

    scope: Scope
    bucket_us: int
    cells: tuple[Cell, ...]
    moments: tuple[Moment, ...]
    hours: tuple[HourCell, ...]
    team_hours: tuple[TeamCell, ...]
    contracts: tuple[Contract, ...]
    pools: dict[str, PoolLook]
    standing: Standing
    freshness: Freshness
    running: tuple[Running, ...]

    @property
    def api_pusd(self) -> int:
        return sum(cell.cost_pusd for cell in self.cells if cell.backend == "api")

    @property
    def own_pusd(self) -> int:
        return sum(bill.bill_pusd for bill in self.standing.bills)

    @property
    def unpriced(self) -> int:
        return sum(cell.unpriced for cell in self.cells if cell.backend == "api")


def survey(connection: Connection, scope: Scope, *, bucket_us: int, basis: TokenBasis) -> Survey:
    """Everything about a span. `scope.end_us` is the reader's clock: the open hour ends there."""
    read = settle_on(connection, partial(_read, connection, scope, bucket_us, basis))
    cells = read.facts.cells()
    closed = queries.hours(connection, scope, bucket_us=bucket_us)
    fresh = queries.freshness(connection)
    contracts = _contracts(queries.contracts(connection), cells, scope)
    rests = [
        running(connection, contract, closed, scope, bucket_us=bucket_us) for contract in contracts
    ]
    bills = [
        pool_bill(contract, closed, scope, rest)
        for contract, rest in zip(contracts, rests, strict=True)
    ]
    rated = rated_pools(bills)
    served = {pool: _served(cells, pool, basis) for pool in rated}
    found = [one for one in read.facts.comparisons() if one.pool in rated]
    main = {pool: main_kinds(cells, pool) for pool in rated}
    able = queries.capacities(connection)
    looks = {
        bill.pool: _pool(read, bill, found, able, served[bill.pool], main[bill.pool])
        for bill in bills
        if bill.pool in rated
    }
    answer = standing(
        bills,
        found,
        served=Volume(sum(one.tokens for one in served.values()), basis),
        capability=together(
            {pool: look.capability for pool, look in looks.items()},
            {pool: int(one.tokens) for pool, one in served.items()},
            basis,
            kinds=main,
        ),
    )
    teams = queries.hours_by_team(connection, scope, bucket_us=bucket_us)
    return Survey(
        scope,
        bucket_us,
        tuple(cells),
        read.moments,
        tuple(closed),
        tuple(teams),
        tuple(contracts),
        looks,
        answer,
        fresh,
        tuple(rests),
    )


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read of attempts, at one state of their sums."""

    scope: Scope
    facts: Facts
    moments: tuple[Moment, ...]
    homes: dict[str, str]
    everyone: Loads
    mine: Loads


def _read(
    connection: Connection,
    scope: Scope,
    bucket_us: int,
    basis: TokenBasis,
    here: Rolled | None,
) -> _Read:
    """A capacity is the pool's, so everyone's traffic tells it."""
    whole = replace(scope, team=None)
    everyone = loads(connection, whole, here, basis=basis)
    return _Read(
        scope,
        facts(connection, scope, here, everyone=True),
        tuple(moments(connection, scope, here, bucket_us=bucket_us)),
        homes(connection, here),
        everyone,
        everyone if scope == whole else loads(connection, scope, here, basis=basis),
    )


def _pool(
    read: _Read,
    bill: PoolBill,
    found: Sequence[Comparison],
    able: Sequence[CapacityRow],
    served: Volume,
    kinds: frozenset[str] | None,
) -> PoolLook:
    """One pool alone."""
    pool, basis = bill.pool, served.basis
    spills = [model for model, home in read.homes.items() if home == pool]
    which: Any = {"spills": spills, "kinds": kinds}
    load = read.everyone.of(pool=pool, **which)
    can = pool_capability(
        bill,
        able,
        read.facts.traffic(pool=pool, **which),
        load,
        span_end_us=read.scope.end_us,
        basis=basis,
    )
    if read.mine is not read.everyone:
        load = read.mine.of(pool=pool, **which)
    mine = [one for one in found if one.pool == pool]
    alone = standing(
        [bill], mine, served=served, capability=None if can is None else can.capability
    )
    prices = overflow_prices(read.facts.overflowed(**which), mine, alone.verdicts, basis)
    return PoolLook(alone, can, tuple(load_of(load, bill, read.scope.end_us)), prices)


def main_kinds(cells: Iterable[Cell], pool: str) -> frozenset[str] | None:
    """The kinds of request that a pool's capacity is told by: its chat, or what else it does.

    `None` where it was asked nothing.
    """
    seen = frozenset(cell.kind for cell in cells if cell.pool == pool)
    if seen & queries.CONVERSATION:
        return queries.CONVERSATION
    return seen or None


def _served(cells: Iterable[Cell], pool: str, basis: TokenBasis) -> Volume:
    good = [cell for cell in cells if cell.avoids and cell.pool == pool]
    output = basis is TokenBasis.OUTPUT
    return Volume(sum(c.output_tokens if output else c.tokens for c in good), basis)


def _contracts(known: list[Contract], cells: Iterable[Cell], scope: Scope) -> list[Contract]:
    """The contracts, and for every pool that served without one a contract of unknown rate."""
    named = {contract.pool for contract in known}
    seen = {cell.pool: cell for cell in cells if cell.backend == "own" and cell.pool}
    missing = [
        Contract(
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
