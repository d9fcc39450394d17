"""View of a key or a member: its rights, its remaining limits and its own usage.

Budgets of the key and its user are shown in full. For shared ones (its team, its tags, the key that
made it) only the amount left is shown, without spenders. For organization-wide budgets (global, an
organization, a provider, a model) it shows only whether anything is left.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection

from gateway.clock import moment_text
from gateway.config.billing_accounts import separate_accounts
from gateway.config.schema_limits import EACH
from gateway.config.settings import Settings
from gateway.request.model_list import usable_models
from ledger.budgets.scopes import (
    BY_PREFIX,
    BudgetReader,
    BudgetScope,
    request_scopes,
    target_scopes,
)
from ledger.budgets.states import BudgetState, budget_states
from ledger.identity.keys import Identity
from ledger.money import usd_exact
from ledger.reporting_zone import ReportingZone, reporting_zone
from ledger.spans import Scope

if TYPE_CHECKING:
    from ledger.queries.tags import KeySpend


class PaidTarget(NamedTuple):
    """The target of an attempt for budget scopes; each provider has its own prices."""

    provider: str | None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class SpendSum:
    """Sums over attempts of some keys; `unpriced` counts those of unknown cost."""

    requests: int
    input_tokens: int
    output_tokens: int
    cost_pusd: int
    unpriced: int

    @property
    def document(self) -> dict[str, Any]:
        return {
            "attempts": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": usd_exact(self.cost_pusd),
            "unpriced_attempts": self.unpriced,
        }


def budget_lines(
    connection: Connection, settings: Settings, identity: Identity, now_us: int
) -> list[dict[str, Any]]:
    """Return every budget that applies to this key's requests, narrowest first."""
    names = usable_models(settings, identity)
    scopes = {scope for name in names or [""] for scope in request_scopes(identity, name)}
    houses = {
        each for name in separate_accounts(settings) for each in target_scopes(PaidTarget(name))
    }
    states = budget_states(connection, now_us, sorted(scopes))
    found = [each for each in states if not each.is_default and each.scope in scopes | houses]
    found.sort(key=lambda each: (-_kind_of(each.scope).width, each.account))
    return [_budget_line(state, identity) for state in found]


def _budget_line(state: BudgetState, identity: Identity) -> dict[str, Any]:
    kind = _kind_of(state.scope)
    own = None if kind.own_name is None else kind.own_name(identity)
    mine = own is not None and state.scope == kind.scope(own)
    told = kind.told_to is not BudgetReader.NOBODY
    left = max(0, state.remaining_pusd)
    return {
        "scope": state.scope,
        "period": state.line.period,
        "hard": state.line.hard,
        "limit_usd": usd_exact(state.line.limit_pusd) if told else None,
        "spent_usd": usd_exact(state.spent_pusd) if mine else None,
        "held_usd": usd_exact(state.held_pusd) if mine else None,
        "left_usd": usd_exact(left) if told else None,
        "exhausted": left == 0,
        "until": moment_text(state.window.end_s * 10**6),
        "shared": not mine,
    }


def _kind_of(scope: str) -> BudgetScope:
    return BY_PREFIX[scope.partition(":")[0]]


def rate_lines(settings: Settings, identity: Identity) -> list[dict[str, Any]]:
    """Return every rate limit that applies to this key's requests."""
    known = {limit.scope: limit for limit in settings.limits}
    names = usable_models(settings, identity)
    scopes = dict.fromkeys(
        scope for name in names or [""] for scope in request_scopes(identity, name)
    )
    found = []
    for scope in scopes:
        limit = known.get(scope) or known.get(f"{scope.partition(':')[0]}:{EACH}")
        if limit is not None:
            found.append(
                {
                    "scope": scope,
                    "requests_per_minute": limit.requests_per_minute,
                    "tokens_per_minute": limit.tokens_per_minute,
                }
            )
    return found


def spans(now_us: int, zone: ReportingZone) -> dict[str, Scope]:
    """Return this day and this month, in the reporting time zone."""
    starts = {"day": zone.day(now_us)[0], "month": zone.month(now_us)[0]}
    return {name: Scope(start_us, now_us + 1) for name, start_us in starts.items()}


def usage_by_key(
    connection: Connection, team: str, keys: Collection[str], now_us: int
) -> dict[str, dict[str, SpendSum]]:
    """Return the usage of each given key, today and this month."""
    from ledger.queries.tags import keyed  # noqa: PLC0415  (a fiftieth of a start)

    found: dict[str, dict[str, SpendSum]] = {key: {} for key in keys}
    for name, span in spans(now_us, reporting_zone(connection)).items():
        rows = keyed(connection, Scope(span.start_us, span.end_us, team)) if keys else []
        for key in keys:
            found[key][name] = add_spend(row for row in rows if row.key_id == key)
    return found


def add_spend(rows: Iterator["KeySpend"]) -> SpendSum:
    found = [
        (row.attempts, row.input_tokens, row.output_tokens, row.cost_pusd, row.unpriced)
        for row in rows
    ]
    return SpendSum(*(sum(column) for column in zip(*found, strict=True))) if found else NOTHING


def usage_document(used: Mapping[str, SpendSum]) -> dict[str, Any]:
    return {name: spent.document for name, spent in used.items()}


NOTHING = SpendSum(0, 0, 0, 0, 0)
