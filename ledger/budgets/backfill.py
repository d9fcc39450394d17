"""Spending before a budget's declaration in its window: exact, from the attempts.

A budget that is new, comes back or changes its calendar in mid-period finds attempts that held
nothing on it. Each gets its row in `holds`, ended and marked `booked`, so that the window is the
sum of its holds as ever. No host was granted that money: it stands as the grant of `NO_HOST`, or
hosts could spend it once more. What hosts hold idle beyond the limit their desks give back.
An attempt under way is owed at its bound until it ends (`under_way`).
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    String,
    TableValuedAlias,
    and_,
    column,
    exists,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    true,
    update,
)

from ledger.budgets.binding import VALUES_MOST, BudgetLine, pattern_of
from ledger.budgets.escrow import EscrowError, budget_key
from ledger.budgets.open_claims import claimed_pusd
from ledger.budgets.scopes import BY_PREFIX, EACH, AttemptRows, BudgetScope, valued_tag
from ledger.budgets.under_way import BookedChange, apply_booked
from ledger.budgets.windows import CalendarWindow
from ledger.journals.records import HoldState
from ledger.model_names import counted_names
from ledger.orm.base import Stored
from ledger.orm.books import AttemptRow
from ledger.orm.budgets import BOOKED, NO_HOST, BudgetWindowRow, GrantRow, HoldRow
from ledger.orm.identity import KeyRow
from ledger.orm.types import exact_sum
from ledger.upserts import insert_of


def backfill_default(
    connection: Connection,
    default: BudgetLine,
    window: CalendarWindow,
    *,
    own: Collection[str],
    moved: bool,
) -> None:
    """Fill the windows of all accounts that a default binds, except `own`, in one sweep.

    `default` is the line of `user:*`; `own` are the accounts that have a budget of their own.
    """
    kind = default.scope.partition(":")[0]
    if valued_tag(default.scope) is not None:
        _backfill_values(connection, default, window, own=own, moved=moved)
        return
    column = _column(BY_PREFIX[kind])
    account = literal(f"{kind}:", String) + column + literal(f"@{default.period}", String)
    counted = and_(
        AttemptRow.opened_us >= window.start_s * 10**6,
        AttemptRow.opened_us < window.end_s * 10**6,
    )
    opened = and_(column.is_not(None), account.not_in(own) if own else true(), counted)
    within = and_(opened, AttemptRow.cost_pusd.is_not(None))
    mine: ColumnElement[bool] = HoldRow.budget_id.like(pattern_of(default.id))
    if own:
        mine = and_(mine, HoldRow.budget_id.not_in(own))
    if moved:
        for budget_id, start in _move(connection, mine, window, within):
            _total(connection, budget_id, start)
        _move_open(connection, mine, window, opened)
    _add_missed(connection, account, window, within)
    _add_open(connection, account, window, opened, hard=default.hard)
    for name, others in _sharers(connection, BY_PREFIX[kind]).items():
        other_account = f"{kind}:{name}@{default.period}"
        if other_account not in own:
            shared, ended = and_(column.in_(others), counted), AttemptRow.cost_pusd.is_not(None)
            other = literal(other_account, String)
            _add_missed(connection, other, window, and_(shared, ended))
            _add_open(connection, other, window, shared, hard=default.hard)
    here = and_(mine, HoldRow.window == window.start_s)
    found = select(HoldRow.budget_id).where(here).distinct().order_by(HoldRow.budget_id)
    for budget_id in connection.execute(found).scalars().all():
        spent = _total(connection, budget_id, window.start_s)
        if default.hard:
            _grant(connection, budget_id, window.start_s, spent)


def _backfill_values(
    connection: Connection,
    default: BudgetLine,
    window: CalendarWindow,
    *,
    own: Collection[str],
    moved: bool,
) -> None:
    """Count for each value of a tag what the window has seen of it, up to as many as may be."""
    tag = _tags(connection)
    values = (
        select(tag.c.value)
        .select_from(AttemptRow)
        .join(tag, true())
        .where(
            tag.c.key == valued_tag(default.scope),
            AttemptRow.opened_us >= window.start_s * 10**6,
            AttemptRow.opened_us < window.end_s * 10**6,
        )
    )
    for value in connection.execute(values.distinct().order_by(tag.c.value).limit(VALUES_MOST)):
        scope = f"{default.scope.removesuffix(EACH)}{value[0]}"
        budget_id = budget_key(scope, default.period)
        if budget_id not in own and value[0] != EACH:
            limit = default.limit_pusd if default.hard else None
            backfill_budget(connection, scope, budget_id, window, limit_pusd=limit, moved=moved)


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
    opened = and_(
        _of_scope(connection, scope, window),
        AttemptRow.opened_us >= window.start_s * 10**6,
        AttemptRow.opened_us < window.end_s * 10**6,
    )
    within = and_(opened, AttemptRow.cost_pusd.is_not(None))
    if moved:
        for moved_id, start in _move(connection, HoldRow.budget_id == budget_id, window, within):
            _total(connection, moved_id, start)
        _move_open(connection, HoldRow.budget_id == budget_id, window, opened)
    _add_missed(connection, literal(budget_id, String), window, within)
    is_hard = limit_pusd is not None
    _add_open(connection, literal(budget_id, String), window, opened, hard=is_hard)
    spent = _total(connection, budget_id, window.start_s)
    if limit_pusd is not None:
        _grant(connection, budget_id, window.start_s, spent)


def _add_missed(
    connection: Connection,
    account: ColumnElement[str],
    window: CalendarWindow,
    within: ColumnElement[bool],
) -> None:
    """A booked hold for each attempt that has none on its account."""
    missed = select(
        AttemptRow.attempt_id,
        account,
        literal(window.start_s, BigInteger),
        AttemptRow.cost_pusd,
        literal(BOOKED, String),
        AttemptRow.cost_pusd,
    ).where(within, ~_has_hold(account))
    connection.execute(insert(HoldRow).from_select(_HOLD, missed))


_HOLD = ["attempt_id", "budget_id", "window", "amount_pusd", "state", "actual_pusd"]


def _has_hold(account: ColumnElement[str]) -> ColumnElement[bool]:
    return exists().where(HoldRow.attempt_id == AttemptRow.attempt_id, HoldRow.budget_id == account)


def _add_open(
    connection: Connection,
    account: ColumnElement[str],
    window: CalendarWindow,
    opened: ColumnElement[bool],
    *,
    hard: bool,
) -> None:
    """An attempt under way has its hold, of a hard budget its bound, which no host was granted."""
    under_way = and_(opened, AttemptRow.settled_us.is_(None))
    missed = select(
        AttemptRow.attempt_id,
        account,
        literal(window.start_s, BigInteger),
        AttemptRow.bound_pusd if hard else literal(0, BigInteger),
        literal(BOOKED if hard else HoldState.HELD.value, String),
        null(),
    ).where(under_way, ~_has_hold(account))
    connection.execute(insert(HoldRow).from_select(_HOLD, missed))
    if not hard:
        return
    bound = (
        select(AttemptRow.bound_pusd)
        .where(AttemptRow.attempt_id == HoldRow.attempt_id, AttemptRow.bound_pusd > 0, under_way)
        .where(HoldRow.budget_id == account)
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
    attempt = select(AttemptRow.attempt_id).where(
        opened, AttemptRow.attempt_id == HoldRow.attempt_id, HoldRow.budget_id == account
    )
    counted_lost = and_(
        HoldRow.window == window.start_s,
        HoldRow.state == HoldState.SUSPENSE.value,
        HoldRow.amount_pusd == 0,
        attempt.exists(),
    )
    ended = {"state": BOOKED, "amount_pusd": HoldRow.actual_pusd}
    connection.execute(update(HoldRow).where(counted_lost).values(**ended))


def _of_scope(connection: Connection, scope: str, window: CalendarWindow) -> ColumnElement[bool]:
    """Which attempts fall under a scope, as admission names the scopes of an attempt."""
    prefix, _, name = scope.partition(":")
    kind = BY_PREFIX.get(prefix)
    if kind is None:
        raise EscrowError(f"`{scope}` is no budget scope")
    match kind.rows:
        case AttemptRows.ALL:
            return true()
        case AttemptRows.EXTERNAL:
            return and_(AttemptRow.provider.is_not(None), AttemptRow.simulated.is_(False))
        case AttemptRows.TAGGED:
            return _tag_condition(connection, name)
        case AttemptRows.COLUMN:
            names = _sharers(connection, kind).get(name, [])
            names += _snapshots(connection, kind, name, window)
            return _column(kind).in_([name, *names])


def _sharers(connection: Connection, kind: BudgetScope) -> dict[str, list[str]]:
    """By key, the others that count on its budgets; of nothing but keys there are any."""
    found: dict[str, list[str]] = {}
    if kind.column == AttemptRow.key_id.key:
        query = select(KeyRow.id, KeyRow.counts_on).where(KeyRow.counts_on.is_not(None))
        for other, counts_on in connection.execute(query.order_by(KeyRow.id)):
            for name in counts_on or ():
                found.setdefault(name, []).append(other)
    return found


def _snapshots(
    connection: Connection, kind: BudgetScope, name: str, window: CalendarWindow
) -> list[str]:
    """Models of the window that count on a model's budgets, too."""
    model = AttemptRow.model
    if kind.column != model.key or "/" not in name:
        return []
    query = select(model).where(
        AttemptRow.opened_us >= window.start_s * 10**6,
        AttemptRow.opened_us < window.end_s * 10**6,
        func.lower(model).startswith(name.lower(), autoescape=True),
    )
    return [
        other
        for other in connection.execute(query.distinct().order_by(model)).scalars()
        if other != name and name in counted_names(other)
    ]


