"""Import of a LiteLLM database: first a survey, then keys and spending."""

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Engine

from gateway.config.litellm_notes import ImportLoss
from gateway.control.litellm.identities import (
    IdentityPlan,
    LeftOut,
    PlannedKey,
    SourceRows,
    plan_identities,
)
from gateway.control.litellm.source_database import COLUMNS, SourceDatabase, SourceError
from gateway.control.litellm.spend_import import (
    SourceNames,
    SpendResult,
    import_spend,
    spend_days,
)
from ledger.identity.foreign_tokens import foreign_hash, foreign_id
from ledger.identity.keychanges import ChangeAuthor, make_known
from ledger.identity.keys import IdentityError

KEYS = "LiteLLM_VerificationToken"


class SourceSurvey(NamedTuple):
    """Contents of a database, and the plan for their import.

    `days` have spending; for `daily_days` of them only daily sums are complete.
    """

    plan: IdentityPlan
    days: int
    requests: int
    daily_days: int = 0

    def fails(self, accepted: Collection[ImportLoss]) -> bool:
        """Return whether something would be lost that was not accepted."""
        return any(note.rank(accepted) == "error" for note in self.plan.notes)


class KeysResult(NamedTuple):
    """Counts of imported keys. `known` keys existed before and do not change, even if revoked."""

    made: int
    known: int
    left_out: list[LeftOut]


def survey_source(source: SourceDatabase, pepper: bytes, now_us: int) -> SourceSurvey:
    """Read everything but single spending rows; write nothing. Raises `SourceError`."""
    now = datetime.fromtimestamp(now_us / 1e6, UTC)
    with source.reading() as connection:
        if not source.columns_of(connection, KEYS):
            raise SourceError(
                f"the database has no table {KEYS}: name the database of a LiteLLM proxy"
            )
        tables = {
            name: {row[COLUMNS[name][0]]: row for row in source.rows_of(connection, name)}
            for name in (
                "LiteLLM_BudgetTable", "LiteLLM_OrganizationTable", "LiteLLM_TeamTable",
                "LiteLLM_UserTable",
            )
        }  # fmt: skip
        budgets, organisations, teams, users = tables.values()
        keys = source.rows_of(connection, KEYS)
        rows = SourceRows(budgets, organisations, teams, users, keys)
        plan = plan_identities(rows, lambda digest: foreign_id(pepper, digest), now)
        for name, count in source.budgets_beside(connection).items():
            words = f"{count} have budgets of their own: none of them is carried over"
            plan.lose(f"{name}.budget_id", words, ImportLoss.BUDGETS)
        days = spend_days(source, connection)
    requests = sum(day.requests for day in days)
    return SourceSurvey(plan, len(days), requests, sum(day.is_sums for day in days))


def import_keys(
    ledger: Engine, plan: IdentityPlan, pepper: bytes, author: ChangeAuthor
) -> KeysResult:
    """Create the missing keys in one transaction."""
    made = known = 0
    left_out = list(plan.left_out)
    with ledger.begin() as connection:
        for key in plan.keys:
            try:
                if make_known(connection, key.spec, _hashed(key, pepper), author):
                    made += 1
                else:
                    known += 1
            except IdentityError as error:
                left_out.append(LeftOut(key.spec.name, str(error)))
    return KeysResult(made, known, left_out)


def import_history(
    source: SourceDatabase,
    ledger: Engine,
    plan: IdentityPlan,
    pepper: bytes,
    told: Callable[[str], None],
) -> SpendResult:
    """Store the spending of each day that is not stored yet."""
    names = SourceNames(plan.teams, plan.organisations, lambda digest: foreign_id(pepper, digest))
    return import_spend(source, ledger, names, told)


def _hashed(key: PlannedKey, pepper: bytes) -> tuple[str, bytes]:
    key_id = foreign_id(pepper, key.digest)
    return key_id, foreign_hash(pepper, key_id, key.digest)
