"""Reader of a LiteLLM proxy's PostgreSQL: read-only, in batches, named columns only.

`COLUMNS` lists all columns that are read. No statement can name another one, so no prompt, answer,
password or provider secret is fetched. A column missing in this LiteLLM release is `None`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    Engine,
    Select,
    TableClause,
    Text,
    cast,
    column,
    func,
    literal_column,
    make_url,
    null,
    select,
    table,
    text,
    tuple_,
)
from sqlalchemy.exc import DBAPIError

from ledger.database import open_readonly

BATCH: Final = 2_000
STATEMENT_MS: Final = 60_000
Row = Mapping[str, Any]
# Budgets in these tables are counted, and not imported.
BUDGETED: Final[Mapping[str, str]] = {
    "LiteLLM_TeamMembership": "team members",
    "LiteLLM_OrganizationMembership": "organization members",
    "LiteLLM_EndUserTable": "end users",
    "LiteLLM_ProjectTable": "projects",
    "LiteLLM_TagTable": "tags",
    "LiteLLM_ModelAccessGroupBudgetTable": "model access groups",
}
# The first one is the key that rows are read by.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "LiteLLM_BudgetTable": (
        "budget_id", "max_budget", "soft_budget", "budget_duration", "tpm_limit", "rpm_limit",
        "tpd_limit", "max_parallel_requests", "model_max_budget",
    ),
    "LiteLLM_OrganizationTable": (
        "organization_id", "organization_alias", "budget_id", "models",
    ),
    "LiteLLM_TeamTable": (
        "team_id", "team_alias", "organization_id", "max_budget", "soft_budget", "budget_duration",
        "models", "tpm_limit", "rpm_limit", "tpd_limit", "max_parallel_requests", "blocked",
        "model_max_budget", "budget_limits", "policies", "object_permission_id",
    ),
    "LiteLLM_UserTable": (
        "user_id", "user_alias", "organization_id", "max_budget", "budget_duration", "models",
        "tpm_limit", "rpm_limit", "max_parallel_requests", "model_max_budget", "policies",
    ),
    "LiteLLM_VerificationToken": (
        "token", "key_alias", "expires", "models", "aliases", "user_id", "team_id",
        "organization_id", "permissions", "blocked", "tpm_limit", "rpm_limit", "tpd_limit",
        "max_parallel_requests", "max_budget", "budget_duration", "allowed_routes", "policies",
        "model_max_budget", "budget_limits", "budget_id", "object_permission_id",
    ),
    **dict.fromkeys(BUDGETED, ("budget_id",)),
    "LiteLLM_SpendLogs": (
        "request_id", "startTime", "api_key", "spend", "prompt_tokens", "completion_tokens",
        "model", "model_group", "custom_llm_provider", "team_id", "organization_id", "user",
        "status",
    ),
    "LiteLLM_DailyUserSpend": (
        "id", "date", "user_id", "api_key", "model", "model_group", "custom_llm_provider",
        "prompt_tokens", "completion_tokens", "spend", "api_requests", "failed_requests",
    ),
    "LiteLLM_DailyTeamSpend": ("id", "date", "team_id", "api_key"),
}  # fmt: skip
SPEND: Final = "LiteLLM_SpendLogs"
DAILY: Final = "LiteLLM_DailyUserSpend"  # every request once, including pruned rows
DAILY_TEAMS: Final = "LiteLLM_DailyTeamSpend"
_EXACT: Final = frozenset({"spend", "max_budget", "soft_budget"})  # floats: read as decimal text


class SourceError(ValueError):
    """The database cannot be read as LiteLLM's; the text says why and what to do."""


