"""Errors for clients that get no answer: cause and fix, without a provider's secrets."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import ceil
from typing import NamedTuple

from backends.errors import (
    BackendError,
    ContentFiltered,
    ContextTooLong,
    DispatchSuperseded,
    FirstTokenTimeout,
    HeadTimeout,
    IdleTimeout,
    RequestDeclined,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
)
from gateway.errors import RequestError
from gateway.kinds import KINDS, hosted_tools
from gateway.request.plan import RoutingPlan
from ledger.budgets.binding import scope_of
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.scopes import BudgetReader, prefixes
from ledger.journals.records import Status
from ledger.money import usd_text
from router.reasons import REASONS, Outlook, Reason, with_outlook
from router.request_kinds import RequestKind
from router.types import Feature, Verdict

RETRY_AFTER_S = 1.0
SHOWN_TARGETS = 5  # in a message; `breakeven policy explain` shows all
_MEND = "A retry cannot help. Name another model, and report to the gateway's operator"
_BASE_URL = "that its `base_url` (or `endpoints`) in the gateway's configuration is wrong."
_FULL, _AWAY = with_outlook(Outlook.FULL), with_outlook(Outlook.AWAY)
_ASKED_BY = {  # the member that requests a feature
    Feature.TOOLS: "tools",
    Feature.JSON_SCHEMA: "response_format",
    Feature.LOGPROBS: "logprobs",
    Feature.N: "n",
    Feature.REASONING: "reasoning_effort",
    Feature.STORE: "store",
    Feature.HOSTED_TOOLS: "tools",
}


_PARTS = {  # what needs the feature, and the advice, for a member that cannot be left out
    Feature.IMAGES: ("pictures or sound", "Leave them out"),
    Feature.FILES: ("documents", "Send their text"),
    Feature.MEDIA_URLS: (
        "addresses of media that the target would fetch",
        "Send the content itself, as a `data:` address in Base64",
    ),
}


class Failure(NamedTuple):
    """Texts for a failed target: `reason` follows a status, `did` stands without one.

    `cure` is what the client can do; empty where a retry may help.
    """

    did: str
    reason: str
    cure: str = ""


FAILURES: Mapping[str, Failure] = {  # by `BackendError.kind`; only static texts, without secrets
    "unreachable": Failure("could not be reached", "not reachable"),
    "overloaded": Failure("is overloaded", "overloaded"),
    "refused_credentials": Failure(
        "refused the gateway's own account",
        "it refused the gateway's own account",
        f"{_MEND} that its key or balance is refused.",
    ),
    "declined": Failure("refused the request", "it refused the request"),
    "unsendable": Failure("could not be sent the request", "the request could not be sent"),
    "too_long": Failure(
        "has too small a context for the prompt",
        "the prompt exceeds its context",
        "Shorten the prompt, or name a model with a larger context.",
    ),
    "filtered": Failure(
        "refused the request by its content filter",
        "its content filter refused the request",
        "Change the prompt, or name another model.",
    ),
    "unserved": Failure("does not serve the model now", "it does not serve the model now"),
    "server_error": Failure("reported an error", "server error"),
    "reported_error": Failure("reported an error in its answer", "an error in its answer"),
    "wrong_address": Failure(
        "has no such path, or moved", "it has no such path, or moved", f"{_MEND} {_BASE_URL}"
    ),
    "head_timeout": Failure("did not answer in time", "no answer in time"),
    "silent": Failure("fell silent", "it fell silent"),
    "overtaken": Failure("has no room left", "no room left"),
    "idle_timeout": Failure("went silent before its answer was complete", "it went silent"),
    "upstream_broken": Failure("broke off its answer", "it broke off its answer"),
    "bad_answer": Failure("sent an answer that cannot be read", "its answer cannot be read"),
}
_OF_THE_REQUEST = {  # kinds of `gateway.errors`, by `BackendError.kind`
    RequestDeclined.kind: "bad_request",
    ContextTooLong.kind: "context",
    ContentFiltered.kind: "content_filter",
}
_UNNAMED = Failure("failed", "failed")


# Budgets whose headroom a key may know; of others only whether there is any.
_TOLD = frozenset(prefixes(lambda kind: kind.told_to is not BudgetReader.NOBODY))
HELD_RETRY_S = 1.0  # most holds last seconds


class BudgetShortfall(NamedTuple):
    """The budget that refused, and the request's cost bound; `None` if it has no price."""

    budget: BudgetRefusal
    bound_pusd: int | None


