"""Read operations on the books: budgets, GPU contracts, the log of changes."""

from typing import Annotated, Any

import msgspec
from sqlalchemy import and_, func, select

from gateway.auth import BUDGETS, CHANGES, CONTRACTS, EVERY_TEAM
from gateway.clock import moment_text
from gateway.control.admin.verb import NoInput, OperationContext, list_document, verb
from ledger.budgets.scopes import TEAM
from ledger.budgets.states import BudgetState, budget_states
from ledger.money import usd_exact
from ledger.orm.tables import GpuContractRow
from ledger.seals.audit_log import changes

LISTED, LISTED_MOST = 50, 1_000


class LedgerChangesInput(msgspec.Struct, forbid_unknown_fields=True):
    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MOST)] = LISTED


@verb(
    "GET /budgets",
    BUDGETS,
    None,
    "The team's budgets and what was spent, or with `budgets:all` everybody's",
    NoInput,
)
def budgets_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    """Return budgets with the spending of their current window, of the caller's team or all.

    A default (`user:*`) is followed by every account that it binds and that spent in that window;
    of the values of a tag, those with the least left. `bound` counts all of them.
    """
    whose = place.identity
    team = (
        None if whose is None or BUDGETS + EVERY_TEAM in whose.scopes else TEAM.scope(whose.team_id)
    )
    with place.ledger.connect() as connection:
        found = budget_states(connection, place.now_us, () if team is None else (team,))
    return list_document([_line(state) for state in found if team in (None, state.scope)])


def _line(state: BudgetState) -> dict[str, Any]:
    return {
        "budget": state.account,
        "scope": state.scope,
        "period": state.line.period,
        "timezone": state.line.timezone,
        "hard": state.line.hard,
        "limit_usd": usd_exact(state.line.limit_pusd),
        "spent_usd": usd_exact(state.spent_pusd),
        "held_usd": usd_exact(state.held_pusd),
        "claimed_usd": usd_exact(state.claimed_pusd),
        "since": moment_text(state.window.start_s * 10**6),
        "until": moment_text(state.window.end_s * 10**6),
        "default": state.default,
        "bound": bound_document(state),
    }


def bound_document(state: BudgetState) -> dict[str, Any] | None:
    """Return how many accounts a default binds and their use; `None` for other budgets."""
    bound = state.bound
    if bound is None:
        return None
    return {
        "accounts": bound.accounts,
        "exhausted": bound.exhausted,
        "spent_usd": usd_exact(bound.spent_pusd),
        "held_usd": usd_exact(bound.held_pusd),
    }


@verb("GET /contracts", CONTRACTS, None, "What own GPUs cost, by pool", NoInput)
def contracts_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    """Return the newest contract of each pool."""
    table = GpuContractRow
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
    return list_document(found)


@verb(
    "GET /changes",
    CHANGES,
    "ledger changes",
    "Who changed contracts, prices, policies and keys, from what to what; never a secret",
    LedgerChangesInput,
)
def changes_list(place: OperationContext, given: LedgerChangesInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        found = changes(connection, given.limit)
    return list_document(msgspec.to_builtins(found))


VERBS = (budgets_list, contracts_list, changes_list)
