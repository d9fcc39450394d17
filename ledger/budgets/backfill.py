"""Spending before a budget's declaration in its window: exact, from the attempts.

A budget that is new, comes back or changes its calendar in mid-period finds attempts that held
nothing on it. Each gets its row in `holds`, ended and marked `booked`, so that the window is the
sum of its holds as ever. No host was granted that money: it stands as the grant of `NO_HOST`, or
hosts could spend it once more. What hosts hold idle beyond the limit their desks give back.
An attempt under way is owed at its bound until it ends (`under_way`). A default's accounts are
filled together: their number makes the statements longer to run, and no more of them.
"""

from collections.abc import Collection
from dataclasses import replace

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    String,
    and_,
    exists,
    insert,
    literal,
    null,
    select,
    update,
)

from ledger.budgets.binding import BudgetLine, is_bound_by
from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import BY_PREFIX, valued_tag
from ledger.budgets.spending import (
    CountedAttempts,
    column_of,
    default_spending,
    scope_spending,
    sharers_of,
)
from ledger.budgets.under_way import BookedChange, apply_booked
from ledger.budgets.window_sums import AccountFilter, held_accounts, total_windows
from ledger.budgets.windows import CalendarWindow
from ledger.journals.records import HoldState
from ledger.orm.base import Stored
from ledger.orm.books import AttemptRow
from ledger.orm.budgets import BOOKED, HoldRow
from ledger.orm.types import exact_sum


def backfill_default(
    connection: Connection,
    default: BudgetLine,
    window: CalendarWindow,
    *,
    own: Collection[str],
    moved: bool,
) -> None:
    """Fill the windows of all accounts that a default binds, except `own`, in one sweep.

    `default` is the line of `user:*` or `tag:run=*`; `own` are the accounts that have a budget of
    their own.
    """
    spending = default_spending(connection, default, window)
    if own:
        spending = replace(spending, where=and_(spending.where, spending.account.not_in(own)))

    def mine(column: Stored[str]) -> ColumnElement[bool]:
        bound = is_bound_by(column, default.id)
        return and_(bound, column.not_in(own)) if own else bound

    is_hard, teams = default.hard, valued_tag(default.scope) is not None
    _sweep(connection, spending, mine, window, hard=is_hard, moved=moved)
    kind = BY_PREFIX[default.scope.partition(":")[0]]
    for name, others in sharers_of(connection, kind).items():
        account = budget_key(kind.scope(name), default.period)
        if account not in own:
            shared = CountedAttempts(
                AttemptRow, literal(account, String), column_of(kind).in_(others)
            )
            _sweep(connection, shared, mine, window, hard=is_hard, moved=False)
    accounts = held_accounts(connection, mine, window.start_s)
    total_windows(connection, accounts, mine, window.start_s, hard=is_hard, teams=teams)


def backfill_budget(
    connection: Connection,
    scope: str,
    budget_id: str,
    window: CalendarWindow,
    *,
    limit_pusd: int | None,
    moved: bool,
) -> None:
    """Count what the window has seen of the scope; `limit_pusd` is `None` for a soft budget.

    `moved`: the calendar changed, and what was held in its other windows belongs to this one.
    """
    spending = scope_spending(connection, scope, budget_id, window)

    def mine(column: Stored[str]) -> ColumnElement[bool]:
        return column == budget_id

    is_hard = limit_pusd is not None
    _sweep(connection, spending, mine, window, hard=is_hard, moved=moved)
    total_windows(connection, [budget_id], mine, window.start_s, hard=is_hard)


def _sweep(
    connection: Connection,
    spending: CountedAttempts,
    mine: AccountFilter,
    window: CalendarWindow,
    *,
    hard: bool,
    moved: bool,
) -> None:
    """Give every attempt of the window that the accounts miss its hold there."""
    opened = replace(
        spending,
        where=and_(
            spending.where,
            AttemptRow.opened_us >= window.start_s * 10**6,
            AttemptRow.opened_us < window.end_s * 10**6,
        ),
    )
    if moved:
        left = _move(connection, mine, window, opened)
        for start in sorted({start for _, start in left}):
            total_windows(connection, [name for name, of in left if of == start], mine, start)
        _move_open(connection, mine, window, opened)
    _add_missed(connection, window, opened)
    _add_open(connection, window, opened, hard=hard)


def _add_missed(connection: Connection, window: CalendarWindow, opened: CountedAttempts) -> None:
    """Add a booked hold for each ended attempt that has none on its account."""
    missed = (
        select(
            AttemptRow.attempt_id,
            opened.account,
            literal(window.start_s, BigInteger),
            AttemptRow.cost_pusd,
            literal(BOOKED, String),
            AttemptRow.cost_pusd,
        )
        .select_from(opened.rows)
        .where(opened.where, AttemptRow.cost_pusd.is_not(None), ~_has_hold(opened))
    )
    connection.execute(insert(HoldRow).from_select(_HOLD, missed))


