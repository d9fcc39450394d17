"""Declarations of the configuration to the ledger: GPU contracts, budgets, the file.

Contracts and budgets are versioned by adding rows: a changed rate begins when it is declared and
never rewrites a closed hour. Rates and budgets that a person entered take precedence over the
file's (`carry_budgets`). A budget that the file no longer names is retired. A budget that is new,
or whose calendar changed, begins with what its window has spent already and what is in flight. So
does every account that a default (`user:*`) binds from then on.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple, cast

from sqlalchemy import Connection, Engine, func, insert, or_, select, update

from ledger.budgets.backfill import BudgetSweep, Counted, backfill, count_ended
from ledger.budgets.binding import default_of, is_default, scope_of
from ledger.budgets.declaring import await_turn, serialize_declarations
from ledger.budgets.entered import BudgetSpec, entered_budgets, with_entered
from ledger.budgets.escrow import account_order
from ledger.budgets.open_claims import serialize_claims
from ledger.budgets.versions import record_versions
from ledger.budgets.windows import CalendarWindow, Period, window_at
from ledger.fleet.paidrates import apply_rate, standing_rates
from ledger.manual_entries import ManualEntry
from ledger.orm.books import ConfigVersionRow
from ledger.orm.budgets import BudgetRow
from ledger.orm.fleet import GpuContractRow
from ledger.reporting_zone import declare_zone


@dataclass(frozen=True, slots=True)
class DeclaredContract:
    """Cost of one pool's hardware. `pusd_per_hour` is the rate of one GPU, `None` if unknown.

    On a shared `machine` the rate is this pool's part of the machine's rate, given by `share_ppm`.
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


class _KnownContract(NamedTuple):
    """A budget as stored in the ledger."""

    timezone: str
    limit_pusd: int
    hard: bool
    retired_us: int | None

    def counts_as(self, spec: BudgetSpec) -> bool:
        """Return whether the budget is active and equal to `spec` in all but the limit."""
        return (self.timezone, self.hard, self.retired_us) == (spec.timezone, spec.hard, None)


def declare(
    engine: Engine,
    *,
    contracts: Sequence[DeclaredContract],
    budgets: Sequence[BudgetSpec],
    config: tuple[str, str],
    at_us: int,
    timezone: str = "UTC",
) -> None:
    """Store the configuration's contracts and budgets in one transaction.

    `config` is the pair of hash and text of the configuration.
    """
    with engine.begin() as connection:
        await_turn(connection)
        wanted = with_entered(budgets, entered_budgets(connection, at_us))
        counted = _count_before(connection, wanted, at_us)
        entered = standing_rates(connection, at_us)
        for contract in contracts:
            _contract(connection, contract, entered.get(contract.pool), at_us)
        _budgets(connection, wanted, at_us, counted)
        record_versions(connection, at_us)
        declare_zone(connection, timezone, at_us)
        digest, text = config
        known = select(ConfigVersionRow.hash).where(ConfigVersionRow.hash == digest)
        if connection.execute(known).first() is None:
            connection.execute(
                insert(ConfigVersionRow), [{"hash": digest, "yaml": text, "applied_us": at_us}]
            )


def carry_budgets(
    connection: Connection, at_us: int, configured: Mapping[str, BudgetSpec | None] | None = None
) -> int:
    """Apply the budgets that people entered. Return how many budgets changed.

    `configured` holds the configuration's budgets whose entries were withdrawn, `None` where it
    names no such budget. A host of a version that does not know entered budgets retires them when
    it starts; the writer of any other host reactivates them by this call.
    """
    if not configured and not _apart(connection, at_us):
        return 0
    await_turn(connection)
    stored = _in_force(connection)
    base = {**stored, **(configured or {})}
    wanted = with_entered(filter(None, base.values()), entered_budgets(connection, at_us))
    changed = set(wanted) ^ set(stored.values())
    if changed:
        _budgets(connection, wanted, at_us, _count_before(connection, wanted, at_us))
        record_versions(connection, at_us)
    return len({spec.id for spec in changed})


def _apart(connection: Connection, at_us: int) -> bool:
    """Return whether a stored budget differs from the entered one."""
    entered = entered_budgets(connection, at_us)
    if not entered:
        return False
    stored = _in_force(connection)
    return set(with_entered(stored.values(), entered)) != set(stored.values())


def _in_force(connection: Connection) -> dict[str, BudgetSpec]:
    columns = [getattr(BudgetRow, name) for name in BudgetSpec.__dataclass_fields__]
    query = select(*columns).where(BudgetRow.retired_us.is_(None))
    return {spec.id: spec for spec in (BudgetSpec(*row) for row in connection.execute(query))}


def other_billed_pools(connection: Connection, pools: Collection[str], at_us: int) -> list[str]:
    """Return pools with a contract on that UTC day that are not among `pools`.

    A pool that was removed from the file or renamed still has its GPUs. Its contract was not ended,
    so its hours accrue although nothing uses them.
    """
    day = datetime.fromtimestamp(at_us / 1e6, UTC).date()
    newest = select(func.max(GpuContractRow.id)).group_by(GpuContractRow.pool)
    goes_on = or_(GpuContractRow.until.is_(None), GpuContractRow.until >= day)
    query = (
        select(GpuContractRow.pool)
        .where(GpuContractRow.id.in_(newest), goes_on, GpuContractRow.simulated.is_(False))
        .where(GpuContractRow.pusd_per_hour.is_not(None))
        .order_by(GpuContractRow.pool)
    )
    return [name for name in connection.execute(query).scalars() if name not in pools]


