"""Conversion of LiteLLM's deployments, their `order` and fallbacks to stages of targets.

`fallbacks` are tried after a failure. Without special fallbacks for too long or filtered prompts,
LiteLLM uses them there, too. Fallbacks of fallbacks are followed as in LiteLLM (`litellm_walk`).
What stages cannot express is a loss.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from gateway.config.deployments import section_of
from gateway.config.litellm_notes import ImportLoss, ImportNote, lost
from gateway.config.litellm_walk import (
    CAUSES,
    CONTENT_POLICY,
    CONTEXT,
    EVERY,
    FAILURE,
    USUAL_DEPTH,
    FallbackWalk,
    WalkStage,
    plan_stages,
)
from gateway.config.schema_models import STAGES_LIMIT

DEFAULT, DEPTH = "default_fallbacks", "max_fallbacks"
_TABLES = {
    FAILURE: "fallbacks",
    CONTEXT: "context_window_fallbacks",
    CONTENT_POLICY: "content_policy_fallbacks",
}
FALLBACKS = (*_TABLES.values(), DEFAULT)
_READ = ("router_settings", "litellm_settings")  # the first with a table has precedence
_UNREAD = "general_settings"
Document = dict[str, Any]


class ModelDeployment(NamedTuple):
    """Deployment of a model with the file's numbers, None if not stated."""

    target: str
    order: float | None = None
    weight: float | None = None
    whole_s: float | None = None  # for whole answers, and up to a stream's head
    head_s: float | None = None  # `stream_timeout`


@dataclass(slots=True)
class ModelGroups:
    """Deployments by the file's model names; `usual` are the default timeouts."""

    deployments: dict[str, list[ModelDeployment]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    patterns: Mapping[str, str] = field(default_factory=dict)
    usual: Document = field(default_factory=dict)
    notes: list[ImportNote] = field(default_factory=list)

    def levels(self, name: str) -> list[list[str]]:
        """Return a model's targets by `order`, those without one last; empty: unknown model."""
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
        """Return a model's own timeouts: the longest of its deployments."""
        group = self.deployments.get(self.aliases.get(name, name), [])
        whole = [item.whole_s for item in group if item.whole_s]
        head = [wait for item in group if (wait := item.head_s or item.whole_s)]
        found: Document = {"head_s": max(head)} if head else {}
        return {**found, "whole_s": max(whole)} if whole else found

    def model(self, name: str) -> Document:
        """Return the model's section without stages."""
        made: Document = {"targets": self.levels(name)[0]}
        if limits := self.timeouts(name):
            made["timeouts"] = limits
        self._check_timeouts(name)
        self._check_orders(name)
        return made

    def weights(self, name: str) -> dict[str, float]:
        """Return the weights of a model's first targets; empty if one of them has none."""
        first = self.levels(name)[0]
        found = dict.fromkeys(first, 0.0)
        for item in self.deployments[self.aliases.get(name, name)]:
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

    def _check_orders(self, name: str) -> None:
        orders = {item.order for item in self.deployments[name]}
        if None in orders and len(orders) > 1:
            words = f"some deployments of `{name}` have no `order`: here they follow at a failure"
            self.notes.append(lost(f"models.{name}.order", words, ImportLoss.MODELS))


def add_aliases(
    models: dict[str, Document], groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add aliases of models."""
    for section, given in sections.items():
        place = f"{section}.model_group_alias"
        for name, target in section_of(given.get("model_group_alias")).items():
            other = target.get("model") if isinstance(target, Mapping) else target
            if isinstance(other, str) and other in models and name not in models:
                models[name] = {"same_as": other}
                groups.aliases[name] = other
            else:
                words = f"`{other}` is not a model, or the name is taken"
                groups.notes.append(lost(f"{place}.{name}", words, ImportLoss.MODELS))


def add_fallbacks(
    models: dict[str, Document], groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]]
) -> None:
    """Add the stages that `order` and the sections' fallbacks stand for."""
    tables = {cause: _table(groups, sections, name) for cause, name in _TABLES.items()}
    everybody = _everybody(groups, sections)
    if everybody:
        tables[FAILURE][EVERY] = everybody
    if EVERY in tables[FAILURE]:
        for pattern in groups.patterns:
            words = f"models that `{pattern}` passes through have no stages: list those that need"
            groups.notes.append(lost(f"models.{pattern}", words, ImportLoss.FALLBACKS))
    walk = FallbackWalk(
        lambda name: len(groups.levels(name)),
        {cause: _plain(table) for cause, table in tables.items()},
        _depth(sections),
    )
    for name in [*models]:
        other = groups.aliases.get(name)
        stages, differing = plan_stages(walk, name)
        model = {key: value for key, value in models[other or name].items() if key != "then"}
        _add_stages(model, groups, name, stages)
        if other is None:
            models[name] = model
        elif model.get("then") != models[other].get("then"):
            models[name] = model  # LiteLLM's fallbacks are by the requested name
        if differing:
            words = (
                f"`{name}`: after these errors LiteLLM tries other targets than the stages: "
                f"{', '.join(differing)}"
            )
            groups.notes.append(lost(f"models.{name}.then", words, ImportLoss.FALLBACKS))


_Named = list[tuple[str, str]]  # (place in the file, name of the other model)


def _add_stages(
    model: Document, groups: ModelGroups, name: str, stages: Sequence[WalkStage]
) -> None:
    asked, then = set(model["targets"]), []
    for stage in stages:
        level = groups.levels(stage.asked.model)[stage.asked.level]
        targets = [target for target in level if target not in asked]
        if not targets:
            continue
        causes = [cause for cause in CAUSES if cause in stage.causes]
        if len(causes) == len(CAUSES):
            asked |= set(targets)  # always tried before a later stage
        made: Document = {"after": causes if len(causes) > 1 else causes[0], "targets": targets}
        limits = groups.timeouts(stage.asked.model)
        if limits != groups.timeouts(name):
            made["timeouts"] = limits or dict(groups.usual)
        then.append(made)
    if len(then) > STAGES_LIMIT:
        words = f"{len(then)} stages: the first {STAGES_LIMIT} are kept, a model has no more"
        groups.notes.append(lost(f"models.{name}.then", words, ImportLoss.FALLBACKS))
    if then:
        model["then"] = then[:STAGES_LIMIT]


def _table(
    groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]], kind: str
) -> dict[str, _Named]:
    """Return the fallbacks by model; unknown models are noted and left out."""
    section = next((name for name in _READ if sections.get(name, {}).get(kind)), None)
    if kind in sections.get(_UNREAD, {}):
        words = "LiteLLM does not read fallbacks in this section, so they have no effect"
        groups.notes.append(ImportNote(f"{_UNREAD}.{kind}", words, warns=False))
    given = sections[section][kind] if section else None
    found: dict[str, _Named] = {}
    for entry in given if isinstance(given, list) else []:
        for name, others in section_of(entry).items():
            listed = others if isinstance(others, list) else [others]
            named = _followers(groups, f"{section}.{kind}", str(name), listed)
            if name == EVERY:
                found[EVERY] = named  # here the last one counts, elsewhere the first
            else:
                found.setdefault(str(name), named)
    return found