class SourceDatabase:
    """One LiteLLM database; `name` identifies its spending among several sources."""

    def __init__(self, url: str) -> None:
        try:
            place = make_url(url)
        except Exception as error:
            raise SourceError(
                "invalid database address: write postgresql://USER:PASSWORD@HOST/NAME"
            ) from error
        if place.get_backend_name() != "postgresql":
            raise SourceError(
                "LiteLLM stores keys in PostgreSQL only: write postgresql://USER:PASSWORD@HOST/NAME"
            )
        self.name = f"litellm:{place.host or 'localhost'}/{place.database}"
        self._engine: Engine = open_readonly(
            place.render_as_string(hide_password=False).partition("?schema=")[0]
        )
        self._known: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a transaction in which the database refuses every write."""
        try:
            with self._engine.connect() as connection:
                connection.execute(text("SET TRANSACTION READ ONLY"))
                connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
                yield connection
                connection.rollback()
        except DBAPIError as error:
            raise SourceError(f"cannot read the LiteLLM database: {_first_line(error)}") from error

    def columns_of(self, connection: Connection, name: str) -> frozenset[str]:
        """Return the columns of `COLUMNS` that the table has; empty if it does not exist."""
        if name not in self._known:
            query = text(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = :table"
            )
            found = connection.execute(query, {"table": name}).scalars()
            self._known[name] = frozenset(found) & frozenset(COLUMNS[name])
        return self._known[name]

    def rows_of(self, connection: Connection, name: str) -> Iterator[Row]:
        """Yield a table's rows by its key, a batch at a time."""
        key, there = COLUMNS[name][0], self.columns_of(connection, name)
        if key not in there:
            return
        query, place = select(*_selected(name, there)), _source(name).c[key]
        yield from _batches(connection, query, (place,), ("",))

    def budgets_beside(self, connection: Connection) -> dict[str, int]:
        """Return the number of budgets in tables that are not imported, by table."""
        found = {}
        for source, name in BUDGETED.items():
            if "budget_id" in self.columns_of(connection, source):
                has_budget = _source(source).c.budget_id.is_not(None)
                query = select(func.count()).select_from(_source(source)).where(has_budget)
                found[name] = int(connection.execute(query).scalar_one())
        return {name: count for name, count in found.items() if count}

    def spend_days(self, connection: Connection) -> list[tuple[str, int]]:
        """Return the UTC days with spending rows and their counts, oldest first."""
        if "startTime" not in self.columns_of(connection, SPEND):
            return []
        day_of = func.to_char(_source(SPEND).c.startTime, "YYYY-MM-DD").label("day")
        query = select(day_of, func.count()).group_by(literal_column("day")).order_by("day")
        return [(day, int(count)) for day, count in connection.execute(query)]

    def spend_of(self, connection: Connection, start: datetime, end: datetime) -> Iterator[Row]:
        """Yield the spending rows of a span, a batch at a time."""
        place = _source(SPEND).c.startTime, _source(SPEND).c.request_id
        query = select(*_selected(SPEND, self.columns_of(connection, SPEND))).where(place[0] < end)
        yield from _batches(connection, query, place, (start, ""))

    def daily_days(self, connection: Connection) -> dict[str, int]:
        """Return the days with daily sums, and the number of requests in each."""
        if not {"id", "date", "api_requests"} <= self.columns_of(connection, DAILY):
            return {}
        place = _source(DAILY).c
        query = select(place.date, func.sum(place.api_requests)).group_by(place.date)
        return {day: int(count) for day, count in connection.execute(query)}

    def daily_of(self, connection: Connection, day: str) -> Iterator[Row]:
        """Yield the daily sums of a day, a batch at a time."""
        place, selected = _source(DAILY).c, _selected(DAILY, self.columns_of(connection, DAILY))
        query = select(*selected).where(place.date == day)
        yield from _batches(connection, query, (place.id,), ("",))

    def teams_of_day(self, connection: Connection, day: str) -> dict[str, str]:
        """Return the team of each key that belonged to exactly one team on a day."""
        if not {"date", "team_id", "api_key"} <= self.columns_of(connection, DAILY_TEAMS):
            return {}
        place = _source(DAILY_TEAMS).c
        first, last = func.min(place.team_id), func.max(place.team_id)
        query = select(place.api_key, first).where(place.date == day).group_by(place.api_key)
        found = connection.execute(query.having(first == last))
        return {str(key): str(team) for key, team in found}


def _batches(
    connection: Connection,
    query: Select[Any],
    place: tuple[ColumnClause[Any], ...],
    after: tuple[Any, ...],
) -> Iterator[Row]:
    """Yield the rows of a query behind `after`, ordered by their `place`, a batch at a time."""
    ordered = query.order_by(*place).limit(BATCH)
    while True:
        behind = place[0] > after[0] if len(place) == 1 else tuple_(*place) > after
        batch = connection.execute(ordered.where(behind)).mappings().all()
        yield from map(dict, batch)
        if len(batch) < BATCH:
            return
        after = tuple(batch[-1][part.name] for part in place)


@cache
def _source(name: str) -> TableClause:
    """Return a table with the columns of `COLUMNS`."""
    return table(name, *(column(member) for member in COLUMNS[name]))


def _selected(name: str, there: frozenset[str]) -> list[ColumnElement[Any]]:
    """Return every column of `COLUMNS`: missing ones as null, floats as exact text."""
    source = _source(name)
    return [
        null().label(member) if member not in there
        else cast(source.c[member], Text).label(member) if member in _EXACT
        else source.c[member]
        for member in COLUMNS[name]
    ]  # fmt: skip


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
