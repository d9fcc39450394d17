"""Replacements for a request that no target can serve: with less, or shortened.

The whole request is planned first, so that a target that can serve all of it is preferred. The same
residency, budgets and keys apply to the replacement.
"""

from gateway.kinds.inference_request import InferenceRequest
from gateway.request.plan import RoutingPlan
from router.reasons import Reason


def ask_less(plan: RoutingPlan, *, cuts: bool = True) -> InferenceRequest | None:
    """Return the request to plan next; None where a target serves it or nothing less is left.

    `cuts`: whether a prompt that is too long may be shortened.
    """
    decision, asked = plan.decision, plan.asked
    if decision.order:
        return None
    reasons = {verdict.reason for verdict in decision.verdicts}
    if asked.instead is not None and Reason.FEATURE in reasons:
        return asked.instead
    if cuts and asked.shorten is not None and Reason.CONTEXT in reasons:
        return asked.shorten(_surplus_bytes(plan))
    return None


def _surplus_bytes(plan: RoutingPlan) -> int:
    """Return the prompt's bytes above the largest context among those too small for it.

    Bytes follow from tokens by the prompt's own mean; the shortened prompt is planned again.
    """
    request = plan.request
    prompt = min(request.prompt_tokens_bound, request.context_margin * request.prompt_tokens)
    contexts = [
        verdict.candidate.context_tokens
        for verdict in plan.decision.verdicts
        if verdict.reason is Reason.CONTEXT
    ]
    room = max(contexts) - (1 if request.max_tokens is None else request.max_tokens)
    share = max(0.0, 1.0 - room / prompt)
    return round(share * plan.asked.prompt_bytes)