def over_budget(
    refusal: BudgetRefusal,
    bound_pusd: int | None = None,
    kind: RequestKind = RequestKind.CHAT,
    *,
    named: Collection[str] = (),
) -> RequestError:
    """Return the 429 that names the budget and its reset, with advice not to retry.

    The headroom of a tag that the request set itself (`named`) is not disclosed: it may be
    another's. If `bound_pusd` would fit without the holds of open requests, the error has a retry
    delay instead. Requests that were open when the budget was declared count as well.
    """
    if bound_pusd is not None and refusal.is_for_holds(bound_pusd):
        message = f"Budget `{refusal.scope}` has room for this request once others have ended."
        return RequestError("budget", message, retry_after_s=HELD_RETRY_S)
    resets = datetime.fromtimestamp(refusal.resets_at_us / 1e6, UTC)
    message = (
        f"Budget `{refusal.scope}` has no room for this request until it resets at "
        f"{resets:%Y-%m-%d %H:%M} UTC."
    )
    if bound_pusd is not None and 0 < refusal.room_pusd < bound_pusd:
        message += f" It may cost up to {usd_text(bound_pusd)}"
        of, _, name = scope_of(refusal.scope).partition(":")
        if of in _TOLD and (of != "tag" or name.partition("=")[0] not in named):
            message += f", and {usd_text(refusal.room_pusd)} is left"
        as_chats = KINDS[kind].shorten is None
        smaller = "a lower `max_tokens` or a shorter prompt" if as_chats else "a smaller request"
        message += f": {smaller} may fit."
    return RequestError("budget", message, retry=False)


def queue_refusal(plan: RoutingPlan, wait_s: float, *, hopeless: bool) -> RequestError:
    """Return the error for a full admission queue, or one too slow for the deadline."""
    if hopeless:
        message = f"`{plan.model}` has no room for this request before its deadline."
        return RequestError("no_capacity", message, retry_after_s=max(RETRY_AFTER_S, wait_s))
    message = f"Too many requests wait for `{plan.model}`."
    return RequestError("overloaded", message, retry_after_s=max(RETRY_AFTER_S, wait_s))


def infeasible(plan: RoutingPlan) -> RequestError:
    """Return the error for a request that no candidate may serve, budgets aside.

    It gives the reasons and whether waiting helps. If a serving target has no capacity, the code is
    `no_capacity`; if none serves, it is `unavailable`, since the client's rate is not the cause.
    """
    decision = plan.decision
    if decision.reason is Reason.FEATURE:
        return _feature_refusal(plan)
    remedy = REASONS[decision.reason].remedy
    if remedy is not None:
        param, fix = remedy.member, remedy.advice
        if decision.reason in (Reason.CONTEXT, Reason.PRICE_CAP):
            param, fix = KINDS[plan.request.kind].shorten or (param, fix)
        if decision.reason in (Reason.PARTLY_PRICED, Reason.CONTENT):
            detail = "; ".join(_details(decision.verdicts, decision.reason))
        else:
            detail = _reasons_of(decision.verdicts, in_detail=decision.reason)
            detail = detail or REASONS[decision.reason].sentence
        message = f"No target of `{plan.model}` can serve this: {detail}. {fix}"
        return RequestError(remedy.error, message, param=param, retry=False)
    wait_s = _retry_delay_s(decision.verdicts)
    shown = f"{wait_s:.1f}".removesuffix(".0")
    when = f"; there is room in {shown} s" if wait_s > RETRY_AFTER_S else ""
    serving = any(verdict.reason in _FULL for verdict in decision.verdicts)
    return RequestError(
        "unavailable" if decision.reason in _AWAY and not serving else "no_capacity",
        f"No target of `{plan.model}` can take this request now: "
        f"{_reasons_of(decision.verdicts)}{when}.",
        retry_after_s=wait_s,
    )


def _reasons_of(verdicts: Sequence[Verdict], in_detail: Reason | None = None) -> str:
    """Return the targets with their reasons, at most the first `SHOWN_TARGETS`.

    `in_detail`: the reason whose figures a client can change.
    """
    shown = [
        f"{verdict.candidate.name}: {REASONS[verdict.reason].sentence} ({verdict.reason.value}"
        f"{f': {verdict.detail}' if verdict.detail and verdict.reason is in_detail else ''})"
        for verdict in verdicts[:SHOWN_TARGETS]
    ]
    more = len(verdicts) - SHOWN_TARGETS
    return "; ".join([*shown, f"and {more} more"] if more > 0 else shown)


def _details(verdicts: Sequence[Verdict], reason: Reason) -> Iterator[str]:
    yield from dict.fromkeys(verdict.detail for verdict in verdicts if verdict.reason is reason)


