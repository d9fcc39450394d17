"""Attempts that were open, or not yet read, when a budget was declared.

They were sent without a hold on the budget, but count in it: at their bound until they end. The
writer compares each open record with the budgets in force, because its worker may have learned of
them late. That money was granted to no host: it is part of the grant of `NO_HOST`, like earlier
spending. A hold in a window of the budget's previous calendar counts as zero.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

from sqlalchemy import Connection, func, insert, select, update

from ledger.budgets.binding import BoundBudgets, BudgetLine, binding
from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.scopes import request_scopes, target_scopes
from ledger.budgets.windows import Period, window_at
from ledger.journals.records import AttemptOpened, Hold
from ledger.orm.budgets import NO_HOST, BudgetVersionRow, BudgetWindowRow, GrantRow

NAMES_LIMIT = 4096  # sets of scopes whose budgets are cached
_US = 1_000_000
_NEWEST = select(func.max(BudgetVersionRow.seq))
_SINCE = select(BudgetVersionRow.budget_id, func.max(BudgetVersionRow.recorded_us)).group_by(
    BudgetVersionRow.budget_id
)


class BookedChange(NamedTuple):
    """A change of a window's spending and of its grant of `NO_HOST`.

    `counted_pusd` is spent without any grant, while the budget is soft.
    """

    spent_pusd: int = 0
    granted_pusd: int = 0
    counted_pusd: int = 0

    def add(self, other: "BookedChange") -> "BookedChange":
        return BookedChange(
            self.spent_pusd + other.spent_pusd,
            self.granted_pusd + other.granted_pusd,
            self.counted_pusd + other.counted_pusd,
        )


class SplitHolds(NamedTuple):
    """The holds of an attempt: those that it was sent with, and those booked later."""

    held: tuple[Hold, ...]
    booked: tuple[Hold, ...] = ()


class BudgetsInForce:
    """The declared budgets of one writer, read again after changes."""

    def __init__(self) -> None:
        self._newest: int | None = None
        self._by_scope: dict[str, list[BudgetLine]] = {}
        self._since_us: dict[str, int] = {}
        self._bound: dict[tuple[str, ...], tuple[tuple[str, BudgetLine], ...]] = {}
        self._starts: dict[tuple[str, int], bool] = {}

    def refresh(self, connection: Connection) -> None:
        """Read changed budgets before records are read, and lock out declarations until commit."""
        serialize_declarations(connection, shared=True)
        newest = connection.execute(_NEWEST).scalar_one()
        if newest == self._newest:
            return
        self._by_scope, self._bound, self._starts = {}, {}, {}
        for line in BoundBudgets(connection).in_force():
            self._by_scope.setdefault(line.scope, []).append(line)
        self._since_us = {row[0]: row[1] for row in connection.execute(_SINCE)}
        self._newest = newest

    def split(self, opened: AttemptOpened) -> SplitHolds:
        """Return the holds of a new attempt, and the holds that it lacks."""
        if self._newest is None:
            return SplitHolds(opened.holds)
        held = {hold.scope: hold for hold in opened.holds}
        for account, line in self._lines(opened):
            hold = held.get(account)
            if hold is None or not self._is_of_calendar(line, hold.window):
                return self._split(opened)
            if line.hard and not hold.amount_pusd and opened.bound_pusd:
                return self._split(opened)
        return SplitHolds(opened.holds)

    def _split(self, opened: AttemptOpened) -> SplitHolds:
        held = {hold.scope: hold for hold in opened.holds}
        booked = []
        for account, line in self._lines(opened):
            hold = held.get(account)
            if hold is None or not self._is_of_calendar(line, hold.window):
                window = window_at(
                    cast("Period", line.period), line.timezone, opened.opened_us // _US
                )
                if window.end_s * _US <= self._since_us.get(line.id, 0):
                    continue  # a budget begins with the window that it was declared in
                hold = held[account] = Hold(account, window.start_s, 0)
            if line.hard and not hold.amount_pusd:
                del held[account]
                booked.append(Hold(hold.scope, hold.window, opened.bound_pusd))
        return SplitHolds(tuple(held.values()), tuple(booked))

    def _is_of_calendar(self, line: BudgetLine, start: int) -> bool:
        """Return whether a window of the budget's current calendar starts then."""
        known = self._starts.get((line.id, start))
        if known is None:
            if len(self._starts) >= NAMES_LIMIT:
                self._starts.clear()
            window = window_at(cast("Period", line.period), line.timezone, start)
            known = self._starts[line.id, start] = window.start_s == start
        return known

    def _lines(self, opened: AttemptOpened) -> tuple[tuple[str, BudgetLine], ...]:
        """Return the budgets that bind an attempt, with the accounts that it counts on."""
        # Cached by the scopes themselves, so that no property of a scope can be missing in the key.
        scopes = (*request_scopes(opened, opened.model), *target_scopes(opened))
        found = self._bound.get(scopes)
        if found is None:
            if len(self._bound) >= NAMES_LIMIT:
                self._bound.clear()
            found = self._bound[scopes] = tuple(binding(self._by_scope, scopes))
        return found


def apply_booked(connection: Connection, budget_id: str, start: int, change: BookedChange) -> None:
    """Change the grant of `NO_HOST` and the window's granted sum. The window must be locked."""
    window = (BudgetWindowRow.budget_id == budget_id, BudgetWindowRow.window == start)
    granted = connection.execute(select(BudgetWindowRow.granted_pusd).where(*window)).scalar_one()
    after = {"granted_pusd": granted + change.granted_pusd}
    connection.execute(update(BudgetWindowRow).where(*window).values(**after))
    nobody = (GrantRow.budget_id == budget_id, GrantRow.window == start, GrantRow.host == NO_HOST)
    found = connection.execute(
        select(GrantRow.granted_pusd, GrantRow.spent_pusd).where(*nobody)
    ).first()
    if found is None:
        key = {"budget_id": budget_id, "window": start, "host": NO_HOST}
        sums = {"spent_pusd": change.spent_pusd, "granted_pusd": change.granted_pusd}
        connection.execute(insert(GrantRow), [{**key, **sums}])
        return
    values = {"granted_pusd": found[0] + change.granted_pusd}
    values["spent_pusd"] = found[1] + change.spent_pusd
    connection.execute(update(GrantRow).where(*nobody).values(**values))


def merge_booked(
    into: dict[tuple[str, int], BookedChange], holds: Sequence[Hold], change: BookedChange
) -> None:
    """Add a change to the window of each hold."""
    for hold in holds:
        window = hold.scope, hold.window
        into[window] = into.get(window, BookedChange()).add(change)
