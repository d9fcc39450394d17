"""Versions of budgets: one row for each change, never edited.

Brokers read a budget's own row, which changes with the configuration. `declare` adds a version in
the same transaction, so that a later edit of the row can be detected: versions are part of the
audit log, and `verify` compares each budget with its newest version.
"""

from collections.abc import Generator

from sqlalchemy import Connection, func, insert, select

from ledger.orm.budgets import BudgetRow, BudgetVersionRow

SAID = ("scope", "period", "limit_pusd", "hard", "timezone", "retired_us")
_FIRST = select(BudgetVersionRow.budget_id, func.min(BudgetVersionRow.recorded_us)).group_by(
    BudgetVersionRow.budget_id
)
_LAST = select(BudgetVersionRow.budget_id, func.max(BudgetVersionRow.recorded_us)).group_by(
    BudgetVersionRow.budget_id
)
_Said = dict[str, tuple[object, ...]]


def record_versions(connection: Connection, at_us: int) -> int:
    """Add a version of each budget that differs from its newest one. Return the number."""
    newest = _newest(connection)
    recorded = {row[0]: row[1] for row in connection.execute(_LAST)}
    rows = [
        # Versions are in time order, even if this clock is behind the previous author's.
        {
            "budget_id": budget_id,
            "recorded_us": max(at_us, recorded.get(budget_id, 0)),
            **dict(zip(SAID, said, strict=True)),
        }
        for budget_id, said in sorted(_budgets(connection).items())
        if newest.get(budget_id) != said
    ]
    if rows:
        connection.execute(insert(BudgetVersionRow), rows)
    return len(rows)


def budgets_are_as_said(connection: Connection) -> Generator[tuple[str, str], None, None]:
    """Yield faults of budgets that are missing or differ from their newest version.

    A budget without versions was made before versions existed: the next start writes the first.
    """
    budgets = _budgets(connection)
    first = {row[0]: int(row[1]) for row in connection.execute(_FIRST)}
    for budget_id, created_us in connection.execute(select(BudgetRow.id, BudgetRow.created_us)):
        if first and created_us > first.get(budget_id, min(first.values()) - 1):
            yield f"budgets {budget_id}", "it was made after it was declared, or never was declared"
    for budget_id, said in sorted(_newest(connection).items()):
        found = budgets.get(budget_id)
        if found is None:
            yield f"budgets {budget_id}", "it was declared, and is gone"
        elif found != said:
            names = [n for n, a, b in zip(SAID, found, said, strict=True) if a != b]
            yield f"budgets {budget_id}", f"it is not what was declared: {', '.join(names)}"


def _budgets(connection: Connection) -> _Said:
    query = select(BudgetRow.id, *(getattr(BudgetRow, name) for name in SAID))
    return {row[0]: tuple(row[1:]) for row in connection.execute(query)}


def _newest(connection: Connection) -> _Said:
    newest = select(func.max(BudgetVersionRow.seq)).group_by(BudgetVersionRow.budget_id)
    columns = (getattr(BudgetVersionRow, name) for name in SAID)
    query = select(BudgetVersionRow.budget_id, *columns).where(BudgetVersionRow.seq.in_(newest))
    return {row[0]: tuple(row[1:]) for row in connection.execute(query)}
