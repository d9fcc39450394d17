"""What the books are kept by, to look at: budgets, GPU contracts, the log of changes."""

from datetime import UTC, datetime
from typing import Annotated, Any, cast

import msgspec
from sqlalchemy import and_, func, select

from gateway.admin.verb import Nothing, Place, Verb, listed
from gateway.auth import BUDGETS, EVERY_TEAM
from ledger.binding import BudgetLine, Budgets, each_of, is_default, pattern_of, scope_of
from ledger.escrow import budget_key
from ledger.money import usd_exact
from ledger.orm import BudgetWindow, GpuContract
from ledger.registers import changes
from ledger.windows import Period, Window, window_at

LISTED, LISTED_MOST = 50, 1_000


class Newest(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MOST)] = LISTED


def _budgets(place: Place, _: Nothing) -> dict[str, Any]:
    """With what the window that holds this moment has seen; of one's own team, or all.

    A default (`user:*`) is followed by everybody whom it binds and who has spent in that window.
    """
    whose = place.identity
    team = (
        None if whose is None or BUDGETS + EVERY_TEAM in whose.scopes else f"team:{whose.team_id}"
    )
    told = []
    with place.ledger.connect() as connection:
        budgets = Budgets(connection)
        for bound in sorted(budgets.in_force()):
            at_s = place.now_us // 10**6
            window = window_at(cast("Period", bound.period), bound.timezone, at_s)
            mine = BudgetWindow.budget_id == bound.id
            if is_default(bound.scope):
                mine = BudgetWindow.budget_id.like(pattern_of(bound.id))
            query = select(BudgetWindow.budget_id, BudgetWindow.spent_pusd).where(
                mine, BudgetWindow.window == window.start_s
            )
            spent = {bound.id: 0} | {row[0]: row[1] for row in connection.execute(query)}
            if team is not None and each_of(team) == bound.scope:
                spent.setdefault(budget_key(team, bound.period), 0)
            told += [
                _line(account, bound, pusd, window)
                for account, pusd in sorted(spent.items())
                if budgets.of(account) == bound and team in (None, scope_of(account))
            ]
    return listed(told)


def _line(account: str, bound: BudgetLine, spent_pusd: int, window: Window) -> dict[str, Any]:
    return {
        "budget": account,
        "scope": scope_of(account),
        "period": bound.period,
        "timezone": bound.timezone,
        "hard": bound.hard,
        "limit_usd": usd_exact(bound.limit_pusd),
        "spent_usd": usd_exact(spent_pusd),
        "since": _moment(window.start_s),
        "until": _moment(window.end_s),
        "default": None if account == bound.id else bound.id,
    }


def _contracts(place: Place, _: Nothing) -> dict[str, Any]:
    """The newest of each pool."""
    table = GpuContract
    newest = select(table.pool, func.max(table.id).label("id")).group_by(table.pool).subquery()
    query = (
        select(*table.__table__.columns)
        .join(newest, and_(newest.c.pool == table.pool, newest.c.id == table.id))
        .order_by(table.pool)
    )
    with place.ledger.connect() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    for row in rows:
        for name in ("pusd_per_hour", "ops_pusd_per_hour"):
            pusd = row.pop(name)
            row[name.replace("pusd", "usd")] = None if pusd is None else usd_exact(pusd)
    found: list[dict[str, Any]] = msgspec.to_builtins(rows)
    return listed(found)


def _changes(place: Place, given: Newest) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        found = changes(connection, given.limit)
    return listed(msgspec.to_builtins(found))


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="seconds")


BUDGETS_LIST = Verb(
    "budgets_list", "GET", "/budgets",
    "The team's budgets and what was spent, or with `budgets:all` everybody's", Nothing, _budgets,
)  # fmt: skip
CONTRACTS_LIST = Verb(
    "contracts_list", "GET", "/contracts", "What own GPUs cost, by pool", Nothing, _contracts
)
CHANGES_LIST = Verb(
    "changes_list", "GET", "/changes",
    "Who changed contracts, prices, policies and keys, from what to what; never a secret",
    Newest, _changes,
)  # fmt: skip
VERBS = (BUDGETS_LIST, CONTRACTS_LIST, CHANGES_LIST)
