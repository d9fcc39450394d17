"""What a client is told when no answer comes: the cause and the fix, never a provider's secret."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from backends.errors import (
    BackendError,
    HeadTimeout,
    IdleTimeout,
    Overloaded,
    Overtaken,
    Silent,
    WrongAddress,
)
from gateway.errors import RequestError
from gateway.kinds import KINDS
from gateway.limits import hosted
from gateway.plan import Plan
from ledger.budgets.desk import Refusal
from ledger.journals.records import Status
from router.explain import short
from router.types import Feature, Reason, Verdict

RETRY_AFTER_S = 1.0
NO_PATH = (
    "The target has no such path, or moved: its `base_url` (or `endpoints`) in the gateway's "
    "configuration is wrong."
)
_INSIDE = (
    "The key, the model or its policy is internal-only: name a model with targets inside the "
    "network, or ask for a key or a policy with `residency: any`."
)
_ISOLATED = (
    "The key isolates its prefix cache: name a model whose targets do, or ask for a key with "
    "`isolation: none`."
)
_DEAR = "Shorten the prompt, lower `max_tokens` or `n`, or ask for a higher `max_usd_per_request`."
_UNPRICED = "Name a model whose price is known, or ask for a price to be set."
_LEFT_OUT = "Its policy leaves them out: name another model, or ask for another policy."
_FIXES = {  # where no wait helps: the kind of the answer, the member to change, and the fix
    Reason.MODEL: ("bad_request", "model", "Name a model that serves this path."),
    Reason.FEATURE: ("unsupported", None, ""),  # in its own words below
    Reason.CONTEXT: ("context", None, "Shorten the prompt or lower `max_tokens`."),
    Reason.RESIDENCY: ("residency", "model", _INSIDE),
    Reason.UNPRICED: ("bad_request", "model", _UNPRICED),
    Reason.PRICE_CAP: ("bad_request", "max_tokens", _DEAR),
    Reason.SALT: ("isolation", "model", _ISOLATED),
    Reason.CANDIDATES: ("bad_request", "model", _LEFT_OUT),
    Reason.CANARY: ("bad_request", "model", _LEFT_OUT),
    Reason.QUALITY: ("bad_request", "model", _LEFT_OUT),
}
_FULL = frozenset({Reason.RATE_LIMIT, Reason.KV_HEADROOM, Reason.TTFT, Reason.TPOT})
_AWAY = frozenset(
    {
        Reason.CIRCUIT_OPEN, Reason.UNHEALTHY, Reason.LOADING, Reason.DRAINING,
        Reason.UNKNOWN_STATE, Reason.DISABLED,
    }
)  # fmt: skip
_ASKED_BY = {  # the member that asks for a feature
    Feature.TOOLS: "tools",
    Feature.JSON_SCHEMA: "response_format",
    Feature.LOGPROBS: "logprobs",
    Feature.N: "n",
    Feature.REASONING: "reasoning_effort",
    Feature.STORE: "store",
    Feature.HOSTED_TOOLS: "tools",
}


class Short(NamedTuple):
    """The budget that refused, and the most that the request could have cost; `None`: unpriced."""

    budget: Refusal
    bound_pusd: int | None


def over_budget(refusal: Refusal) -> RequestError:
    """The 429 that names the budget and its reset; SDKs must not hammer it."""
    resets = datetime.fromtimestamp(refusal.resets_at_us / 1e6, UTC)
    return RequestError(
        "budget",
        f"Budget `{refusal.scope}` has no room for this request until it resets at "
        f"{resets:%Y-%m-%d %H:%M} UTC.",
        retry=False,
    )


def no_place(plan: Plan, wait_s: float, *, hopeless: bool) -> RequestError:
    """The policy would let it wait, and the line is full, or too slow for its deadline."""
    if hopeless:
        message = f"`{plan.model}` has no room for this request before its deadline."
        return RequestError("no_capacity", message, retry_after_s=max(RETRY_AFTER_S, wait_s))
    message = f"Too many requests wait for `{plan.model}`."
    return RequestError("overloaded", message, retry_after_s=max(RETRY_AFTER_S, wait_s))


def infeasible(plan: Plan) -> RequestError:
    """No candidate may serve it, budgets apart: the reasons, and whether waiting can help.

    A target that serves and has no room is a 429; where none serves, it is not the client's rate.
    """
    decision = plan.decision
    detail = short(decision)
    if decision.reason is Reason.FEATURE:
        return _lacking(plan)
    if decision.reason in _FIXES:
        kind, param, fix = _FIXES[decision.reason]
        if decision.reason in (Reason.CONTEXT, Reason.PRICE_CAP):
            param, fix = KINDS[plan.request.kind].shorten or (param, fix)
        message = f"No target of `{plan.model}` can serve this: {detail}. {fix}"
        return RequestError(kind, message, param=param, retry=False)
    wait_s = _room_in_s(decision.verdicts)
    shown = f"{wait_s:.1f}".removesuffix(".0")
    when = f"; there is room in {shown} s" if wait_s > RETRY_AFTER_S else ""
    serving = any(verdict.reason in _FULL for verdict in decision.verdicts)
    return RequestError(
        "unavailable" if decision.reason in _AWAY and not serving else "no_capacity",
        f"No target of `{plan.model}` can take this request: {detail}{when}.",
        retry_after_s=wait_s,
    )


def _room_in_s(verdicts: Sequence[Verdict]) -> float:
    """When the first target may have room: APIs say so, an own engine may at any moment."""
    waits = [
        verdict.candidate.api.retry_after_s if verdict.candidate.api else RETRY_AFTER_S
        for verdict in verdicts
        if verdict.reason in _FULL or verdict.reason in _AWAY
    ]
    return max(RETRY_AFTER_S, min(waits, default=RETRY_AFTER_S))


def _lacking(plan: Plan) -> RequestError:
    """Names the members that ask for what the target that comes closest does not offer."""
    missing = min(
        (
            plan.request.features - verdict.candidate.features
            for verdict in plan.decision.verdicts
            if verdict.reason is Reason.FEATURE
        ),
        key=len,
    )
    names = sorted({_asked_by(feature, plan) for feature in missing})
    fields, declared = ", ".join(f"`{name}`" for name in names), ", ".join(sorted(missing))
    return RequestError(
        "unsupported",
        f"No target of `{plan.model}` offers what {fields} asks for "
        f"({declared}). Leave {fields} out, name a model that offers it, or declare "
        f"`features: [{declared}]` for a target in the gateway's configuration.",
        param=names[0],
        retry=False,
    )


def _asked_by(feature: Feature, plan: Plan) -> str:
    if feature is Feature.HOSTED_TOOLS:  # by one of several
        return hosted.asked_by(plan.asked.members) or _ASKED_BY[feature]
    return _ASKED_BY.get(feature) or KINDS[plan.request.kind].media_member


def failed(error: BackendError) -> RequestError:
    """A target's failure as the client hears it."""
    kind = "timeout" if _timed_out(error) else "upstream"
    wait_s = error.retry_after_s
    if isinstance(error, Overloaded | Overtaken):
        kind, wait_s = "overloaded", wait_s or RETRY_AFTER_S
    if isinstance(error, WrongAddress):
        return RequestError("upstream", NO_PATH)
    return RequestError(kind, f"The target failed: {error.kind}.", retry_after_s=wait_s)


def status_of(error: BackendError) -> tuple[Status, int]:
    """The ledger's words for the failure: (status, HTTP status)."""
    if not error.billable:
        return "rejected", error.status or 503
    if _timed_out(error):
        return "timeout", error.status or 504
    return "upstream_error", error.status or 502


def _timed_out(error: BackendError) -> bool:
    return isinstance(error, HeadTimeout | IdleTimeout | Silent)