def _contract(
    connection: Connection, contract: DeclaredContract, entered: ManualEntry | None, at_us: int
) -> None:
    wanted = apply_rate(asdict(contract), entered)
    columns = [GpuContractRow.__table__.c[name] for name in wanted]
    query = (
        select(*columns, GpuContractRow.recorded_us)
        .where(GpuContractRow.pool == contract.pool)
        .order_by(GpuContractRow.recorded_us.desc(), GpuContractRow.id.desc())
        .limit(1)
    )
    latest = connection.execute(query).mappings().first()
    # A version declared by a host whose clock is ahead is still the older version.
    since_us = at_us if latest is None else max(at_us, latest["recorded_us"])
    if latest is None or {name: latest[name] for name in wanted} != wanted:
        connection.execute(insert(GpuContractRow), [{**wanted, "recorded_us": since_us}])


def _count_before(connection: Connection, budgets: Sequence[BudgetSpec], at_us: int) -> Counted:
    """Count what new budgets begin with while money may move, then lock money movements.

    The caller holds the lock of declarations.
    """
    counted = count_ended(connection, _sweeps(_stored(connection), budgets, at_us))
    serialize_declarations(connection)
    serialize_claims(connection)  # decides whether waived or posted amounts count in new windows
    return counted


def _stored(connection: Connection) -> dict[str, _KnownContract]:
    columns = (BudgetRow.timezone, BudgetRow.limit_pusd, BudgetRow.hard, BudgetRow.retired_us)
    rows = connection.execute(select(BudgetRow.id, *columns))
    return {row[0]: _KnownContract(*row[1:]) for row in rows}


def _budgets(
    connection: Connection, budgets: Sequence[BudgetSpec], at_us: int, counted: Counted
) -> None:
    stored = _stored(connection)
    for spec in budgets:
        values = {**asdict(spec), "retired_us": None}
        if spec.id in stored:
            connection.execute(update(BudgetRow).where(BudgetRow.id == spec.id).values(**values))
        else:
            connection.execute(insert(BudgetRow), [{**values, "id": spec.id, "created_us": at_us}])
    gone = set(stored) - {spec.id for spec in budgets}
    if gone:
        connection.execute(
            update(BudgetRow)
            .where(BudgetRow.id.in_(gone), BudgetRow.retired_us.is_(None))
            .values(retired_us=at_us)
        )
    for sweep in _sweeps(stored, budgets, at_us):
        backfill(connection, sweep, counted)


def _sweeps(
    stored: Mapping[str, _KnownContract], budgets: Sequence[BudgetSpec], at_us: int
) -> list[BudgetSweep]:
    """Return the windows to fill, own budgets' windows first, which are locked in sequence."""
    ordered = sorted(budgets, key=lambda spec: account_order(spec.id, 0))
    wanted = {spec.id for spec in ordered}
    found, of_defaults = [], []
    for spec in ordered:
        known, window = stored.get(spec.id), _window(spec, at_us)
        begins = known is None or not known.counts_as(spec)
        if is_default(spec.scope):
            of_defaults += _of_default(spec, stored, wanted, window, begins=begins)
        elif begins:  # another limit alone moves no money: only desks know what of it is held
            zones = {row.timezone for row in (known, _bound_by(stored, spec.id)) if row}
            found.append(BudgetSweep(spec.as_line(), window, moved=bool(zones - {spec.timezone})))
    return [*found, *of_defaults]


def _of_default(
    spec: BudgetSpec,
    stored: Mapping[str, _KnownContract],
    wanted: set[str],
    window: CalendarWindow,
    *,
    begins: bool,
) -> list[BudgetSweep]:
    """Return sweeps that start accounts newly bound by a default, with their spending so far."""
    line = spec.as_line()
    if begins:
        own = frozenset(name for name in wanted if default_of(name) == spec.id)
        moved = any(
            row.timezone != spec.timezone
            for name, row in stored.items()
            if spec.id in (name, default_of(name))
        )
        return [BudgetSweep(line, window, own, moved=moved)]
    left = {name: row for name, row in stored.items() if row.retired_us is None}
    return [
        BudgetSweep(line._replace(id=name, scope=scope_of(name)), window,
                    moved=row.timezone != spec.timezone)
        for name, row in left.items()
        if name not in wanted and default_of(name) == spec.id
    ]  # fmt: skip


def _bound_by(stored: Mapping[str, _KnownContract], budget_id: str) -> _KnownContract | None:
    """Return the default that bound a name before it had its own budget, even if retired."""
    return stored.get(default_of(budget_id) or "")


def _window(spec: BudgetSpec, at_us: int) -> CalendarWindow:
    return window_at(cast("Period", spec.period), spec.timezone, at_us // 10**6)
