"""One look at the books: every figure of the first page, read at one instant.

The dashboard and the reports call `survey` and add up what it returns, so that they cannot
disagree. Reading and deciding stay apart: the statements are in `queries_*`, the arithmetic in
`bills`, `standing` and `breakeven`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nlargest

from sqlalchemy import Connection

from ledger import queries
from ledger.bills import pool_bill
from ledger.economics import TokenBasis, Volume
from ledger.queries import Cell, Contract, Freshness, HourCell, Minute, Scope, TeamCell
from ledger.running import Running, running
from ledger.standing import Standing, capability, rated_pools, standing

BUSY_MINUTES = 5  # the floor under a capacity is the mean of this many busiest minutes


@dataclass(frozen=True, slots=True)
class Survey:
    """`minutes` holds, by pool, the load that its staircase is computed from.

    `running` is the part of the bills that is not closed, by pool, cut at the buckets.
    """

    scope: Scope
    bucket_us: int
    cells: tuple[Cell, ...]
    hours: tuple[HourCell, ...]
    team_hours: tuple[TeamCell, ...]
    contracts: tuple[Contract, ...]
    minutes: dict[str, tuple[Minute, ...]]
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
    minutes = {
        bill.pool: tuple(queries.load_per_minute(connection, scope, pool=bill.pool))
        for bill in bills
    }
    found = [one for one in queries.comparisons(connection, scope) if one.pool in rated]
    answer = standing(
        bills,
        found,
        served=_served(cells, rated, basis),
        capability=capability(
            [bill for bill in bills if bill.pool in rated],
            queries.capacities(connection),
            floor_tokens_per_minute=floors(minutes, basis),
            basis=basis,
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
        minutes,
        answer,
        fresh,
        tuple(rests),
    )


def floors(minutes: dict[str, tuple[Minute, ...]], basis: TokenBasis) -> dict[str, int]:
    """Tokens per minute that each pool has been seen to serve inside its SLO."""
    return {
        pool: sum(busiest) // len(busiest)
        for pool, rows in minutes.items()
        if (busiest := nlargest(BUSY_MINUTES, (served(row, basis) for row in rows)))
    }


def served(minute: Minute, basis: TokenBasis) -> int:
    output = basis is TokenBasis.OUTPUT
    return minute.served_output_tokens if output else minute.served_tokens


def asked(minute: Minute, basis: TokenBasis) -> int:
    return minute.asked_output_tokens if basis is TokenBasis.OUTPUT else minute.asked_tokens


def _served(cells: Iterable[Cell], pools: frozenset[str], basis: TokenBasis) -> Volume:
    good = [cell for cell in cells if cell.avoids and cell.pool in pools]
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
