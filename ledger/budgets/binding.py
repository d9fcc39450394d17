"""The budgets that bind a name: its own, or the default of its kind.

A budget on `user:*` (or `team:*`, `key:*`) is a default: every user without an own budget for that
period has an equal one, counted separately. A budget on `tag:run=*` applies to every value of that
tag, up to `VALUES_MOST` per window, because clients choose the values. These budgets have no rows:
the account is the name's (`user:ann@month`), limit and calendar are the default's. So a new limit
is one row, and a budget of its own keeps what its window has counted.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, select

from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import EACH, EACH_KINDS, VALUE_KINDS, valued_tag
from ledger.orm.base import Stored
from ledger.orm.budgets import BudgetRow

VALUES_MOST: Final = 10_000  # values of one tag with a budget in one window


class _Line(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def period(self) -> str: ...


Line = TypeVar("Line", bound=_Line)


class BudgetLine(NamedTuple):
    """The terms of one budget. A budget with `retired_us` binds nothing from then on."""

    id: str
    scope: str
    period: str
    timezone: str
    hard: bool
    limit_pusd: int
    retired_us: int | None = None


def wildcard_of(scope: str) -> str | None:
    """Return `user:*` for `user:ann`, `None` for a default or a scope without defaults."""
    kind, colon, name = scope.partition(":")
    if kind in VALUE_KINDS:
        tag, equals, value = name.partition("=")
        return f"{kind}:{tag}={EACH}" if equals and value != EACH else None
    return f"{kind}:{EACH}" if colon and kind in EACH_KINDS and name != EACH else None


def default_of(budget_id: str) -> str | None:
    """Return `user:*@month` for `user:ann@month`. A name may contain `@` and `:`."""
    scope, _, period = budget_id.rpartition("@")
    each = wildcard_of(scope)
    return None if each is None else budget_key(each, period)


def scope_of(budget_id: str) -> str:
    return budget_id.rpartition("@")[0]


def is_default(scope: str) -> bool:
    kind, _, name = scope.partition(":")
    return valued_tag(scope) is not None or (name == EACH and kind in EACH_KINDS)


def is_bound_by(column: Stored[str], default_id: str) -> ColumnElement[bool]:
    """Return the SQL condition that a column names the default's id or an account it may bind."""
    scope, _, period = default_id.rpartition("@")
    begin = scope.removesuffix(EACH)
    # In LIKE, `_` matches any character, and SQLite ignores case.
    whole = func.substr(column, 1, len(begin)) == begin
    return and_(column.like(f"{begin}%@{period}"), whole)


def binding(
    by_scope: Mapping[str, Sequence[Line]], scopes: Iterable[str]
) -> Iterator[tuple[str, Line]]:
    """Yield every budget that binds these scopes, with the account that it is counted on."""
    for scope in dict.fromkeys(scopes):
        own = by_scope.get(scope, ())
        yield from ((line.id, line) for line in own)
        each = wildcard_of(scope)
        if each is not None and each in by_scope:
            periods = {line.period for line in own}
            for line in by_scope[each]:
                if line.period not in periods:
                    yield budget_key(scope, line.period), line


_LINES = select(*[getattr(BudgetRow, name) for name in BudgetLine._fields])


class BoundBudgets:
    """The budgets in the database that bind accounts: all budgets, or those of some accounts."""

    def __init__(self, connection: Connection, accounts: Collection[str] | None = None) -> None:
        query = _LINES
        if accounts is not None:
            names = {*accounts, *filter(None, map(default_of, accounts))}
            query = query.where(BudgetRow.id.in_(names))
        self._all = {row[0]: BudgetLine(*row) for row in connection.execute(query)}

    def of(self, account: str) -> BudgetLine | None:
        """Return the budget in force for an account, or the last one before."""
        own = self._all.get(account)
        if own is not None and own.retired_us is None:
            return own
        default = self._all.get(default_of(account) or "")
        if default is not None and (own is None or default.retired_us is None):
            return default
        return own

    def is_own(self, account: str) -> bool:
        """Return whether the account has a budget of its own in force."""
        own = self._all.get(account)
        return own is not None and own.retired_us is None

    def in_force(self) -> Iterator[BudgetLine]:
        return (member for member in self._all.values() if member.retired_us is None)
