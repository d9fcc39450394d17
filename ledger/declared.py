"""What the configuration declares to the books: GPU contracts, budgets, the file itself.

Contracts and budgets are versioned by adding rows: a changed rate begins when it was declared and
never rewrites a closed hour. A budget that the file no longer names is retired; one that is new,
or whose calendar changed, begins with what its window has seen already.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import cast

from sqlalchemy import Connection, Engine, insert, select, update

from ledger.booked import book
from ledger.budgetversions import say_budgets
from ledger.escrow import budget_key
from ledger.orm_books import ConfigVersion
from ledger.orm_budgets import Budget
from ledger.orm_fleet import GpuContract
from ledger.windows import Period, window_at


@dataclass(frozen=True, slots=True)
class Contract:
    """What one pool's hardware costs; `pusd_per_hour` is one GPU's, `None` while unknown.

    On a shared `machine` it is this pool's part of the machine's rate, as `share_ppm` says.
    """

    pool: str
    gpu_type: str
    gpus_per_replica: int
    replicas: int
    billing: str
    pusd_per_hour: int | None
    source: str | None
    since: date | None
    until: date | None
    ops_seconds_per_week: int
    ops_pusd_per_hour: int
    simulated: bool
    machine: str | None = None
    share_ppm: int = 1_000_000


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    scope: str
    period: str
    limit_pusd: int
    hard: bool
    timezone: str


def declare(
    engine: Engine,
    *,
    contracts: Sequence[Contract],
    budgets: Sequence[BudgetSpec],
    config: tuple[str, str],
    at_us: int,
) -> None:
    """Bring the books to what the file says, in one transaction; `config` is (hash, text)."""
    with engine.begin() as connection:
        for contract in contracts:
            _contract(connection, contract, at_us)
        _budgets(connection, budgets, at_us)
        say_budgets(connection, at_us)
        digest, text = config
        known = select(ConfigVersion.hash).where(ConfigVersion.hash == digest)
        if connection.execute(known).first() is None:
            connection.execute(
                insert(ConfigVersion), [{"hash": digest, "yaml": text, "applied_us": at_us}]
            )


def _contract(connection: Connection, contract: Contract, at_us: int) -> None:
    wanted = asdict(contract)
    columns = [GpuContract.__table__.c[name] for name in wanted]
    query = (
        select(*columns)
        .where(GpuContract.pool == contract.pool)
        .order_by(GpuContract.recorded_us.desc(), GpuContract.id.desc())
        .limit(1)
    )
    latest = connection.execute(query).mappings().first()
    if latest is None or dict(latest) != wanted:
        connection.execute(insert(GpuContract), [{**wanted, "recorded_us": at_us}])


def _budgets(connection: Connection, budgets: Sequence[BudgetSpec], at_us: int) -> None:
    wanted = {budget_key(spec.scope, spec.period): spec for spec in budgets}
    columns = (Budget.timezone, Budget.limit_pusd, Budget.hard, Budget.retired_us)
    stored = {row[0]: row[1:] for row in connection.execute(select(Budget.id, *columns))}
    for budget_id, spec in wanted.items():
        values = {**asdict(spec), "retired_us": None}
        known = stored.get(budget_id)
        if known is not None:
            connection.execute(update(Budget).where(Budget.id == budget_id).values(**values))
        else:
            connection.execute(insert(Budget), [{**values, "id": budget_id, "created_us": at_us}])
        # Another limit alone moves no money: only desks know what of their grants is held.
        if known is None or (known[0], *known[2:]) != (spec.timezone, spec.hard, None):
            book(
                connection,
                spec.scope,
                budget_id,
                window_at(cast("Period", spec.period), spec.timezone, at_us // 10**6),
                limit_pusd=spec.limit_pusd if spec.hard else None,
                moved=known is not None and known[0] != spec.timezone,
            )
    gone = set(stored) - set(wanted)
    if gone:
        connection.execute(
            update(Budget)
            .where(Budget.id.in_(gone), Budget.retired_us.is_(None))
            .values(retired_us=at_us)
        )
