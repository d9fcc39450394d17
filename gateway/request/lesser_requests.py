"""Makes what is asked in place of a request that no target can serve, where less will do.

The whole is planned first, so whoever can serve all of it is preferred; residency, budgets and keys
hold for the rest as for it.
"""

from gateway.kinds.inference_request import InferenceRequest
from gateway.request.plan import RoutingPlan
from router.reasons import Reason


def ask_less(plan: RoutingPlan, *, cuts: bool = True) -> InferenceRequest | None:
    """Return what to plan next; None where a target serves it, or nothing less is left to ask.

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
    """Return how much of the prompt is too much for the largest context that it was too long for.

    Bytes are told from tokens by the prompt's own mean; what is left is planned again.
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
