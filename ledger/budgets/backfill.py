"""Spending before a budget was declared, counted exactly from the attempts of its window.

When a budget is new, returns or changes its calendar, attempts of the window have no hold on it.
Each gets a row in `holds`, ended and marked `booked`, so that the window still equals the sum of
its holds. That money was granted to no host: it becomes the grant of `NO_HOST`, so that hosts
cannot spend it again. Brokers give back grants beyond the limit that lie idle. An open attempt
counts at its bound until it ends (`under_way`). All accounts of a default are filled by the same
statements, so their number does not change the number of statements.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    String,
    and_,
    bindparam,
    literal,
    not_,
    null,
    or_,
    select,
    update,
)

from ledger.budgets.binding import BudgetLine, is_bound_by, is_default
from ledger.budgets.declaring import last_attempt
from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import BY_PREFIX, EACH, valued_tag
from ledger.budgets.spending import (
    CountedAttempts,
    column_of,
    default_spending,
    first_values,
    scope_spending,
    sharers_of,
)
from ledger.budgets.under_way import BookedChange, apply_booked
from ledger.budgets.window_sums import AccountFilter, total_windows
from ledger.budgets.windows import CalendarWindow
from ledger.database import in_groups
from ledger.journals.records import HoldState
from ledger.orm.base import Stored
from ledger.orm.books import LOST, AttemptRow
from ledger.orm.budgets import BOOKED, HoldRow
from ledger.orm.types import exact_sum
from ledger.upserts import insert_of


@dataclass(frozen=True, slots=True)
class BudgetSweep:
    """A budget's window to fill: of one scope, or of all accounts that a default binds.

    `line` is the budget or the default (`user:*`, `tag:run=*`). `own` are accounts of a default
    with a budget of their own. `moved`: the calendar changed, so holds in other windows move to
    this one.
    """

    line: BudgetLine
    window: CalendarWindow
    own: frozenset[str] = frozenset()
    moved: bool = False

    def is_of(self, column: Stored[str]) -> ColumnElement[bool]:
        """Return the SQL condition that a column of budget ids names one of the accounts."""
        if not is_default(self.line.scope):
            return column == self.line.id
        bound = is_bound_by(column, self.line.id)
        return and_(bound, column.not_in(sorted(self.own))) if self.own else bound


class CountedBefore(NamedTuple):
    """Result of the first count: attempts up to the number `until` have their holds.

    The exceptions are `changing`, the ids of attempts that could still change. `values` are the
    values of a default's tag, with their teams.
    """

    names: tuple[str, ...]
    until: int
    changing: Sequence[str]
    values: Mapping[str, str]


Counted = Mapping[str, Sequence[CountedBefore]]
"""By id of a budget's sweep: what was counted before others had to wait."""


def count_ended(connection: Connection, sweeps: Collection[BudgetSweep]) -> Counted:
    """Add missing holds of ended attempts while requests go on.

    The holds are invisible until the transaction commits, and no other code adds them: an attempt
    gets its holds with its row. `backfill` handles everything that may change in the meantime.
    """
    if not sweeps:
        return {}
    until = last_attempt(connection)
    found = {}
    for sweep in sweeps:
        values = _values(connection, sweep)
        found[sweep.line.id] = [
            _count_part(connection, sweep.window, part, until)._replace(values=values)
            for part in _parts(connection, sweep, values)
        ]
    return found


def _count_part(
    connection: Connection, window: CalendarWindow, part: CountedAttempts, until: int
) -> CountedBefore:
    may_change = or_(AttemptRow.settled_us.is_(None), AttemptRow.status == LOST)
    known = and_(part.where, AttemptRow.seq <= until)
    # Queried first: an attempt that ends between the two statements is in both, not in neither.
    ids = select(AttemptRow.attempt_id).select_from(part.rows).where(known, may_change)
    changing = sorted({*connection.execute(ids).scalars()})
    _add_missed(connection, window, replace(part, where=and_(known, not_(may_change))))
    return CountedBefore(part.names, until, changing, {})


def backfill(connection: Connection, sweep: BudgetSweep, counted: Counted | None = None) -> None:
    """Fill the windows of a sweep while spending is locked. `counted` already has its holds."""
    before = (counted or {}).get(sweep.line.id, ())
    values = _values(connection, sweep, before[0] if before else None)
    for number, part in enumerate(_parts(connection, sweep, values)):
        if sweep.moved:
            _move_holds(connection, sweep, part)
        known = before[number] if number < len(before) else None
        if known is None or known.names != part.names:
            _add_missed(connection, sweep.window, part)  # a key or model was added in between
        else:
            since = replace(part, where=and_(part.where, AttemptRow.seq > known.until))
            _add_missed(connection, sweep.window, since)
            for some in in_groups(known.changing):
                changed = replace(part, where=and_(part.where, AttemptRow.attempt_id.in_(some)))
                _add_missed(connection, sweep.window, changed)
        _add_open(connection, sweep.window, part, hard=sweep.line.hard)
    prefix = sweep.line.scope.removesuffix(EACH)
    teams = {budget_key(prefix + name, sweep.line.period): team for name, team in values.items()}
    accounts = () if is_default(sweep.line.scope) else (sweep.line.id,)
    start, hard = sweep.window.start_s, sweep.line.hard
    total_windows(connection, accounts, sweep.is_of, start, hard=hard, teams=teams)


