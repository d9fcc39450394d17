"""Registry of the fields of policy rules: one entry for each field of `PolicyRuleSection`.

An entry says whether the field restricts, how two rules are compared by it, which targets it leaves
out, what it becomes in the router's policy, and its words. Checks, matching and lists of policies
read it from here. No attribute has a default, so that a new field decides all of them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar

from gateway.config.schema import ModelSection, PolicyRuleSection
from gateway.config.schema_policies import TimesSection
from ledger.money import usd_to_pusd
from router.content import content_terms, is_as_strict
from router.reasons import Reason, Rejection
from router.types import InfeasibleAction, Residency, Slo

Limit = TypeVar("Limit", float, Decimal)


class PolicyPart(NamedTuple):
    """Field of the router's `Policy` and its value under a rule."""

    name: str
    value: Callable[[PolicyRuleSection], Any]


class RuleWords(NamedTuple):
    """Field's part of a rule's one-line description, and its position there."""

    place: int
    describe: Callable[[PolicyRuleSection], str]  # empty if there is nothing to describe


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRestriction:
    """Protection that a request loses if it falls under another rule.

    `setting`: its name in faults. `is_kept`: whether the upper rule is as strict as the lower one;
    `is_kept_by_model`: whether a model is as strict by itself. `bar`: why a target is left out, by
    its name in the configuration; `None` where the router's filters act on the `PolicyPart`.
    `objection`: why a target that the rule names cannot serve it. `untightened`: why a rule whose
    condition cannot be evaluated does not restrict by it; otherwise bars and the parts in
    `router.policy.TIGHTENINGS` apply.
    """

    setting: str
    is_kept: Callable[[PolicyRuleSection, PolicyRuleSection], bool]
    is_kept_by_model: Callable[[ModelSection], bool] | None
    reasons: tuple[Reason, ...]
    bar: Callable[[PolicyRuleSection, ModelSection, str], Rejection | None] | None
    objection: Callable[[PolicyRuleSection, str], str | None] | None
    untightened: str | None


@dataclass(frozen=True, slots=True)
class RuleField:
    name: str
    part: PolicyPart | None
    restriction: RuleRestriction | None
    words: RuleWords | None


def _is_of_pools_only(rule: PolicyRuleSection) -> bool:
    """Return whether the rule names only pools as candidates."""
    return bool(rule.candidates) and all(name.startswith("pool:") for name in rule.candidates)


