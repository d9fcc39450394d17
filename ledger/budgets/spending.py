"""The attempts that a budget counts, and their accounts, by the scopes of admission."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    Select,
    String,
    TableValuedAlias,
    and_,
    column,
    exists,
    func,
    join,
    literal,
    or_,
    select,
    true,
)

from ledger.budgets.binding import VALUES_MOST, BudgetLine
from ledger.budgets.escrow import EscrowError
from ledger.budgets.scopes import BY_PREFIX, EACH, AttemptRows, BudgetScope, valued_tag
from ledger.budgets.windows import CalendarWindow
from ledger.model_names import counted_names
from ledger.orm.base import Stored
from ledger.orm.books import AttemptRow
from ledger.orm.identity import KeyRow


@dataclass(frozen=True, slots=True)
class CountedAttempts:
    """Attempts that a budget counts.

    `rows` has an attempt once for each account that it counts on; `where` selects from them.
    `names` are further names in the database beside the scope's own: keys, or snapshots of a model.
    """

    rows: Any  # attempts, or a join of them: the FROM clause
    account: ColumnElement[str]
    where: ColumnElement[bool]
    names: tuple[str, ...] = ()


def scope_spending(
    connection: Connection, scope: str, budget_id: str, window: CalendarWindow
) -> CountedAttempts:
    """Return the attempts of one scope. Raises `EscrowError` for an unknown scope."""
    where, names = _of_scope(connection, scope, window)
    return CountedAttempts(AttemptRow, literal(budget_id, String), where, names)


def default_spending(
    connection: Connection, default: BudgetLine, values: Iterable[str]
) -> CountedAttempts:
    """Return the attempts that a default may bind, each on the account of its name.

    `values` are the counted values of its tag (`first_values`).
    """
    prefix, end = default.scope.removesuffix(EACH), literal(f"@{default.period}", String)
    name = valued_tag(default.scope)
    if name is None:
        mine = column_of(BY_PREFIX[prefix.removesuffix(":")])
        return CountedAttempts(AttemptRow, literal(prefix, String) + mine + end, mine.is_not(None))
    tag = _tags(connection, AttemptRow.tags)
    counted = tag.c.value.in_(_listed(connection, values))
    return CountedAttempts(
        join(AttemptRow, tag, true()),
        literal(prefix, String) + tag.c.value + end,
        and_(tag.c.key == name, tag.c.value != EACH, counted),
    )


def sharers_of(connection: Connection, kind: BudgetScope) -> dict[str, list[str]]:
    """Return, by key, other keys that count on its budgets; empty for other kinds of scopes."""
    found: dict[str, list[str]] = {}
    if kind.column == AttemptRow.key_id.key:
        query = select(KeyRow.id, KeyRow.counts_on).where(KeyRow.counts_on.is_not(None))
        for other, counts_on in connection.execute(query.order_by(KeyRow.id)):
            for name in counts_on or ():
                found.setdefault(name, []).append(other)
    return found


def column_of(kind: BudgetScope) -> Stored[Any]:
    """Return the column of attempts that holds this kind's names."""
    assert kind.column is not None, f"attempts have no column for `{kind.prefix}:`"
    found: Stored[Any] = getattr(AttemptRow, kind.column)
    return found


def first_values(
    connection: Connection, name: str, window: CalendarWindow, *, after: int = 0
) -> dict[str, str]:
    """Return a tag's values in the window, each with the team in whose share it counts.

    Each team has at most `VALUES_MOST` values, the first by name. Only attempts with a number above
    `after` are read.
    """
    tag = _tags(connection, AttemptRow.tags)
    values = (
        select(tag.c.value.label("value"), func.min(AttemptRow.team_id).label("team"))
        .select_from(join(AttemptRow, tag, true()))
        .where(
            tag.c.key == name,
            AttemptRow.seq > after,
            AttemptRow.opened_us >= window.start_s * 10**6,
            AttemptRow.opened_us < window.end_s * 10**6,
        )
        .group_by(tag.c.value)
        .subquery()
    )
    place = func.row_number().over(partition_by=values.c.team, order_by=values.c.value)
    ranked = select(values.c.value, values.c.team, place.label("place")).subquery()
    query = select(ranked.c.value, ranked.c.team).where(ranked.c.place <= VALUES_MOST)
    return {row[0]: row[1] for row in connection.execute(query)}


def _listed(connection: Connection, values: Iterable[str]) -> Select[str]:
    """Return a SELECT of these values, which may be more than a statement's parameters."""
    is_postgresql = connection.dialect.name == "postgresql"
    rows = func.json_array_elements_text if is_postgresql else func.json_each
    listed = rows(literal([*values], JSON)).table_valued(column("value", String))
    return select(listed.c.value)


def _of_scope(
    connection: Connection, scope: str, window: CalendarWindow
) -> tuple[ColumnElement[bool], tuple[str, ...]]:
    """Return the condition for the attempts of a scope, and their further names."""
    prefix, _, name = scope.partition(":")
    kind = BY_PREFIX.get(prefix)
    if kind is None:
        raise EscrowError(f"`{scope}` is not a budget scope")
    match kind.rows:
        case AttemptRows.ALL:
            return true(), ()
        case AttemptRows.EXTERNAL:
            sends = and_(AttemptRow.provider.is_not(None), AttemptRow.simulated.is_(False))
            return sends, ()
        case AttemptRows.TAGGED:
            return _tag_condition(connection, name), ()
        case AttemptRows.COLUMN:
            names = sharers_of(connection, kind).get(name, [])
            names += _snapshots(connection, kind, name, window)
            return column_of(kind).in_([name, *names]), tuple(names)


def _snapshots(
    connection: Connection, kind: BudgetScope, name: str, window: CalendarWindow
) -> list[str]:
    """Return the models of the window that also count on this model's budgets."""
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


def _tag_condition(connection: Connection, name: str) -> ColumnElement[bool]:
    """Return the condition for attempts with a tag, or a tag and value: `app` or `app=web`."""
    tag = _tags(connection, AttemptRow.tags)
    both = tag.c.key + "=" + tag.c.value
    return exists(select(literal(1)).select_from(tag).where(or_(tag.c.key == name, both == name)))


def _tags(connection: Connection, tags: Any) -> TableValuedAlias:
    """Return the tags of an attempt as rows of `key` and `value`."""
    pairs = func.json_each_text if connection.dialect.name == "postgresql" else func.json_each
    return pairs(tags).table_valued(column("key", String), column("value", String))