def _values(
    connection: Connection, sweep: BudgetSweep, before: CountedBefore | None = None
) -> dict[str, str]:
    """Return the values of a tag that a default counts: earlier ones and new ones."""
    name = valued_tag(sweep.line.scope)
    if name is None:
        return {}
    if before is None:
        return first_values(connection, name, sweep.window)
    return {**first_values(connection, name, sweep.window, after=before.until), **before.values}


def _parts(
    connection: Connection, sweep: BudgetSweep, values: Collection[str]
) -> list[CountedAttempts]:
    """Return the attempts of the window that count on the accounts of the sweep."""
    line, window, own = sweep.line, sweep.window, sorted(sweep.own)
    if is_default(line.scope):
        spending = default_spending(connection, line, values)
        if own:
            spending = replace(spending, where=and_(spending.where, spending.account.not_in(own)))
        parts = [spending]
        kind = BY_PREFIX[line.scope.partition(":")[0]]
        for name, others in sharers_of(connection, kind).items():
            account = budget_key(kind.scope(name), line.period)
            if account not in own:
                mine, names = column_of(kind).in_(others), (name, *others)
                parts.append(CountedAttempts(AttemptRow, literal(account, String), mine, names))
    else:
        parts = [scope_spending(connection, line.scope, line.id, window)]
    since, until = window.start_s * 10**6, window.end_s * 10**6
    opened = and_(AttemptRow.opened_us >= since, AttemptRow.opened_us < until)
    return [replace(part, where=and_(part.where, opened)) for part in parts]


def _move_holds(connection: Connection, sweep: BudgetSweep, part: CountedAttempts) -> None:
    left = _move(connection, sweep.is_of, sweep.window, part)
    for start in sorted({start for _, start in left}):
        names = [name for name, of in left if of == start]
        total_windows(connection, names, sweep.is_of, start)
    _move_open(connection, sweep.is_of, sweep.window, part)


def _add_missed(connection: Connection, window: CalendarWindow, opened: CountedAttempts) -> None:
    """Add a booked hold for each ended attempt that has none on its account.

    The primary key finds existing holds. An anti-join would be quadratic if the planner assumes an
    empty table: the join reads the rows that the statement itself adds.
    """
    ended = (
        select(
            AttemptRow.attempt_id,
            opened.account,
            literal(window.start_s, BigInteger),
            AttemptRow.cost_pusd,
            literal(BOOKED, String),
            AttemptRow.cost_pusd,
        )
        .select_from(opened.rows)
        .where(opened.where, AttemptRow.cost_pusd.is_not(None))
    )
    _add_holds(connection, ended)


def _add_holds(connection: Connection, holds: Select[*tuple[Any, ...]]) -> None:
    statement = insert_of(connection.dialect)(HoldRow).from_select(_HOLD, holds)
    keys = ["attempt_id", "budget_id"]
    connection.execute(statement.on_conflict_do_nothing(index_elements=keys))


_HOLD = ["attempt_id", "budget_id", "window", "amount_pusd", "state", "actual_pusd"]


def _add_open(
    connection: Connection, window: CalendarWindow, opened: CountedAttempts, *, hard: bool
) -> None:
    """Add a hold for each open attempt.

    On a hard budget the hold is the attempt's bound, granted to no host.
    """
    under_way = and_(opened.where, AttemptRow.settled_us.is_(None))
    open_holds = (
        select(
            AttemptRow.attempt_id,
            opened.account,
            literal(window.start_s, BigInteger),
            AttemptRow.bound_pusd if hard else literal(0, BigInteger),
            literal(BOOKED if hard else HoldState.HELD.value, String),
            null(),
        )
        .select_from(opened.rows)
        .where(under_way)
    )
    _add_holds(connection, open_holds)
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
    # The end of a lost attempt may still be found; it then corrects the booked amount.
    lost = select(AttemptRow.attempt_id, opened.account).select_from(opened.rows)
    found = connection.execute(lost.where(opened.where, AttemptRow.flag == LOST)).all()
    counted_lost = and_(
        HoldRow.attempt_id == bindparam("of_attempt"),
        HoldRow.budget_id == bindparam("of_budget"),
        HoldRow.window == window.start_s,
        HoldRow.state == HoldState.SUSPENSE.value,
        HoldRow.amount_pusd == 0,
    )
    ended = {"state": BOOKED, "amount_pusd": HoldRow.actual_pusd}
    if found:  # one by one: with a join the planner reads all holds
        keys = [{"of_attempt": attempt, "of_budget": account} for attempt, account in found]
        connection.execute(update(HoldRow).where(counted_lost).values(**ended), keys)


def _move(
    connection: Connection, mine: AccountFilter, window: CalendarWindow, opened: CountedAttempts
) -> list[tuple[str, int]]:
    """Move ended holds of the window's attempts to it. Return the windows that they left."""
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
    """Move holds of open attempts to the window, with an amount of zero.

    Amounts granted to no host in the old windows are subtracted there.
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
