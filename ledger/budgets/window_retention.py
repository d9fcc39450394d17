"""Removal of old windows that a default binds, by adding them to the default's own window.

Users and tag values make windows without limit. A window is removed if nothing was spent in it, or
if all its spending is of retired attempts. Its spending and grants are added to the default's
window of the same start, so that `ledger verify` finds equal sums. Windows of an account's own
budget stay.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from ledger.budgets.binding import default_of, is_bound_by, is_default
from ledger.budgets.open_claims import serialize_claims
from ledger.database import reading
from ledger.orm.budgets import NO_HOST, BudgetAlertRow, BudgetRow, BudgetWindowRow, GrantRow
from ledger.orm.condensings import RetiredHoldsRow

LONGEST_S = 33 * 86_400  # the longest window, and a margin for clock differences
UNUSED_DAYS = 35  # windows without spending are removed after this time
AT_ONCE = 500
_Key = tuple[str, int]  # budget, start of the window


def fold_windows(engine: Engine, *, before_us: int) -> int:
    """Fold some windows that ended before `before_us` into their defaults'. Return the number."""
    with reading(engine) as connection:
        query = _foldable(connection, min(before_us // 10**6, _now_s(connection)) - LONGEST_S)
        if query is None or connection.execute(query).first() is None:
            return 0
    with engine.begin() as connection:
        serialize_claims(connection)  # one host at a time, and no claim may start to count
        found = {(row[0], row[1]): int(row[2]) for row in connection.execute(query)}
        gone = tuple_(RetiredHoldsRow.budget_id, RetiredHoldsRow.window).in_([*found])
        holds = select(RetiredHoldsRow.budget_id, RetiredHoldsRow.window, RetiredHoldsRow.holds)
        held = {(row[0], row[1]): row[2] for row in connection.execute(holds.where(gone))}
        spent, counts = Counter[_Key](), Counter[_Key]()
        for (budget_id, start), pusd in found.items():
            into = str(default_of(budget_id)), start
            spent[into] += pusd
            counts[into] += held.get((budget_id, start), 0)
        for key in sorted(spent):
            if spent[key]:
                _add(connection, key, spent[key], counts[key])
        for table in (GrantRow, BudgetAlertRow, RetiredHoldsRow, BudgetWindowRow):
            _delete(connection, table, [*found])
    return len(found)


def _now_s(connection: Connection) -> int:
    """Return the database's time, so that a host whose clock is ahead removes no live window.

    SQLite has one host and needs no limit.
    """
    if connection.dialect.name != "postgresql":
        return sys.maxsize
    return int(connection.execute(select(func.extract("epoch", func.now()))).scalar_one())


def _foldable(connection: Connection, start_s: int) -> Select[str, int, int] | None:
    """Return a SELECT of old windows without claims, and their spending; `None` without any.

    Windows without a declared default are left for `ledger verify`.
    """
    table, gone = BudgetWindowRow, RetiredHoldsRow
    rows = connection.execute(select(BudgetRow.id, BudgetRow.scope))
    bound = [is_bound_by(table.budget_id, row[0]) for row in rows if is_default(row[1])]
    if not bound:
        return None
    retired = exists().where(
        gone.budget_id == table.budget_id,
        gone.window == table.window,
        gone.actual_pusd == table.spent_pusd,
    )
    return (
        select(table.budget_id, table.window, table.spent_pusd)
        .where(table.window < start_s, table.claimed_pusd == 0, or_(*bound))
        .where(table.budget_id.not_in(select(BudgetRow.id)), or_(table.spent_pusd == 0, retired))
        .order_by(table.window, table.budget_id)
        .limit(AT_ONCE)
    )


def _add(connection: Connection, key: _Key, pusd: int, holds: int) -> None:
    """Add spending, granted to no host, to the default's window."""
    granted = {"spent_pusd": pusd, "granted_pusd": pusd}
    _increase(connection, BudgetWindowRow, key, granted, {"claimed_pusd": 0})
    _increase(connection, GrantRow, key, granted, {"host": NO_HOST})
    _increase(connection, RetiredHoldsRow, key, {"actual_pusd": pusd, "holds": holds}, {})


def _increase(
    connection: Connection, table: Any, key: _Key, by: dict[str, int], made: dict[str, Any]
) -> None:
    """Add to a row, inserting it if missing. Python adds the totals, which may exceed 64 bits."""
    here = and_(table.budget_id == key[0], table.window == key[1])
    if "host" in made:
        here = and_(here, table.host == made["host"])
    known = connection.execute(select(*[getattr(table, name) for name in by]).where(here)).first()
    if known is None:
        row = {"budget_id": key[0], "window": key[1], **made, **by}
        connection.execute(insert(table), [row])
        return
    sums = {name: int(before) + by[name] for name, before in zip(by, known, strict=True)}
    connection.execute(update(table).where(here).values(**sums))


def _delete(connection: Connection, table: Any, keys: Sequence[_Key]) -> None:
    here = and_(table.budget_id == bindparam("of_budget"), table.window == bindparam("of_window"))
    rows = [{"of_budget": budget_id, "of_window": start} for budget_id, start in keys]
    if rows:
        connection.execute(delete(table).where(here), rows)
