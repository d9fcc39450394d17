"""Filters: reasons why a candidate cannot serve, one function each, `None` if it can.

`FILTERS` test what is declared and measured. `FORECAST_FILTERS` test what is predicted if the
request is admitted. Both run in order and the first reason counts. A missing or absurd metric
rejects; NaN does too, so comparisons are written to fail on NaN. Reasons that waiting cannot change
(`PERMANENT`) come first, then money, then temporary ones: a target that may never take the request
is not reported as down. To add a filter: write the function, add its reason to `router/reasons.py`,
add it to its tuple and to the fast-path condition (a test compares the two).
"""

from collections.abc import Callable
from math import isinf

from router.forecast import Forecast
from router.objective import miss_probability
from router.reasons import Reason, Rejection
from router.request_kinds import KIND_TRAITS
from router.types import Candidate, EngineState, Policy, Residency, RoutingRequest, TargetHealth

Filter = Callable[[RoutingRequest, Policy, Candidate], Rejection | None]
ForecastFilter = Callable[[Policy, Candidate, Forecast], Rejection | None]

_HEALTHY = TargetHealth.HEALTHY
_INTERNAL_ONLY = Residency.INTERNAL_ONLY
_HEALTH_REASONS = {
    TargetHealth.LOADING: Reason.LOADING,
    TargetHealth.DRAINING: Reason.DRAINING,
    TargetHealth.DOWN: Reason.UNHEALTHY,
    TargetHealth.UNKNOWN: Reason.UNKNOWN_STATE,
    TargetHealth.OFF: Reason.DISABLED,
}


