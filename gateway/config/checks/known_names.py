"""Check for names of teams, keys and users that no key has: mistyped, or not created yet.

A policy or a budget for a team that does not exist never acts. The names come from the ledger; a
kind without any name in the ledger is not checked.
"""

from collections.abc import Iterator, Mapping

from gateway.config.aliases import logical_models
from gateway.config.faults import ConfigFault, Place, suggest, warning
from gateway.config.schema import Settings
from gateway.config.schema_limits import EACH
from gateway.config.unsatisfiable import compared_facts, tags_of
from ledger.budgets.scopes import SCOPE_KINDS

Known = Mapping[str, frozenset[str]]
_NOUNS = {kind.prefix: kind.words for kind in SCOPE_KINDS if kind.is_of_keys}


def check_unknown_names(settings: Settings, known: Known) -> Iterator[ConfigFault]:
    names = {**known, "model": frozenset(name for name, _ in logical_models(settings))}
    if any(name.endswith("/*") for name in settings.models):
        names["model"] = frozenset()  # any model of an open provider
    for place, kind, name in mentioned_names(settings):
        there = names.get(kind, frozenset())
        if not there or name in there:
            continue
        noun = _NOUNS.get(kind)
        if noun is None:
            yield warning(place, f"no model named `{name}`{suggest(name, there)}")
        else:
            near = suggest(name, there)
            yield warning(place, f"no key of the ledger has the {noun} `{name}`{near}")


def mentioned_names(settings: Settings) -> Iterator[tuple[Place, str, str]]:
    """Yield each name of a team, key, user or the like, with its place and kind."""
    for index, rule in enumerate(settings.policies):
        here: Place = ("policies", index, "match")
        for at, team in enumerate(rule.match.teams):
            yield (*here, "teams", at), "team", team
        for kind, name in _of_condition(rule.match.when or ""):
            yield (*here, "when"), kind, name
    scopes = [(("budgets", index), each.scope) for index, each in enumerate(settings.budgets)]
    scopes += [(("limits", index), each.scope) for index, each in enumerate(settings.limits)]
    for place, scope in scopes:
        kind, _, name = scope.partition(":")
        if kind in _NOUNS and name not in ("", EACH):
            yield (*place, "scope"), kind, name
    for team in settings.queue.weights:
        yield ("queue", "weights", team), "team", team
    for pool, each in settings.pools.items():
        for at, team in enumerate(each.sampling.teams if each.sampling else ()):
            yield ("pools", pool, "sampling", "teams", at), "team", team


def _of_condition(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names that a condition compares with; for a tag's presence, the tag's name."""
    seen = set()
    for fact, value in compared_facts(text):
        if fact == "model" or fact in _NOUNS:
            yield fact, value
        for tag in tags_of(fact):
            seen.add(tag)
            yield "tag", f"{tag}={value}"
    yield from (("tag", tag) for tag in sorted(tags_of(text) - seen))
