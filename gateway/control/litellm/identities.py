"""Conversion of LiteLLM's keys, teams, users and budgets, with a list of losses. Pure.

Keys stay valid: a key is recognized by the SHA-256 of its token. Blocked, expired and malformed
keys are left out, each with a reason. Budgets with a daily or monthly period are converted; other
budgets and other restrictions of a key are listed as losses.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

from gateway.config.litellm_notes import ImportLoss, ImportNote
from gateway.control.litellm.source_database import Row
from ledger.identity.foreign_tokens import PREFIX, digest_of
from ledger.identity.keys import KeySpec

PERIODS: Final = {
    "1d": "day", "24h": "day", "daily": "day",
    "30d": "month", "1mo": "month", "monthly": "month",
}  # fmt: skip
DEFAULT = "default"
NAME_LIMIT, ID_LIMIT = 256, 128
_DIGEST = re.compile(r"[0-9a-f]{64}")
EVERY_MODEL, OF_TEAM, NO_MODEL = "all-proxy-models", "all-team-models", "no-default-models"
_ACCESS: Final = ("permissions", "allowed_routes", "object_permission_id")
_CHECKS: Final = ("policies",)
_LIMITS: Final = ("max_parallel_requests", "tpd_limit")
_BUDGETS: Final = ("model_max_budget", "budget_limits")


class SourceRows(NamedTuple):
    """Rows of LiteLLM's tables by their key."""

    budgets: Mapping[str, Row]
    organisations: Mapping[str, Row]
    teams: Mapping[str, Row]
    users: Mapping[str, Row]
    keys: Iterable[Row]


class PlannedKey(NamedTuple):
    """A key to import. `digest` is the SHA-256 of its token."""

    digest: str
    spec: KeySpec

    def __repr__(self) -> str:
        return f"PlannedKey({self.spec.name!r})"


class LeftOut(NamedTuple):
    """A key that is not imported. `name` is its alias, or the end of its digest."""

    name: str
    why: str


@dataclass(slots=True)
class IdentityPlan:
    """Plan of an import. `budgets` and `limits` are configuration entries with new ids.

    `teams` and `organisations` map LiteLLM's ids to the new ones.
    """

    keys: list[PlannedKey] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    teams: dict[str, str] = field(default_factory=dict)
    organisations: dict[str, str] = field(default_factory=dict)
    users: set[str] = field(default_factory=set)
    budgets: list[dict[str, Any]] = field(default_factory=list)
    limits: list[dict[str, Any]] = field(default_factory=list)
    notes: list[ImportNote] = field(default_factory=list)

    def lose(self, place: str, text: str, loss: ImportLoss) -> None:
        self.notes.append(ImportNote(place, text, loss))


def plan_identities(rows: SourceRows, key_id: Callable[[str], str], now: datetime) -> IdentityPlan:
    """Return the import plan. `key_id` returns the new id of a digest."""
    plan = IdentityPlan()
    plan.organisations = _names(rows.organisations, "organization_alias", DEFAULT)
    plan.teams = _names(rows.teams, "team_alias", DEFAULT)
    for name, row in sorted(rows.organisations.items()):
        _carry_limits(plan, f"org:{plan.organisations[name]}", row, rows.budgets)
        _note_models(plan, f"organization {name}", row)
    for name, row in sorted(rows.teams.items()):
        _carry_limits(plan, f"team:{plan.teams[name]}", row, rows.budgets)
    homes: dict[str, str] = {}
    for row in rows.keys:
        planned = _plan_key(plan, row, rows, homes, now)
        if planned is not None:
            plan.keys.append(planned)
            _carry_limits(plan, f"key:{key_id(planned.digest)}", row, rows.budgets)
    for name in sorted(plan.users & rows.users.keys()):
        _carry_limits(plan, f"user:{name}", rows.users[name], rows.budgets)
        _note_models(plan, f"user {name}", rows.users[name])
    return plan


def _plan_key(
    plan: IdentityPlan, row: Row, rows: SourceRows, homes: dict[str, str], now: datetime
) -> PlannedKey | None:
    token = row["token"]
    digest = digest_of(token) if token.startswith(PREFIX) else token
    name = _plain(row["key_alias"], NAME_LIMIT) or f"litellm {(digest or '')[-8:]}"
    team_row = rows.teams.get(row["team_id"] or "")
    models = _models(row["models"], None if team_row is None else team_row["models"])
    why = _why_left_out(row, team_row, models, now)
    if digest is None or not _DIGEST.fullmatch(digest):
        why = "its hash is not a SHA-256 of a token: issue a new key"
    if why is not None or digest is None:
        plan.left_out.append(LeftOut(name, why or ""))
        return None
    team = DEFAULT if team_row is None else plan.teams[row["team_id"]]
    org = plan.organisations.get((team_row or row)["organization_id"] or "", DEFAULT)
    is_at_home = homes.setdefault(row["user_id"] or "", org) == org
    user = _user_of(plan, row, name, is_at_home=is_at_home)
    if row["aliases"]:
        words = "has model aliases of its own: `same_as` makes them for everybody"
        plan.lose(f"key {name}.aliases", words, ImportLoss.MODELS)
    expires_us = None
    if row["expires"] is not None:
        expires_us = round(row["expires"].replace(tzinfo=UTC).timestamp() * 1e6)
    spec = KeySpec(name, team=team, org=org, user=user, models=models, expires_us=expires_us)
    return PlannedKey(digest, spec)