def kind(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    if request.kind in candidate.kinds:
        return None
    return Reason.MODEL, f"does not serve {request.kind}"


def features(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    if request.features <= candidate.features:
        return None
    missing = sorted(request.features - candidate.features)
    return Reason.FEATURE, "lacks " + ", ".join(missing)


def health(request: RoutingRequest, policy: Policy, candidate: Candidate) -> Rejection | None:
    """Reject an unhealthy target, one in an impossible state, or with an SLO and no step model."""
    engine = candidate.engine
    if engine is None:
        api = candidate.api
        if api is None:
            return Reason.UNKNOWN_STATE, "no state"
        return None if api.health is _HEALTHY else (_HEALTH_REASONS[api.health], "")
    if engine.health is not _HEALTHY:
        return _HEALTH_REASONS[engine.health], _age_text(engine)
    if engine.step is None and _is_promised(policy, engine):
        return Reason.UNKNOWN_STATE, "no step model to predict the SLO with"
    if engine.kv_capacity_tokens <= 0 and KIND_TRAITS[request.kind].decoded:
        return Reason.UNKNOWN_STATE, "the size of its KV cache is not known"
    return None if engine.sane else (Reason.UNKNOWN_STATE, "metrics missing or absurd")


def _age_text(engine: EngineState) -> str:
    return "never seen" if isinf(engine.age_s) else f"last seen {_seconds(engine.age_s)} ago"


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def context(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    """Reject if the estimated prompt, with its error margin, plus `max_tokens` does not fit.

    The prompt's bound is a worst case for money and would reject many prompts that fit. A prompt
    that is too long after all is refused by the engine before any work, and the next candidate gets
    it.
    """
    output = 1 if request.max_tokens is None else request.max_tokens
    if request.prompt_tokens_bound + output <= candidate.context_tokens:
        return None
    if not KIND_TRAITS[request.kind].decoded:
        output = 0
    extent = request.extent
    longest = 1.0 if extent is None else extent.longest
    prompt = longest * min(
        request.prompt_tokens_bound, request.context_margin * request.prompt_tokens
    )
    if prompt + output <= candidate.context_tokens:
        return None
    parts = f"{prompt:.0f} prompt + {output} answer tokens"
    return Reason.CONTEXT, f"{parts}, context {candidate.context_tokens}"


def residency(request: RoutingRequest, policy: Policy, candidate: Candidate) -> Rejection | None:
    if candidate.internal:
        return None
    if request.kept_for:
        return Reason.CONTENT, f"found: {request.kept_for}"
    if request.residency is _INTERNAL_ONLY or policy.residency is _INTERNAL_ONLY:
        return Reason.RESIDENCY, "leaves the network"
    return None


def barred(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    """Reject a target that the policy itself excludes: by name, share or quality."""
    return request.barred.get(candidate.name) if request.barred else None


def salt(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    if candidate.accepts_salt or not request.salted:
        return None
    return Reason.SALT, "cannot isolate its prefix cache"


def priced(_request: RoutingRequest, policy: Policy, candidate: Candidate) -> Rejection | None:
    """Reject a target of unknown price if a limit on money applies; else it is ordered last."""
    if candidate.bound_pusd is not None and candidate.expected_pusd is not None:
        return None
    if candidate.budget_room_pusd is None and policy.max_cost_pusd is None:
        return None
    return Reason.UNPRICED, "a limit on money applies and the price is unknown"


def price_cap(_request: RoutingRequest, policy: Policy, candidate: Candidate) -> Rejection | None:
    cap, bound = policy.max_cost_pusd, candidate.bound_pusd
    if cap is None or bound is None or bound <= cap:
        return None
    return Reason.PRICE_CAP, f"may cost {bound} of {cap} pUSD"


def budget(_request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    room, bound = candidate.budget_room_pusd, candidate.bound_pusd
    if room is None or bound is None or bound <= room:
        return None
    return Reason.BUDGET, f"may cost {bound} pUSD, {room} left"


def circuit(_request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    if candidate.api is None or not candidate.api.circuit_open:
        return None
    return Reason.CIRCUIT_OPEN, ""


def rate_limit(request: RoutingRequest, _policy: Policy, candidate: Candidate) -> Rejection | None:
    api = candidate.api
    if api is None:
        return None
    if api.requests_left is not None and api.requests_left < 1:
        return Reason.RATE_LIMIT, f"no requests left for {_seconds(api.retry_after_s)}"
    if api.tokens_left is not None:
        needed = counted_tokens(request)
        if needed > api.tokens_left:
            left = f"{api.tokens_left} left for {_seconds(api.retry_after_s)}"
            return Reason.RATE_LIMIT, f"{needed} tokens, {left}"
    return None


def counted_tokens(request: RoutingRequest) -> int:
    """Return the tokens that providers count against a limit: prompt plus longest answer."""
    if not KIND_TRAITS[request.kind].decoded:
        return request.prompt_tokens
    output = request.output.mean if request.max_tokens is None else request.max_tokens
    return request.prompt_tokens + round(request.n * output)


def kv_headroom(policy: Policy, candidate: Candidate, forecast: Forecast) -> Rejection | None:
    """Reject if the KV cache left free after admission is below the policy's floor."""
    floor, engine = policy.kv_headroom_floor, candidate.engine
    if floor is None or engine is None or engine.kv_capacity_tokens <= 0:
        return None
    if not forecast.kv_promise:  # it holds nothing
        return None
    if forecast.kv_free >= floor * engine.kv_capacity_tokens:
        return None
    return Reason.KV_HEADROOM, (
        f"needs {forecast.kv_promise} tokens, would leave {forecast.kv_free:.0f}"
        f" of {engine.kv_capacity_tokens}, floor {floor:g}"
    )


def ttft(policy: Policy, candidate: Candidate, forecast: Forecast) -> Rejection | None:
    """Reject own engines beyond the safe TTFT, and APIs under a strict policy."""
    limit = forecast.ttft_limit_ms
    if limit is None or forecast.ttft_ms is None:
        return None
    api = candidate.api
    if api is not None:
        if not policy.slo.strict:
            return None
        missed = miss_probability(forecast.ttft_ms, api.ttft_sigma, limit)
        return _likely_miss(policy, forecast, Reason.TTFT, missed)
    if forecast.ttft_ms <= limit:
        return None
    return Reason.TTFT, f"{forecast.ttft_ms:.0f} ms predicted, {limit:.0f} ms safe"


def tpot(policy: Policy, candidate: Candidate, forecast: Forecast) -> Rejection | None:
    """Reject engines beyond the TPOT promise of the request or of the tightest resident."""
    limit = forecast.tpot_limit_ms
    if limit is None or forecast.tpot_ms is None:
        return None
    if candidate.api is not None:
        return _likely_miss(policy, forecast, Reason.TPOT, 1.0) if policy.slo.strict else None
    if forecast.tpot_ms <= limit:
        return None
    return Reason.TPOT, f"{forecast.tpot_ms:.1f} ms predicted, {limit:.1f} ms safe"


FILTERS: tuple[Filter, ...] = (
    kind, features, context, residency, barred, salt, priced, price_cap, budget, health, circuit,
    rate_limit,
)  # fmt: skip
FORECAST_FILTERS: tuple[ForecastFilter, ...] = (kv_headroom, ttft, tpot)


def first_rejection(
    request: RoutingRequest, policy: Policy, candidate: Candidate
) -> Rejection | None:
    """Return the first rejection of `FILTERS`, or `None`.

    Most candidates pass every filter, and a call costs more than the test in most filters. The
    condition detects many candidates that no filter rejects; it never skips one that a filter
    rejects.
    """
    cap, room, bound = policy.max_cost_pusd, candidate.budget_room_pusd, candidate.bound_pusd
    if (
        request.kind in candidate.kinds
        and request.features <= candidate.features
        and request.prompt_tokens_bound + (request.max_tokens or 1) <= candidate.context_tokens
        and bound is not None
        and candidate.expected_pusd is not None
        and (cap is None or bound <= cap)
        and (room is None or bound <= room)
        and (candidate.accepts_salt or not request.salted)
        and not (request.barred and candidate.name in request.barred)
    ):
        engine, api = candidate.engine, candidate.api
        if engine is not None:
            if candidate.internal and api is None:  # only its health is left to check
                return None if engine.ready else health(request, policy, candidate)
        elif (
            api is not None
            and api.ready
            and request.residency is not _INTERNAL_ONLY
            and not request.kept_for
            and policy.residency is not _INTERNAL_ONLY
        ):
            return None
    for check in FILTERS:
        rejection = check(request, policy, candidate)
        if rejection is not None:
            return rejection
    return None


def forecast_rejection(
    policy: Policy, candidate: Candidate, forecast: Forecast
) -> Rejection | None:
    """Return the first rejection of `FORECAST_FILTERS`; fast path as in `first_rejection`."""
    engine, floor = candidate.engine, policy.kv_headroom_floor
    if engine is None:
        if not policy.slo.strict:
            return None
    else:
        ttft_ms, tpot_ms, _, _, _, _, _, free, _, ttft_limit, tpot_limit = forecast
        if (
            (floor is None or free >= floor * engine.kv_capacity_tokens)
            and (ttft_limit is None or ttft_ms is None or ttft_ms <= ttft_limit)
            and (tpot_limit is None or tpot_ms is None or tpot_ms <= tpot_limit)
        ):
            return None
    for check in FORECAST_FILTERS:
        rejection = check(policy, candidate, forecast)
        if rejection is not None:
            return rejection
    return None


def _likely_miss(
    policy: Policy, forecast: Forecast, reason: Reason, share: float
) -> Rejection | None:
    """Reject if TTFT and TPOT together miss more often than the attainment allows.

    `share` is the miss probability that `reason` explains; the larger part names the rejection.
    """
    missed = forecast.miss_probability
    if missed is None or missed <= 1.0 - policy.slo.attainment:
        return None
    return (reason, f"misses with probability {missed:.2f}") if 2.0 * share >= missed else None


def _is_promised(policy: Policy, engine: EngineState) -> bool:
    """Return whether a latency promise is affected: the request's, or a resident's."""
    slo = policy.slo
    return not (
        slo.ttft_ms is None
        and slo.tpot_ms is None
        and engine.tightest_ttft_ms is None
        and engine.tightest_tpot_ms is None
    )
