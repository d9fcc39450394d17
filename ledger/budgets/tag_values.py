"""Windows of tag values, which clients choose: made at the first hold, limited per team.

A window of `tag:run=*` belongs to the team whose request first named the value, and a team has at
most `VALUES_MOST` values of one tag per window. So a client that invents values uses up only its
own team's share. No window is made for a hold that is refused, here or by another budget. Two hosts
that count at the same time may each add one value too many.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ledger.budgets.binding import (
    VALUES_MOST,
    BoundBudgets,
    default_of,
    is_bound_by,
    scope_of,
)
from ledger.budgets.scopes import valued_tag
from ledger.orm.budgets import BudgetWindowRow


@dataclass(frozen=True, slots=True)
class ValueNeed:
    """A window that a hold of `hold_pusd` needs, for a team's request."""

    budget_id: str
    window: int
    team: str
    hold_pusd: int

    @property
    def key(self) -> tuple[str, int]:
        return self.budget_id, self.window


def is_value(budget_id: str) -> bool:
    """Return whether this is the account of one tag value: `tag:run=42@day`."""
    default = default_of(budget_id)
    return default is not None and valued_tag(scope_of(default)) is not None


def refused_values(
    connection: Connection,
    needs: Iterable[ValueNeed],
    together: Collection[Collection[tuple[str, int]]] = (),
) -> dict[tuple[str, int], int | None]:
    """Return the windows that must not be made, each with the limit that is too low.

    The limit is 0 if the team has the maximum number of values, and `None` if only another window
    of the same hold is refused. `together` lists the windows that each hold needs at once: a new
    window is made only for a hold without refusals. Existing windows are never refused here.
    """
    new: set[tuple[str, int]] = set()
    refused: dict[tuple[str, int], int | None] = {}
    room: Counter[tuple[str, str, int]] = Counter()
    for need in needs:
        if need.key in new or need.key in refused or not is_value(need.budget_id):
            continue
        if _is_made(connection, need.key):
            continue
        budgets = BoundBudgets(connection, [need.budget_id])
        bound, is_own = budgets.of(need.budget_id), budgets.is_own(need.budget_id)
        default = default_of(need.budget_id) or ""
        share = default, need.team, need.window
        if share not in room and not is_own:
            room[share] = VALUES_MOST - _values(connection, *share)
        if bound is None or need.hold_pusd > bound.limit_pusd:
            refused[need.key] = 0 if bound is None else bound.limit_pusd
        elif not is_own and room[share] <= 0:
            refused[need.key] = 0
        else:
            new.add(need.key)
            room[share] -= not is_own
    if refused and together:
        makes = [group for group in map(set, together) if not group & refused.keys()]
        refused |= dict.fromkeys(new.difference(*makes))
    return refused


def owner_of(connection: Connection, budget_id: str, team: str) -> str | None:
    """Return the team in whose share a new window counts, `None` for a budget of its own."""
    if not is_value(budget_id) or BoundBudgets(connection, [budget_id]).is_own(budget_id):
        return None
    return team


def _is_made(connection: Connection, key: tuple[str, int]) -> bool:
    table = BudgetWindowRow
    known = select(table.window).where(table.budget_id == key[0], table.window == key[1])
    return connection.execute(known).first() is not None


def _values(connection: Connection, default_id: str, team: str, window: int) -> int:
    """Return the number of the team's values of the default's tag, at most `VALUES_MOST`."""
    table = BudgetWindowRow
    values = (
        select(table.window)
        .where(table.window == window, table.team_id == team)
        .where(is_bound_by(table.budget_id, default_id))
        .limit(VALUES_MOST)
    )
    return int(connection.execute(select(func.count()).select_from(values.subquery())).scalar_one())
