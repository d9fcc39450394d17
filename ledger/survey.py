"""One look at the books: every figure of the first page, read at one instant.

The dashboard and the reports call `survey` and add up what it returns, so that they cannot
disagree. Reading and deciding stay apart: the statements are in `queries_*`, the arithmetic in
`bills`, `standing` and `breakeven`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from ledger import queries
from ledger.bills import PoolBill, pool_bill
from ledger.bought import OverflowPrice, overflow_prices
from ledger.capability import PoolCapability, load_of, pool_capability, together
from ledger.economics import TokenBasis, Volume
from ledger.queries import Cell, Comparison, Contract, Freshness, HourCell, Scope, TeamCell
from ledger.running import Running, running
from ledger.standing import Standing, rated_pools, standing


@dataclass(frozen=True, slots=True)
class PoolLook:
    """One pool alone: its bill, comparators, capacity, load by minute, and prices of overflow."""

    standing: Standing
    capability: PoolCapability | None
    load: tuple[int, ...]  # tokens asked in every minute of the billed hours
    overflow: tuple[OverflowPrice, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """`pools` are those that the standing counts, each alone.

    `running` is the part of the bills that is not closed, by pool, cut at the buckets.
    """

    scope: Scope
    bucket_us: int
    cells: tuple[Cell, ...]
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
    cells = queries.cells(connection, scope, bucket_us=bucket_us)
    closed = queries.hours(connection, scope, bucket_us=bucket_us)
    fresh = queries.freshness(connection)
    contracts = _contracts(queries.contracts(connection), cells)
    rests = [
        running(connection, contract, closed, scope, bucket_us=bucket_us) for contract in contracts
    ]
    bills = [
        pool_bill(contract, closed, scope, rest)
        for contract, rest in zip(contracts, rests, strict=True)
    ]
    rated = rated_pools(bills)
    served = {pool: _served(cells, pool, basis) for pool in rated}
    found = [one for one in queries.comparisons(connection, scope) if one.pool in rated]
    main = {pool: main_kinds(cells, pool) for pool in rated}
    looks = [one for one in bills if one.pool in rated]
    pools = _pools(connection, scope, looks, found, _Read(served, main))
    answer = standing(
        bills,
        found,
        served=Volume(sum(one.tokens for one in served.values()), basis),
        capability=together(
            {pool: look.capability for pool, look in pools.items()},
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
        tuple(closed),
        tuple(teams),
        tuple(contracts),
        pools,
        answer,
        fresh,
        tuple(rests),
    )


def _pools(
    connection: Connection,
    scope: Scope,
    bills: Iterable[PoolBill],
    found: Sequence[Comparison],
    read: "_Read",
) -> dict[str, PoolLook]:
    """Every pool alone. A capacity is the pool's, so everyone's traffic tells it."""
    everyone = replace(scope, team=None)
    rows, homes = queries.capacities(connection), queries.homes(connection)
    looks: dict[str, PoolLook] = {}
    for bill in bills:
        pool, basis, kinds = bill.pool, read.served[bill.pool].basis, read.kinds[bill.pool]
        spills = [model for model, home in homes.items() if home == pool]
        which: Any = {"spills": spills, "kinds": kinds}
        minutes = queries.load_per_minute(connection, everyone, pool=pool, **which)
        able = pool_capability(
            bill,
            rows,
            queries.traffic(connection, everyone, pool=pool, **which),
            minutes,
            span_end_us=scope.end_us,
            basis=basis,
        )
        if scope != everyone:
            minutes = queries.load_per_minute(connection, scope, pool=pool, **which)
        mine = [one for one in found if one.pool == pool]
        alone = standing(
            [bill],
            mine,
            served=read.served[pool],
            capability=None if able is None else able.capability,
        )
        load = load_of(minutes, bill, scope.end_us, basis)
        over = queries.overflowed(connection, scope, **which)
        prices = overflow_prices(over, mine, alone.verdicts, basis)
        looks[pool] = PoolLook(alone, able, tuple(load), prices)
    return looks


def main_kinds(cells: Iterable[Cell], pool: str) -> frozenset[str] | None:
    """The kinds of request that a pool's capacity is told by: its chat, or what else it does.

    `None` where it was asked nothing.
    """
    seen = frozenset(cell.kind for cell in cells if cell.pool == pool)
    if seen & queries.CONVERSATION:
        return queries.CONVERSATION
    return seen or None


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of every pool's attempts already."""

    served: Mapping[str, Volume]
    kinds: Mapping[str, frozenset[str] | None]


def _served(cells: Iterable[Cell], pool: str, basis: TokenBasis) -> Volume:
    good = [cell for cell in cells if cell.avoids and cell.pool == pool]
    output = basis is TokenBasis.OUTPUT
    return Volume(sum(c.output_tokens if output else c.tokens for c in good), basis)


def _contracts(known: list[Contract], cells: Iterable[Cell]) -> list[Contract]:
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
            recorded_us=cell.start_us,
        )
        for pool, cell in sorted(seen.items())
        if pool is not None and pool not in named
    ]
    return known + missing
