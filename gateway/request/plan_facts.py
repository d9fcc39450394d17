"""Facts of a request for its policy: condition inputs, residency and session."""

from gateway.clock import Clock
from gateway.config.conditions import ConditionInput
from gateway.kinds.inference_request import InferenceRequest
from gateway.policies.content_policy import kept_kinds
from gateway.policies.policy_match import PolicyTerms
from gateway.request.routes import RouteContext
from ledger.identity.keys import Identity
from router.policy import tighten
from router.types import Residency

_ANY = Residency.ANY


def condition_input(
    asked: InferenceRequest, route: RouteContext, prompt_tokens: int
) -> ConditionInput:
    who = route.identity
    return ConditionInput(
        model=route.model,
        team=who.team_id,
        org=who.org_id,
        key=who.key_id,
        user=who.user_id or "",
        tags=who.own_tags,
        kind=asked.kind.value,
        stream=asked.stream,
        prompt_tokens=prompt_tokens,
        max_tokens=asked.max_tokens or 0,
        n=asked.n * asked.prompts,
        features=tuple(feature.value for feature in asked.features),
    )


def may_leave(route: RouteContext, asked: InferenceRequest, terms: PolicyTerms) -> bool:
    """Return whether no residency keeps the request inside."""
    return {route.residency, asked.residency, terms.rule.policy.residency} == {_ANY}


def terms_of(
    route: RouteContext,
    asked: InferenceRequest,
    prompt_tokens: int,
    request_id: str,
    clock: Clock,
) -> PolicyTerms:
    """Return the request's policy terms, which may depend on more than key and model."""
    return route.chain.terms(
        lambda: condition_input(asked, route, prompt_tokens),
        wall_us=clock.wall_us(),
        key=request_id
        if asked.session is None
        else session_key(route.model, route.identity, asked.session),
    )


def residency_of(
    route: RouteContext, asked: InferenceRequest, terms: PolicyTerms
) -> tuple[Residency, str]:
    """Return the tightest residency except the policy's, and content kinds that tightened it."""
    residency = route.residency
    if asked.residency is not _ANY:
        residency = tighten(residency, asked.residency)
    content = terms.rule.policy.content
    if not content and asked.content is None:
        return residency, ""
    kept_for = kept_kinds(asked, content)
    return (Residency.INTERNAL_ONLY if kept_for else residency), kept_for


def session_key(model: str, identity: Identity, session: str) -> str:
    """Return the key of a session, which belongs to one team and one model.

    No team can use the session affinity of another.
    """
    return f"{identity.team_id}\x00{model}\x00{session}"