def _retry_delay_s(verdicts: Sequence[Verdict]) -> float:
    """Return the seconds until a target may have capacity, at least `RETRY_AFTER_S`.

    An API states them; an own engine may have capacity at any moment.
    """
    waits = [
        verdict.candidate.api.retry_after_s if verdict.candidate.api else RETRY_AFTER_S
        for verdict in verdicts
        if verdict.reason in _FULL or verdict.reason in _AWAY
    ]
    return max(RETRY_AFTER_S, min(waits, default=RETRY_AFTER_S))


def _feature_refusal(plan: RoutingPlan) -> RequestError:
    """Return the error that names the members whose features the closest target lacks."""
    missing = min(
        (
            plan.request.features - verdict.candidate.features
            for verdict in plan.decision.verdicts
            if verdict.reason is Reason.FEATURE
        ),
        key=len,
    )
    native = plan.asked.native
    if Feature.MESSAGES in missing and native is not None and native.refusal is not None:
        return native.refusal  # chat's error, naming the member without a form there
    names = sorted({_requesting_member(feature, plan) for feature in missing})
    fields, declared = ", ".join(f"`{name}`" for name in names), ", ".join(sorted(missing))
    verb, what, way = "offers", f"what {fields} asks for", f"Leave {fields} out"
    if missing <= _PARTS.keys() - plan.asked.asked_by.keys():
        part = next(feature for feature in _PARTS if feature in missing)
        verb, what, way = "takes", f"{_PARTS[part][0]} in {fields}", _PARTS[part][1]
    return RequestError(
        "unsupported",
        f"No target of `{plan.model}` {verb} {what} ({declared}). {way}, name a model that "
        f"does, or declare `features: [{declared}]` for a target in the gateway's configuration.",
        param=names[0],
        retry=False,
    )


def _requesting_member(feature: Feature, plan: RoutingPlan) -> str:
    if feature in plan.asked.asked_by:
        return plan.asked.asked_by[feature]
    if feature is Feature.HOSTED_TOOLS:  # by one of several members
        return hosted_tools.requesting_member(plan.asked.members) or _ASKED_BY[feature]
    return _ASKED_BY.get(feature) or KINDS[plan.request.kind].media_member


def upstream_failure(
    error: BackendError, target: str | None = None, before: Sequence[str] = ()
) -> RequestError:
    """Return the error for the client: which target failed, how, and what to do.

    `target` is its name as in `x-breakeven-backend`; `before` lists targets that failed earlier.
    """
    kind = "timeout" if _timed_out(error) else "upstream"
    wait_s = error.retry_after_s
    broke_off_full = isinstance(error, UpstreamBroken) and error.was_full
    if broke_off_full or isinstance(error, UpstreamOverloaded | DispatchSuperseded):
        kind, wait_s = "overloaded", wait_s or RETRY_AFTER_S
    kind = _OF_THE_REQUEST.get(error.kind, kind)
    failure = FAILURES.get(error.kind, _UNNAMED)
    if failure.cure:
        wait_s = None
    what = f"returned {error.status} ({failure.reason})" if error.status else failure.did
    if broke_off_full:
        what += " because it is overloaded"
    who = "The upstream" if target is None else f"Upstream `{target}`"
    earlier = " and ".join(f"`{name}`" for name in dict.fromkeys(before) if name != target)
    after = f", after {earlier} failed" if earlier else ""
    cure = failure.cure or (
        f"Retry after {ceil(max(RETRY_AFTER_S, wait_s))} s."
        if wait_s is not None
        else "Retry the request, or name another model."
    )
    message = f"{who} {what}{after}. {cure}"
    retry = False if failure.cure else None
    return RequestError(kind, message, retry_after_s=wait_s, backend=target, retry=retry)


def after_earlier(
    told: RequestError, earlier: RequestError | None, verdicts: Sequence[Verdict]
) -> RequestError:
    """Return `told`, with its advice against a retry only if no other target could answer."""
    waited_for = any(verdict.reason in _FULL or verdict.reason in _AWAY for verdict in verdicts)
    if waited_for or (earlier is not None and earlier.retry is None):
        told.retry = None
    return told


def status_of(error: BackendError) -> tuple[Status, int]:
    """Return the failure as the ledger records it: (status, HTTP status)."""
    if isinstance(error, StreamError):
        return "upstream_error", error.status or 502
    if not error.billable:
        return "rejected", error.status or 503
    if _timed_out(error):
        return "timeout", error.status or 504
    return "upstream_error", error.status or 502


def _timed_out(error: BackendError) -> bool:
    return isinstance(error, HeadTimeout | IdleTimeout | FirstTokenTimeout)
