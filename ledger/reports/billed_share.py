"""The share of a period's hours for which on-demand GPUs were billed.

A reserved or owned GPU is billed in every hour. One on demand is billed while it runs, so a month
at its rate costs its usual hours, not all of them.
"""

from collections.abc import Sequence
from fractions import Fraction

from sqlalchemy import Connection, select

from ledger.fleet.pool_records import ContractVersion
from ledger.fleet.running import OpenHours
from ledger.orm.tables import GpuContractRow, GpuHourRow, exact_sum
from ledger.reports.month_pace import ON_DEMAND
from ledger.spans import HOUR_US, Scope, rows


def billed_shares(
    connection: Connection,
    scope: Scope,
    contracts: Sequence[ContractVersion],
    rests: Sequence[OpenHours],
) -> dict[str, Fraction]:
    """Return for each on-demand pool its bill over the bill of GPUs that run in every hour.

    `rests` are the open hours of `contracts`. Each closed hour counts at the rate of its contract;
    a pool whose hours were free has no share.
    """
    pools = [contract.pool for contract in contracts if contract.billing == ON_DEMAND]
    if not pools:
        return {}
    billed, whole = _closed(connection, scope, pools)
    for contract, rest in zip(contracts, rests, strict=True):
        open_us = max(0, scope.end_us - rest.from_us)
        if contract.pool in pools and contract.pusd_per_hour is not None:
            full = contract.pusd_per_hour * contract.gpus * open_us
            whole[contract.pool] = whole.get(contract.pool, 0) + full
            billed[contract.pool] = billed.get(contract.pool, 0) + rest.bill_pusd * HOUR_US
    return {
        pool: min(Fraction(1), Fraction(billed[pool], full)) for pool, full in whole.items() if full
    }


def _closed(
    connection: Connection, scope: Scope, pools: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return both bills of closed hours, in pico-USD times `HOUR_US` so that they are whole."""
    contract, hour = GpuContractRow, GpuHourRow
    rate = contract.pusd_per_hour * contract.gpus_per_replica * contract.replicas
    query = (
        select(hour.pool, rate, exact_sum(hour.span_us), exact_sum(hour.bill_pusd))
        .join(contract, contract.id == hour.contract_id)
        .where(hour.pool.in_(pools), hour.hour_us >= scope.start_us, hour.hour_us < scope.end_us)
        .group_by(hour.pool, hour.contract_id, rate)
    )
    billed: dict[str, int] = {}
    whole: dict[str, int] = {}
    for pool, per_hour, span_us, bill_pusd in rows(connection, query):
        billed[pool] = billed.get(pool, 0) + bill_pusd * HOUR_US
        whole[pool] = whole.get(pool, 0) + (per_hour or 0) * span_us
    return billed, whole