def _everybody(groups: ModelGroups, sections: Mapping[str, Mapping[str, Any]]) -> _Named:
    for section in _READ:
        given = sections.get(section, {}).get(DEFAULT)
        if isinstance(given, list) and given:
            return _followers(groups, f"{section}.{DEFAULT}", EVERY, given)
    return []


def _followers(groups: ModelGroups, place: str, name: str, others: Sequence[object]) -> _Named:
    found: _Named = []
    who = "each model" if name == EVERY else f"`{name}`"
    known = name == EVERY or name in groups.deployments or name in groups.aliases
    for other in others:
        named = _name_of(groups, place, who, other)
        if known and groups.levels(named):
            found.append((place, named))
        else:
            words = f"{who} to `{named}`: one of them is no model here"
            groups.notes.append(lost(place, words, ImportLoss.FALLBACKS))
    return found


def _name_of(groups: ModelGroups, place: str, who: str, other: object) -> str:
    """Return the model that a fallback names, directly or in a mapping; empty if none."""
    if not isinstance(other, Mapping):
        return other if isinstance(other, str) else ""
    named = other.get("model")
    if len(other) > 1 and isinstance(named, str):
        words = f"{who} to `{named}`: the same is asked there, nothing is changed"
        groups.notes.append(lost(place, words, ImportLoss.FALLBACKS))
    return named if isinstance(named, str) else ""


def _plain(table: Mapping[str, _Named]) -> dict[str, list[str]]:
    return {name: [other for _, other in named] for name, named in table.items()}


def _depth(sections: Mapping[str, Mapping[str, Any]]) -> int:
    for section in _READ:
        stated = sections.get(section, {}).get(DEPTH)
        if isinstance(stated, int) and not isinstance(stated, bool):
            return stated
    return USUAL_DEPTH
