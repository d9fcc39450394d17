"""Reads a LiteLLM proxy's PostgreSQL: read-only, in batches, and named columns alone.

What is read stands in `COLUMNS`. No statement can name another one, so no prompt, answer, password
or provider's secret is ever fetched. A column that this release of LiteLLM does not have is None.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from ledger.database import open_readonly

BATCH: Final = 2_000
STATEMENT_MS: Final = 60_000
Row = Mapping[str, Any]
# Of these it is counted how many have a budget: none is carried over.
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
}  # fmt: skip
SPEND: Final = "LiteLLM_SpendLogs"
_EXACT: Final = frozenset({"spend", "max_budget", "soft_budget"})  # floats: read as decimal text


class SourceError(ValueError):
    """A database that cannot be read as LiteLLM's; the text says why and what to do."""


class SourceDatabase:
    """One LiteLLM database; `name` tells its spending from others'."""

    def __init__(self, url: str) -> None:
        try:
            place = make_url(url)
        except Exception as error:
            raise SourceError("the address is no database URL: postgresql://...") from error
        if place.get_backend_name() != "postgresql":
            raise SourceError("LiteLLM keeps its keys in PostgreSQL: postgresql://...")
        self.name = f"litellm:{place.host or 'localhost'}/{place.database}"
        self._engine: Engine = open_readonly(
            place.render_as_string(hide_password=False).partition("?schema=")[0]
        )
        self._known: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction in which the database itself refuses every write."""
        try:
            with self._engine.connect() as connection:
                connection.execute(text("SET TRANSACTION READ ONLY"))
                connection.execute(text(f"SET LOCAL statement_timeout = {STATEMENT_MS}"))
                yield connection
                connection.rollback()
        except DBAPIError as error:
            raise SourceError(f"the database cannot be read: {_first_line(error)}") from error

    def columns_of(self, connection: Connection, table: str) -> frozenset[str]:
        """Return those of `COLUMNS` that the table has; none where there is no such table."""
        if table not in self._known:
            query = text(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_schema = current_schema() AND table_name = :table"
            )
            found = connection.execute(query, {"table": table}).scalars()
            self._known[table] = frozenset(found) & frozenset(COLUMNS[table])
        return self._known[table]

    def rows_of(self, connection: Connection, table: str) -> Iterator[Row]:
        """Yield a table's rows by its key, a batch at a time."""
        key, there = COLUMNS[table][0], self.columns_of(connection, table)
        if key not in there:
            return
        after = ""
        selected = _selected(table, there)
        while True:
            query = text(
                f'SELECT {selected} FROM "{table}" WHERE "{key}" > :after '  # noqa: S608  (names of `COLUMNS` alone)
                f'ORDER BY "{key}" LIMIT {BATCH}'
            )
            batch = connection.execute(query, {"after": after}).mappings().all()
            yield from map(dict, batch)
            if len(batch) < BATCH:
                return
            after = batch[-1][key]

    def budgets_beside(self, connection: Connection) -> dict[str, int]:
        """Return how many have a budget of those that are not read otherwise, by what they are."""
        found = {}
        for table, name in BUDGETED.items():
            if "budget_id" in self.columns_of(connection, table):
                query = text(f'SELECT count(*) FROM "{table}" WHERE budget_id IS NOT NULL')  # noqa: S608  (names of `BUDGETED` alone)
                found[name] = int(connection.execute(query).scalar_one())
        return {name: count for name, count in found.items() if count}

    def spend_days(self, connection: Connection) -> list[tuple[str, int]]:
        """Return the UTC days that have rows of spending, and how many, the oldest first."""
        if "startTime" not in self.columns_of(connection, SPEND):
            return []
        query = text(
            f'SELECT to_char("startTime", \'YYYY-MM-DD\') AS day, count(*) FROM "{SPEND}" '  # noqa: S608  (a constant)
            "GROUP BY day ORDER BY day"
        )
        return [(day, int(count)) for day, count in connection.execute(query)]

    def spend_of(self, connection: Connection, start: datetime, end: datetime) -> Iterator[Row]:
        """Yield the rows of spending of a span, a batch at a time."""
        selected = _selected(SPEND, self.columns_of(connection, SPEND))
        after: tuple[datetime, str] = (start, "")
        while True:
            query = text(
                f'SELECT {selected} FROM "{SPEND}" WHERE ("startTime", request_id) > (:at, :id) '  # noqa: S608  (names of `COLUMNS` alone)
                f'AND "startTime" < :until ORDER BY "startTime", request_id LIMIT {BATCH}'
            )
            given = {"at": after[0], "id": after[1], "until": end}
            batch = connection.execute(query, given).mappings().all()
            yield from map(dict, batch)
            if len(batch) < BATCH:
                return
            after = batch[-1]["startTime"], batch[-1]["request_id"]


def _selected(table: str, there: frozenset[str]) -> str:
    """Return every column of `COLUMNS`, one that is not there as null, floats as exact text."""
    parts: Sequence[str] = [
        f'NULL AS "{name}"' if name not in there
        else f'"{name}"::text AS "{name}"' if name in _EXACT
        else f'"{name}"'
        for name in COLUMNS[table]
    ]  # fmt: skip
    return ", ".join(parts)


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
