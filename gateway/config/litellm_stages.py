"""A LiteLLM proxy's deployments of one name, their `order` and its fallbacks, as stages of targets.

`fallbacks` are asked once a model failed; where the file names no fallbacks for prompts that are
too long or filtered, LiteLLM uses these for them as well. A fallback of a fallback is not followed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from gateway.config.litellm_notes import ImportLoss, ImportNote, lost

CONTEXT, CONTENT_POLICY = "context_window_fallbacks", "content_policy_fallbacks"
GENERAL, DEFAULT = "fallbacks", "default_fallbacks"
FALLBACKS = (GENERAL, CONTEXT, CONTENT_POLICY, DEFAULT)
_CAUSES = {CONTEXT: "context", CONTENT_POLICY: "content_policy"}
_EVERY = "*"
Document = dict[str, Any]


class ModelDeployment(NamedTuple):
    """One deployment of a model; the numbers as the file states them, None where it does not."""

    target: str
    order: float | None = None
    weight: float | None = None
    whole_s: float | None = None  # of an answer in one piece, and to a stream's head
    head_s: float | None = None  # `stream_timeout`


@dataclass(slots=True)
class ModelGroups:
    """Holds what the file's names stand for; `usual`: the timeouts of models that state none."""

    deployments: dict[str, list[ModelDeployment]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    patterns: Mapping[str, str] = field(default_factory=dict)
    usual: Document = field(default_factory=dict)
    notes: list[ImportNote] = field(default_factory=list)

    def levels(self, name: str) -> list[list[str]]:
        """The targets of a model by their `order`, those without one last; empty: no model."""
        name = self.aliases.get(name, name)
        group = self.deployments.get(name)
        if group is None:
            provider, slash, model = name.partition("/")
            passed = slash and model and f"{provider}/*" in self.patterns
            return [[name]] if passed else []
        levels: dict[float, dict[str, None]] = {}
        for item in group:
            order = inf if item.order is None else item.order
            levels.setdefault(order, {})[item.target] = None
        return [list(levels[order]) for order in sorted(levels)]

    def timeouts(self, name: str) -> Document:
        """A model's own: the longest that one of its deployments states."""
        group = self.deployments.get(self.aliases.get(name, name), [])
        whole = [item.whole_s for item in group if item.whole_s]
        head = [wait for item in group if (wait := item.head_s or item.whole_s)]
        found: Document = {"head_s": max(head)} if head else {}
        return {**found, "whole_s": max(whole)} if whole else found

    def model(self, name: str) -> Document:
        """The model's section, without its fallbacks."""
        first, *later = self.levels(name)
        made: Document = {"targets": first}
        if later:
            made["then"] = [{"after": "failure", "targets": targets} for targets in later]
        if limits := self.timeouts(name):
            made["timeouts"] = limits
        self._check_timeouts(name)
        return made

    def weights(self, name: str) -> dict[str, float]:
        """Return the shares of a model's first targets; empty where one of them states none."""
        first = self.levels(name)[0]
        found = dict.fromkeys(first, 0.0)
        for item in self.deployments[name]:
            if item.target in found:
                found[item.target] += item.weight or 0.0
        if len(found) < 2 or not any(found.values()):
            return {}
        if not all(found.values()):
            words = f"not all deployments of `{name}` have a weight: price decides among them"
            self.notes.append(lost(f"models.{name}.weight", words, ImportLoss.MODELS))
            return {}
        return found

    def _check_timeouts(self, name: str) -> None:
        group = self.deployments[name]
        if len({(item.whole_s, item.head_s) for item in group}) > 1:
            words = f"the deployments of `{name}` state several: the longest holds for all of them"
            self.notes.append(lost(f"models.{name}.timeouts", words, ImportLoss.TIMEOUTS))


def add_fallbacks(
    models: dict[str, Document], groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]]
) -> None:
    """Give models the stages that the sections' fallbacks stand for; `router_settings` wins."""
    tables = {kind: _table(groups, sections, kind) for kind in (GENERAL, CONTEXT, CONTENT_POLICY)}
    everybody = _names(groups, sections, DEFAULT)
    everybody += tables[GENERAL].pop(_EVERY, [])
    for name, model in models.items():
        if name not in groups.deployments:
            continue
        for kind, cause in _CAUSES.items():
            for place, other in tables[kind].get(name, []):
                _add_stage(model, groups, (name, other, place), cause)
        general = [cause for kind, cause in _CAUSES.items() if not tables[kind]]
        causes: Any = ["failure", *general] if general else "failure"
        for place, other in tables[GENERAL].get(name, everybody):
            if other != name:
                _add_stage(model, groups, (name, other, place), causes)
    for table in tables.values():
        for name in sorted(table.keys() - groups.deployments.keys()):
            for place, other in table[name]:
                words = f"`{name}` to `{other}`: one of them is no model here"
                groups.notes.append(lost(place, words, ImportLoss.FALLBACKS))
    _tell_chains(groups, tables[GENERAL])


_Named = list[tuple[str, str]]  # (place in the file, name of the other model)


def _add_stage(
    model: Document, groups: ModelGroups, who: tuple[str, str, str], after: str | list[str]
) -> None:
    name, other, place = who
    levels = groups.levels(other)
    if not levels:
        words = f"`{name}` to `{other}`: one of them is no model here"
        groups.notes.append(lost(place, words, ImportLoss.FALLBACKS))
        return
    limits = groups.timeouts(other)
    for level in levels:
        targets = [target for target in level if target not in model["targets"]]
        if not targets:
            continue
        stage: Document = {"after": after, "targets": targets}
        if limits != groups.timeouts(name):
            stage["timeouts"] = limits or dict(groups.usual)
        model.setdefault("then", []).append(stage)


def _table(
    groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]], kind: str
) -> dict[str, _Named]:
    """By model, whom it falls back to."""
    found: dict[str, _Named] = {}
    for section in ("litellm_settings", "general_settings", "router_settings"):
        given = sections.get(section, {}).get(kind)
        for entry in given if isinstance(given, list) else []:
            if not isinstance(entry, Mapping):
                continue
            for name, others in entry.items():
                listed = others if isinstance(others, list) else [others]
                place = f"{section}.{kind}"
                found[str(name)] = [
                    (place, _name_of(groups, place, str(name), other)) for other in listed
                ]
    return found


def _names(groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]], kind: str) -> _Named:
    for section in ("router_settings", "general_settings", "litellm_settings"):
        given = sections.get(section, {}).get(kind)
        if isinstance(given, list):
            place = f"{section}.{kind}"
            return [(place, _name_of(groups, place, "each model", other)) for other in given]
    return []


def _name_of(groups: ModelGroups, place: str, name: str, other: object) -> str:
    """The model that a fallback names, plainly or with what else to ask of it; empty: none."""
    if not isinstance(other, Mapping):
        return other if isinstance(other, str) else ""
    named = other.get("model")
    if len(other) > 1 and isinstance(named, str):
        words = f"`{name}` to `{named}`: the same is asked there, nothing is changed"
        groups.notes.append(lost(place, words, ImportLoss.FALLBACKS))
    return named if isinstance(named, str) else ""


def _tell_chains(groups: ModelGroups, table: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    for name, place, other in _chains(table):
        words = f"`{name}` to `{other}`, which falls back as well: that is not followed"
        groups.notes.append(ImportNote(place, words))


def _chains(table: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[tuple[str, str, str]]:
    for name, others in table.items():
        told = {other for _, other in others}
        for place, other in others:
            further = {named for _, named in table.get(other, ())}
            if further - told - {name}:
                yield name, place, other
