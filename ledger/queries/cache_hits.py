"""Reads of cache hits: requests answered by a stored answer. Spend does not include them."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, case, func, select

from ledger.orm.books import CacheHitRow
from ledger.orm.condensings import CondensedHitRow
from ledger.orm.types import exact_sum
from ledger.spans import Scope, total


@dataclass(frozen=True, slots=True)
class CacheTotal:
    """Cache hits of a scope: the avoided API charges, and the engine time that was saved.

    `unpriced` counts API hits whose answer has no price; they are in no sum.
    """

    hits: int
    api_pusd: int
    unpriced: int
    engine_us: int


def cache_total(connection: Connection, scope: Scope) -> CacheTotal:
    """Return the cache hits of a scope. Deleted hits are counted by whole hours."""
    of_api = CacheHitRow.backend == "api"
    statement = select(
        func.count(),
        exact_sum(case((of_api, CacheHitRow.avoided_pusd))),
        total(case((of_api & CacheHitRow.avoided_pusd.is_(None), 1), else_=0)),
        total(case((of_api, 0), else_=CacheHitRow.engine_us)),
    )
    hits, pusd, unpriced, engine_us = map(int, connection.execute(_narrow(statement, scope)).one())
    gone = CondensedHitRow
    query = select(gone.backend, gone.hits, gone.avoided_pusd, gone.unpriced, gone.engine_us)
    inside = [gone.hour_us >= scope.start_us, gone.hour_us < scope.end_us]
    if scope.team is not None:
        inside.append(gone.team_id == scope.team)
    for backend, count, avoided, without_price, busy_us in connection.execute(query.where(*inside)):
        hits += count
        if backend == "api":
            pusd, unpriced = pusd + avoided, unpriced + without_price
        else:
            engine_us += busy_us
    return CacheTotal(hits, pusd, unpriced, engine_us)


def find_hit(
    connection: Connection, request_id: str, team: str | None
) -> Row[*tuple[Any, ...]] | None:
    """Return the row of a cache hit, or `None` if there is none or another team's."""
    query = select(CacheHitRow.__table__).where(CacheHitRow.request_id == request_id)
    if team is not None:
        query = query.where(CacheHitRow.team_id == team)
    return connection.execute(query).one_or_none()


def _narrow(statement: Select[*tuple[Any, ...]], scope: Scope) -> Select[*tuple[Any, ...]]:
    statement = statement.where(
        CacheHitRow.hit_us >= scope.start_us, CacheHitRow.hit_us < scope.end_us
    )
    return statement if scope.team is None else statement.where(CacheHitRow.team_id == scope.team)