_HOLD = ["attempt_id", "budget_id", "window", "amount_pusd", "state", "actual_pusd"]


def _has_hold(opened: CountedAttempts) -> ColumnElement[bool]:
    hold = select(literal(1)).select_from(HoldRow)
    return exists(
        hold.where(
            HoldRow.attempt_id == AttemptRow.attempt_id, HoldRow.budget_id == opened.account
        ).correlate_except(HoldRow)
    )


def _add_open(
    connection: Connection, window: CalendarWindow, opened: CountedAttempts, *, hard: bool
) -> None:
    """An attempt under way has its hold, of a hard budget its bound, which no host was granted."""
    under_way = and_(opened.where, AttemptRow.settled_us.is_(None))
    missed = (
        select(
            AttemptRow.attempt_id,
            opened.account,
            literal(window.start_s, BigInteger),
            AttemptRow.bound_pusd if hard else literal(0, BigInteger),
            literal(BOOKED if hard else HoldState.HELD.value, String),
            null(),
        )
        .select_from(opened.rows)
        .where(under_way, ~_has_hold(opened))
    )
    connection.execute(insert(HoldRow).from_select(_HOLD, missed))
    if not hard:
        return
    of_hold = and_(AttemptRow.attempt_id == HoldRow.attempt_id, HoldRow.budget_id == opened.account)
    bound = (
        select(AttemptRow.bound_pusd)
        .select_from(opened.rows)
        .where(of_hold, AttemptRow.bound_pusd > 0, under_way)
        .correlate(HoldRow)
    )
    counted_only = and_(
        HoldRow.window == window.start_s,
        HoldRow.state == HoldState.HELD.value,
        HoldRow.amount_pusd == 0,
        bound.exists(),
    )
    values = {"state": BOOKED, "amount_pusd": bound.scalar_subquery()}
    connection.execute(update(HoldRow).where(counted_only).values(**values))
    # A lost one, whose end may still be found, corrects what is booked of it.
    attempt = (
        select(AttemptRow.attempt_id)
        .select_from(opened.rows)
        .where(opened.where, of_hold)
        .correlate(HoldRow)
    )
    counted_lost = and_(
        HoldRow.window == window.start_s,
        HoldRow.state == HoldState.SUSPENSE.value,
        HoldRow.amount_pusd == 0,
        attempt.exists(),
    )
    ended = {"state": BOOKED, "amount_pusd": HoldRow.actual_pusd}
    connection.execute(update(HoldRow).where(counted_lost).values(**ended))


def _move(
    connection: Connection, mine: AccountFilter, window: CalendarWindow, opened: CountedAttempts
) -> list[tuple[str, int]]:
    """Ended holds of the window's attempts come to it; returns the windows that they left."""
    ended = and_(opened.where, AttemptRow.cost_pusd.is_not(None))
    elsewhere = and_(
        mine(HoldRow.budget_id),
        HoldRow.window != window.start_s,
        HoldRow.actual_pusd.is_not(None),
        HoldRow.attempt_id.in_(select(AttemptRow.attempt_id).select_from(opened.rows).where(ended)),
    )
    windows = select(HoldRow.budget_id, HoldRow.window).where(elsewhere).distinct()
    left = [(row[0], row[1]) for row in connection.execute(windows)]
    connection.execute(
        update(HoldRow)
        .where(elsewhere)
        .values(window=window.start_s, state=BOOKED, amount_pusd=HoldRow.actual_pusd)
    )
    return left


def _move_open(
    connection: Connection, mine: AccountFilter, window: CalendarWindow, opened: CountedAttempts
) -> None:
    """Holds of the window's attempts under way come to it as if they held nothing yet.

    What stood behind no host in their own windows stands there no more.
    """
    attempts = select(AttemptRow.attempt_id).select_from(opened.rows)
    elsewhere = and_(
        mine(HoldRow.budget_id),
        HoldRow.window != window.start_s,
        HoldRow.actual_pusd.is_(None),
        HoldRow.attempt_id.in_(attempts.where(opened.where, AttemptRow.settled_us.is_(None))),
    )
    owed = (
        select(HoldRow.budget_id, HoldRow.window, exact_sum(HoldRow.amount_pusd))
        .where(elsewhere, HoldRow.state == BOOKED)
        .group_by(HoldRow.budget_id, HoldRow.window)
    )
    for budget_id, start, pusd in connection.execute(owed).all():
        apply_booked(connection, budget_id, start, BookedChange(granted_pusd=-int(pusd)))
    values = {"window": window.start_s, "state": HoldState.HELD.value, "amount_pusd": 0}
    connection.execute(update(HoldRow).where(elsewhere).values(**values))