def _column(kind: BudgetScope) -> Stored[Any]:
    assert kind.column is not None, f"attempts have no column for `{kind.prefix}:`"
    column: Stored[Any] = getattr(AttemptRow, kind.column)
    return column


def _tag_condition(connection: Connection, name: str) -> ColumnElement[bool]:
    """Attempts with a tag of that name, or of that name and value: `app` or `app=web`."""
    tag = _tags(connection)
    both = tag.c.key + "=" + tag.c.value
    return exists(select(literal(1)).select_from(tag).where(or_(tag.c.key == name, both == name)))


def _tags(connection: Connection) -> TableValuedAlias:
    """Return the tags of an attempt as rows of `key` and `value`."""
    pairs = func.json_each_text if connection.dialect.name == "postgresql" else func.json_each
    return pairs(AttemptRow.tags).table_valued(column("key", String), column("value", String))


def _move(
    connection: Connection,
    mine: ColumnElement[bool],
    window: CalendarWindow,
    within: ColumnElement[bool],
) -> list[tuple[str, int]]:
    """Ended holds of the window's attempts come to it; returns the windows that they left."""
    elsewhere = and_(
        mine,
        HoldRow.window != window.start_s,
        HoldRow.actual_pusd.is_not(None),
        HoldRow.attempt_id.in_(select(AttemptRow.attempt_id).where(within)),
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
    connection: Connection,
    mine: ColumnElement[bool],
    window: CalendarWindow,
    opened: ColumnElement[bool],
) -> None:
    """Holds of the window's attempts under way come to it as if they held nothing yet.

    What stood behind no host in their own windows stands there no more.
    """
    under_way = select(AttemptRow.attempt_id).where(opened, AttemptRow.settled_us.is_(None))
    elsewhere = and_(
        mine,
        HoldRow.window != window.start_s,
        HoldRow.actual_pusd.is_(None),
        HoldRow.attempt_id.in_(under_way),
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


def _total(connection: Connection, budget_id: str, start: int) -> int:
    """Lock the window (made if missing), set what it spent and is claimed to its holds' sums."""
    add = insert_of(connection.dialect)
    zeros = {"spent_pusd": 0, "granted_pusd": 0, "claimed_pusd": 0}
    row = {"budget_id": budget_id, "window": start, **zeros}
    connection.execute(add(BudgetWindowRow).on_conflict_do_nothing(), [row])
    here = and_(BudgetWindowRow.budget_id == budget_id, BudgetWindowRow.window == start)
    connection.execute(select(BudgetWindowRow.spent_pusd).where(here).with_for_update())
    total = select(exact_sum(HoldRow.actual_pusd)).where(
        HoldRow.budget_id == budget_id, HoldRow.window == start
    )
    spent = int(connection.execute(total).scalar_one())
    claimed = claimed_pusd(connection, budget_id, start)
    values = {"spent_pusd": spent, "claimed_pusd": claimed}
    connection.execute(update(BudgetWindowRow).where(here).values(**values))
    return spent


def _grant(connection: Connection, budget_id: str, start: int, spent_pusd: int) -> None:
    """Grant to no host what none spent; hosts keep what they were granted.

    Their desks lend of it as they know it: what was taken from them here would be spent twice.
    Where all of it is more than the limit, each desk gives back what lies idle with it.
    """
    add = insert_of(connection.dialect)
    here = and_(GrantRow.budget_id == budget_id, GrantRow.window == start)
    query = select(GrantRow.host, GrantRow.granted_pusd, GrantRow.spent_pusd).where(here)
    hosts = {row[0]: (row[1], row[2]) for row in connection.execute(query.order_by(GrantRow.host))}
    hosts.pop(NO_HOST, None)
    booked = max(0, spent_pusd - sum(spent for _, spent in hosts.values()))
    owed = booked + _owed(connection, budget_id, start)
    total = owed + sum(granted for granted, _ in hosts.values())
    nobody = {"budget_id": budget_id, "window": start, "host": NO_HOST}
    amount = {"granted_pusd": owed, "spent_pusd": booked}
    if owed:
        connection.execute(add(GrantRow).on_conflict_do_nothing(), [{**nobody, **amount}])
    connection.execute(update(GrantRow).where(here, GrantRow.host == NO_HOST).values(**amount))
    window = and_(BudgetWindowRow.budget_id == budget_id, BudgetWindowRow.window == start)
    connection.execute(update(BudgetWindowRow).where(window).values(granted_pusd=total))


def _owed(connection: Connection, budget_id: str, start: int) -> int:
    """Return the bounds of what is under way and was granted to nobody."""
    query = select(exact_sum(HoldRow.amount_pusd)).where(
        HoldRow.budget_id == budget_id,
        HoldRow.window == start,
        HoldRow.state == BOOKED,
        HoldRow.actual_pusd.is_(None),
    )
    return int(connection.execute(query).scalar_one())
