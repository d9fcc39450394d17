"""Checks of budgets, rates and teams: scopes that match nothing, and repeated ones.

Pure checks like those of `gateway.config.crosschecks`, which lists them. A scope that matches
nothing never limits anything, and nobody would notice.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from gateway.config.aliases import resolve_model
from gateway.config.billing_accounts import sender_of_bills
from gateway.config.faults import ConfigFault, Place, suggest
from gateway.config.schema import ModelSection, Settings
from gateway.config.schema_limits import EACH
from ledger.budgets.scopes import BY_PREFIX, EACH_KINDS, BudgetScope, NameRule, prefixes, valued_tag
from ledger.budgets.windows import WindowError, zone_stated
from ledger.identity.tokens import PUBLIC_BYTES, TEXT_LIMIT

NAMELESS = prefixes(lambda kind: kind.name_rule is NameRule.NONE)
# Scopes known before a request is routed.
RATE_KINDS = prefixes(lambda kind: kind.limits_rates)
ID_CHARACTERS = 128  # limit of `keys create` for organisations, teams and users
KEY_DIGITS = 2 * PUBLIC_BYTES


def check_scopes(settings: Settings) -> Iterator[ConfigFault]:
    for index, budget in enumerate(settings.budgets):
        place, (kind, _, name) = ("budgets", index, "scope"), budget.scope.partition(":")
        named = kind in BY_PREFIX and kind not in NAMELESS
        if name == EACH and named and kind not in EACH_KINDS:
            kinds = ", ".join(f"`{prefix}:{EACH}`" for prefix in EACH_KINDS)
            words = f"`{budget.scope}` would limit no key: budgets for each exist for {kinds}"
            yield ConfigFault(place, words)
        elif name != EACH or kind not in EACH_KINDS:
            yield from _scope(settings, place, budget.scope, prefixes())
        if valued_tag(budget.scope) is not None and not budget.hard:
            words = f"`{budget.scope}` is one budget for each value, and clients name these: a "
            yield ConfigFault(("budgets", index, "hard"), words + "soft one bounds nothing")


def check_rates(settings: Settings) -> Iterator[ConfigFault]:
    seen: set[str] = set()
    for index, limit in enumerate(settings.limits):
        place = ("limits", index)
        kind, _, name = limit.scope.partition(":")
        if name != EACH or kind not in RATE_KINDS or kind in NAMELESS:
            yield from _scope(settings, (*place, "scope"), limit.scope, RATE_KINDS)
        if limit.requests_per_minute is None and limit.tokens_per_minute is None:
            yield ConfigFault(
                place, "limits nothing: set `requests_per_minute` or `tokens_per_minute`"
            )
        if limit.scope in seen:
            yield ConfigFault(place, f"`{limit.scope}` is limited already: keep one of them")
        seen.add(limit.scope)


def _scope(
    settings: Settings, place: Place, scope: str, kinds: Sequence[str]
) -> Iterator[ConfigFault]:
    kind, colon, name = scope.partition(":")
    if kind not in kinds:
        yield ConfigFault(place, f"`{kind}` is not a kind of scope{suggest(kind, kinds)}")
    elif kind in NAMELESS:
        if colon:
            yield ConfigFault(place, f"`{kind}` takes no name")
    elif not name.strip():
        yield ConfigFault(place, f"`{kind}` needs a name: `{kind}:NAME`")
    else:
        yield from _check_named(BY_PREFIX[kind], settings, place, name)


def check_windows(settings: Settings) -> Iterator[ConfigFault]:
    seen: set[tuple[str, str]] = set()
    try:
        zone_stated(settings.timezone)
    except WindowError as error:
        yield ConfigFault(("timezone",), str(error))
    for index, budget in enumerate(settings.budgets):
        try:
            if budget.timezone != settings.timezone:  # a fault of the default zone is reported once
                zone_stated(budget.timezone)
        except WindowError as error:
            yield ConfigFault(("budgets", index, "timezone"), str(error))
        if (budget.scope, budget.period) in seen:
            words = f"`{budget.scope}` has a budget per {budget.period} already: keep one of them"
            yield ConfigFault(("budgets", index), words)
        seen.add((budget.scope, budget.period))


def check_teams(settings: Settings) -> Iterator[ConfigFault]:
    for index, rule in enumerate(settings.policies):
        for at, team in enumerate(rule.match.teams):
            yield from _identity("team", ("policies", index, "match", "teams", at), team)


def _provider(settings: Settings, place: Place, name: str) -> Iterator[ConfigFault]:
    if name not in settings.providers:
        words = f"no provider named `{name}`{suggest(name, settings.providers)}"
        yield ConfigFault(place, words, about=("providers", name))
    elif (other := sender_of_bills(settings, name)) != name:
        words = f"`{name}` is billed with `{other}`: `provider:{other}` counts both"
        yield ConfigFault(place, words)


def _model(settings: Settings, place: Place, name: str) -> Iterator[ConfigFault]:
    found = resolve_model(settings, name)
    if found is None and not isinstance(settings.models.get(name), ModelSection):
        words = f"no model named `{name}`{suggest(name, settings.models)}"
        yield ConfigFault(place, words, about=("models", name))
    elif found is not None and found[0] != name:
        yield ConfigFault(place, f"`{name}` is an alias: name `{found[0]}`, which serves it")


def _key(_: Settings, place: Place, name: str) -> Iterator[ConfigFault]:
    if not re.fullmatch(rf"[0-9a-f]{{{KEY_DIGITS}}}", name):
        words = f"a key's scope is its id of {KEY_DIGITS} digits: `breakeven keys list` shows it"
        yield ConfigFault(place, words)


def _identity(kind: str, place: Place, name: str) -> Iterator[ConfigFault]:
    if not name or name != name.strip():
        yield ConfigFault(
            place, f"no {kind} is called `{name}`: remove the blank at its start or end"
        )
    elif not name.isprintable() or len(name) > ID_CHARACTERS:
        yield ConfigFault(
            place, f"no {kind} id is longer than {ID_CHARACTERS} printable characters"
        )


def _tag(_: Settings, place: Place, name: str) -> Iterator[ConfigFault]:
    tag, equals, value = name.partition("=")
    if not tag.strip() or name != name.strip():
        yield ConfigFault(
            place, f"`tag` needs a name: `tag:NAME` or `tag:NAME=VALUE`, not `tag:{name}`"
        )
    elif tag == EACH or (equals and not value):
        words = f"`tag:{name}` would limit no key: write `tag:NAME`, `tag:NAME=VALUE` or "
        yield ConfigFault(place, f"{words}`tag:NAME={EACH}`, which is one for each value")
    elif not name.isprintable() or max(len(tag), len(value)) > TEXT_LIMIT:
        words = f"no tag has a name or value longer than {TEXT_LIMIT} printable characters"
        yield ConfigFault(place, words)


def _check_named(
    kind: BudgetScope, settings: Settings, place: Place, name: str
) -> Iterator[ConfigFault]:
    """Yield faults of the name after a scope's prefix."""
    if kind.name_rule is NameRule.IDENTITY:
        return _identity(kind.words, place, name)
    return _NAMES[kind.name_rule](settings, place, name)


_NAMES: Mapping[NameRule, Callable[[Settings, Place, str], Iterator[ConfigFault]]] = {
    NameRule.PROVIDER: _provider,
    NameRule.MODEL: _model,
    NameRule.KEY: _key,
    NameRule.TAG: _tag,
}

BUDGET_CHECKS: tuple[Callable[[Settings], Iterator[ConfigFault]], ...] = (
    check_scopes,
    check_windows,
    check_rates,
    check_teams,
)