def _why_left_out(
    row: Row, team: Row | None, models: tuple[str, ...] | None, now: datetime
) -> str | None:
    """Return why a key is not imported, if LiteLLM accepted it for nothing either."""
    if row["blocked"]:
        return "it is blocked"
    if team is not None and team["blocked"]:
        return "its team is blocked"
    if row["expires"] is not None and row["expires"].replace(tzinfo=UTC) <= now:
        return "it has expired"
    if row["team_id"] and team is None:
        return f"its team `{row['team_id']}` is not there"
    return None if models is None or models else "it may use no model"


def _user_of(plan: IdentityPlan, row: Row, name: str, *, is_at_home: bool) -> str | None:
    """Return the user of a key if it belongs to the key's organization, as required here."""
    user = _plain(row["user_id"], ID_LIMIT)
    if user is None:
        return None
    if not is_at_home:
        words = "its user has keys of several organisations: this one names none"
        plan.lose(f"key {name}.user_id", words, ImportLoss.ACCESS)
        return None
    plan.users.add(user)
    return user


def _models(own: Any, teams: Any) -> tuple[str, ...] | None:
    """Return the models in both the key's and its team's list; `None`: every model."""
    allowed = [set(given) for given in (own, teams) if given]
    allowed = [given for given in allowed if EVERY_MODEL not in given and OF_TEAM not in given]
    if not allowed:
        return None
    found = set.intersection(*allowed) - {NO_MODEL}
    return tuple(sorted(found))


def _names(rows: Mapping[str, Row], alias: str, taken: str) -> dict[str, str]:
    """Return readable ids: the alias if it is plain and unique, else LiteLLM's id."""
    aliases = [_plain(row[alias], ID_LIMIT) for row in rows.values()]
    found = {}
    for name, row in sorted(rows.items()):
        wanted = _plain(row[alias], ID_LIMIT)
        free = wanted is not None and aliases.count(wanted) == 1
        free = free and wanted not in (taken, "*") and wanted not in rows
        if name in (taken, "*"):  # avoids the names of the default and of all teams
            found[name] = f"litellm {name}"
        else:
            found[name] = wanted if free and wanted is not None else name
    return found


def _plain(given: Any, limit: int) -> str | None:
    if not isinstance(given, str):
        return None
    words = given.strip()
    return words if words and len(words) <= limit and words.isprintable() else None


def _carry_limits(plan: IdentityPlan, scope: str, row: Row, budgets: Mapping[str, Row]) -> None:
    """Convert the limits of a row and of its budget; list what is lost."""
    for source in (row, budgets.get(row.get("budget_id") or "")):
        if source is not None:
            _carry_budget(plan, scope, source)
            _carry_rates(plan, scope, source)
            _note_losses(plan, scope, source)


def _carry_budget(plan: IdentityPlan, scope: str, row: Row) -> None:
    period = PERIODS.get((row.get("budget_duration") or "").strip().lower())
    for name, hard in (("max_budget", True), ("soft_budget", False)):
        told = row.get(name)
        if told is None:
            continue
        amount = Decimal(told)
        if period is None:
            kept = (
                "for good" if not row.get("budget_duration") else f"for `{row['budget_duration']}`"
            )
            words = f"stands {kept}: budgets here are of a day or a month"
            plan.lose(f"{scope}.{name}", words, ImportLoss.BUDGETS)
        elif not amount.is_finite() or amount <= 0:
            plan.lose(f"{scope}.{name}", "is not a limit of money here", ImportLoss.BUDGETS)
        else:
            usd = format(amount.normalize(), "f")
            plan.budgets.append({"scope": scope, "usd": usd, "period": period, "hard": hard})


def _carry_rates(plan: IdentityPlan, scope: str, row: Row) -> None:
    named = (("requests_per_minute", "rpm_limit"), ("tokens_per_minute", "tpm_limit"))
    limits = {ours: int(row[theirs]) for ours, theirs in named if row.get(theirs)}
    if limits:
        plan.limits.append({"scope": scope, **limits})
    for _, theirs in named:
        if row.get(theirs) == 0:
            plan.lose(f"{scope}.{theirs}", "0 refuses everything: revoke it", ImportLoss.ACCESS)


def _note_losses(plan: IdentityPlan, scope: str, row: Row) -> None:
    for names, loss in (
        (_ACCESS, ImportLoss.ACCESS), (_CHECKS, ImportLoss.CHECKS),
        (_LIMITS, ImportLoss.LIMITS), (_BUDGETS, ImportLoss.BUDGETS),
    ):  # fmt: skip
        for name in names:
            if row.get(name):
                plan.lose(f"{scope}.{name}", "has no counterpart here", loss)


def _note_models(plan: IdentityPlan, place: str, row: Row) -> None:
    if row["models"] and EVERY_MODEL not in row["models"]:
        words = "names models: only keys and their teams are restricted here"
        plan.lose(f"{place}.models", words, ImportLoss.ACCESS)