def _is_residency_kept(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    return (
        lower.residency == "any" or upper.residency == "internal_only" or _is_of_pools_only(upper)
    )


def _object_to_leaving(rule: PolicyRuleSection, target: str) -> str | None:
    if rule.residency != "internal_only" or target.startswith("pool:"):
        return None
    return f"internal_only, but `{target}` is an external API"


def _are_candidates_kept(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    if not lower.candidates:
        return True
    if _is_of_pools_only(lower) and upper.residency == "internal_only":
        return True
    return bool(upper.candidates) and set(upper.candidates) <= set(lower.candidates)


def _bar_unnamed(rule: PolicyRuleSection, _model: ModelSection, target: str) -> Rejection | None:
    if rule.candidates and target not in rule.candidates:
        return Reason.CANDIDATES, "the policy names others"
    return None


def _object_to_unnamed(rule: PolicyRuleSection, target: str) -> str | None:
    if not rule.candidates or target in rule.candidates:
        return None
    return f"`{target}` is not among this policy's `candidates`"


def _bar_loss(rule: PolicyRuleSection, model: ModelSection, target: str) -> Rejection | None:
    most = rule.max_quality_loss
    if most is None:
        return None
    loss = model.quality_loss.get(target)
    if loss is None:
        return Reason.QUALITY, "its loss of quality is not stated"
    return (Reason.QUALITY, f"loses {loss:g}, at most {most:g}") if loss > most else None


def _is_slo_kept(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    """Return whether the SLO is kept; only strict SLOs with a time exclude targets."""
    ours, theirs = lower.slo, upper.slo
    if not ours.strict or (ours.ttft_ms is None and ours.tpot_ms is None):
        return True
    return (
        theirs.strict
        and _is_no_looser(theirs.ttft_ms, ours.ttft_ms)
        and _is_no_looser(theirs.tpot_ms, ours.tpot_ms)
        and theirs.attainment >= ours.attainment
    )


def _is_no_looser(upper: Limit | None, lower: Limit | None) -> bool:
    return lower is None or (upper is not None and upper <= lower)


def _slo(rule: PolicyRuleSection) -> Slo:
    slo = rule.slo
    return Slo(
        ttft_ms=slo.ttft_ms, tpot_ms=slo.tpot_ms, attainment=slo.attainment, strict=slo.strict
    )


def _describe_match(rule: PolicyRuleSection) -> str:
    asked = rule.match
    parts = (
        f"models {', '.join(asked.models)}" if asked.models else "",
        f"teams {', '.join(asked.teams)}" if asked.teams else "",
        f"when {asked.when}" if asked.when else "",
        " or ".join(map(_describe_hours, asked.times)),
    )
    return "; ".join(filter(None, parts))


def _describe_hours(times: TimesSection) -> str:
    days = f"{', '.join(times.days)} " if times.days else ""
    return f"{days}{times.starts} to {times.ends} {times.timezone}"


def _describe_weights(rule: PolicyRuleSection) -> str:
    total = sum(rule.weights.values())
    return ", ".join(f"{100 * part / total:.3g} % {name}" for name, part in rule.weights.items())


def _describe_canary(rule: PolicyRuleSection) -> str:
    canary = rule.canary
    return "" if canary is None else f"canary {canary.percent:g} % to {canary.target}"


def _describe_loss(rule: PolicyRuleSection) -> str:
    most = rule.max_quality_loss
    return "" if most is None else f"at most {most:g} of quality lost"


def _is_content_kept(upper: PolicyRuleSection, lower: PolicyRuleSection) -> bool:
    inside = upper.residency == "internal_only" or _is_of_pools_only(upper)
    return is_as_strict(content_terms(upper.content), content_terms(lower.content), inside=inside)


def _describe_content(rule: PolicyRuleSection) -> str:
    if not rule.content:
        return ""
    words = {"record": "records", "mask": "masks", "keep_inside": "keeps in", "refuse": "refuses"}
    terms = content_terms(rule.content)
    parts = [
        f"{verb} {', '.join(kind for kind, action in terms if action == word)}"
        for word, verb in words.items()
        if any(action == word for _, action in terms)
    ]
    return f"content: {'; '.join(parts)}"


# Faults name the restrictions in this order.
RULE_FIELDS: tuple[RuleField, ...] = (
    RuleField("name", PolicyPart("name", lambda rule: rule.name), None, None),
    RuleField("match", None, None, RuleWords(1, _describe_match)),
    RuleField(
        "residency",
        PolicyPart("residency", lambda rule: Residency(rule.residency)),
        RuleRestriction(
            setting="residency",
            is_kept=_is_residency_kept,
            is_kept_by_model=lambda model: model.residency == "internal_only",
            reasons=(Reason.RESIDENCY,),
            bar=None,
            objection=_object_to_leaving,
            untightened=None,
        ),
        RuleWords(6, lambda rule: "stays inside" if rule.residency == "internal_only" else ""),
    ),
    RuleField(
        "content",
        PolicyPart("content", lambda rule: content_terms(rule.content)),
        RuleRestriction(
            setting="content",
            is_kept=_is_content_kept,
            is_kept_by_model=None,
            reasons=(Reason.CONTENT,),
            bar=None,
            objection=None,
            untightened=None,
        ),
        RuleWords(7, _describe_content),
    ),
    RuleField(
        "candidates",
        None,
        RuleRestriction(
            setting="candidates",
            is_kept=_are_candidates_kept,
            is_kept_by_model=None,
            reasons=(Reason.CANDIDATES,),
            bar=_bar_unnamed,
            objection=_object_to_unnamed,
            untightened=None,
        ),
        RuleWords(2, lambda rule: f"only {', '.join(rule.candidates)}" if rule.candidates else ""),
    ),
    RuleField(
        "max_usd_per_request",
        PolicyPart(
            "max_cost_pusd",
            lambda rule: (
                None if rule.max_usd_per_request is None else usd_to_pusd(rule.max_usd_per_request)
            ),
        ),
        RuleRestriction(
            setting="max_usd_per_request",
            is_kept=lambda upper, lower: _is_no_looser(
                upper.max_usd_per_request, lower.max_usd_per_request
            ),
            is_kept_by_model=None,
            reasons=(Reason.PRICE_CAP, Reason.UNPRICED),
            bar=None,
            objection=None,
            untightened=None,
        ),
        None,
    ),
    RuleField(
        "max_quality_loss",
        None,
        RuleRestriction(
            setting="max_quality_loss",
            is_kept=lambda upper, lower: _is_no_looser(
                upper.max_quality_loss, lower.max_quality_loss
            ),
            is_kept_by_model=None,
            reasons=(Reason.QUALITY,),
            bar=_bar_loss,
            objection=None,
            untightened=None,
        ),
        RuleWords(5, _describe_loss),
    ),
    RuleField(
        "slo",
        PolicyPart("slo", _slo),
        RuleRestriction(
            setting="slo.strict",
            is_kept=_is_slo_kept,
            is_kept_by_model=None,
            reasons=(Reason.TTFT, Reason.TPOT),
            bar=None,
            objection=None,
            untightened="a late answer costs time: no prompt leaves, no money is spent",
        ),
        None,
    ),
    RuleField(
        "kv_headroom_floor",  # protects engines under any rule, not the request
        PolicyPart(
            "kv_headroom_floor",
            lambda rule: None if rule.kv_headroom_floor == "off" else rule.kv_headroom_floor,
        ),
        None,
        None,
    ),
    RuleField(
        "penalty_usd",  # default per request: `CompiledPolicy.priced`
        PolicyPart(
            "penalty_pusd",
            lambda rule: 0 if rule.penalty_usd is None else usd_to_pusd(rule.penalty_usd),
        ),
        None,
        None,
    ),
    RuleField(
        "otherwise",
        PolicyPart("otherwise", lambda rule: InfeasibleAction(rule.otherwise)),
        None,
        None,
    ),
    RuleField("queue_ms", None, None, None),
    RuleField("priority", None, None, None),
    RuleField("weights", None, None, RuleWords(3, _describe_weights)),
    RuleField("canary", None, None, RuleWords(4, _describe_canary)),
    RuleField(
        "shadow",
        None,
        None,
        RuleWords(0, lambda rule: "shadow: decided and recorded only" if rule.shadow else ""),
    ),
)
RESTRICTIONS = tuple(field.restriction for field in RULE_FIELDS if field.restriction is not None)
POLICY_PARTS = tuple(field.part for field in RULE_FIELDS if field.part is not None)
_BARS = tuple(entry.bar for entry in RESTRICTIONS if entry.bar is not None)
_OBJECTIONS = tuple(entry.objection for entry in RESTRICTIONS if entry.objection is not None)
_WORDS = sorted(
    (field.words for field in RULE_FIELDS if field.words is not None),
    key=lambda words: words.place,
)


def bar_target(rule: PolicyRuleSection, model: ModelSection, target: str) -> Rejection | None:
    """Return the first reason by which the rule leaves out a target of the model."""
    for bar in _BARS:
        rejection = bar(rule, model, target)
        if rejection is not None:
            return rejection
    return None


def object_to_target(rule: PolicyRuleSection, target: str) -> str | None:
    """Return why a target that the rule names cannot serve it."""
    for objection in _OBJECTIONS:
        words = objection(rule, target)
        if words is not None:
            return words
    return None


def describe_rule(rule: PolicyRuleSection) -> str:
    """Describe in one line whom a rule is for and how it splits requests."""
    parts = [words.describe(rule) for words in _WORDS]
    return f"{rule.name}: {'; '.join(filter(None, parts)) or 'every request'}"
