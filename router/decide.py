"""Routing decision: filters, then the objective, then an order. Pure, order-independent.

1. Filters remove candidates that cannot serve; each removal keeps its reason and numbers.
2. An own engine is chosen if the request's value per engine-second reaches the pool's bid price,
   bent by its least load (`_rank`). The value is the cost of the best feasible API, likely SLO
   miss included; without an API, the cheapest comparator plus the penalty of a rejection.
3. Order: own engines worth their price, by load minus saved prefill (with roles: `router.ways`);
   APIs by expected cost plus penalty; own engines below their price; those kept for prompts; APIs
   of unknown price. A feasible sticky target goes first, then one in `preferred`; ties: by name.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import inf
from operator import itemgetter

from router.filters import FILTERS, first_rejection, forecast_rejection
from router.forecast import TOLD, UNKNOWN, Forecast, emptied, forecast_engine, work_of
from router.objective import api_objective, density, forecast_api, prefill_saved
from router.price_curve import bend_price
from router.reasons import PERMANENT, REASONS, Reason, Rejection
from router.types import (
    Candidate,
    Decision,
    EngineState,
    InfeasibleAction,
    Policy,
    RoutingRequest,
    Slo,
    Verdict,
)
from router.ways import choose_way, order_ways

_BY_TIME = (Reason.TTFT, Reason.TPOT)
DISREGARDED = frozenset(reason for reason, traits in REASONS.items() if traits.best_effort)

Row = tuple[float, str, Candidate, Forecast]  # place or objective, name
# density, objective, and why it loses to the chosen one (`None`: depends on the chosen)
Ranked = tuple[Candidate, Forecast, float | None, float | None, Reason | None]

_new = tuple.__new__  # a named tuple built without its keyword layer: half the time
_first_two = itemgetter(0, 1)
_CHEAPEST, _STICKY, _ONLY = Reason.CHEAPEST, Reason.STICKY, Reason.ONLY
_COSTLIER, _BID_PRICE, _BUSIER = Reason.COSTLIER, Reason.BID_PRICE, Reason.BUSIER
_UNPRICED, _SPARE = Reason.UNPRICED, Reason.SPARE


def decide(  # noqa: C901, PLR0912  (made for every request: a call costs more than a branch)
    request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate]
) -> Decision:
    """Return the order of targets for this request under this policy, with a reason for each."""
    work = work_of(request, policy)
    penalty = policy.penalty_pusd
    own: list[Row] = []
    apis: list[Row] = []
    rejected: list[Verdict] = []
    apart = False
    overfull: list[tuple[Candidate, Forecast, Rejection]] = []
    for candidate in candidates:
        rejection = first_rejection(request, policy, candidate)
        if rejection is not None:
            rejected.append(_rejection(candidate, UNKNOWN, rejection))
            continue
        engine = candidate.engine
        if engine is not None:
            if candidate.is_apart:
                apart, forecast = True, choose_way(request, policy, work, candidate, candidates)
            else:
                forecast = forecast_engine(work, candidate, engine)
        else:
            forecast = forecast_api(work, candidate)
        rejection = forecast_rejection(policy, candidate, forecast)
        if rejection is not None:
            overfull.append((candidate, forecast, rejection))
        elif engine is not None:
            place = _order_key(forecast, engine, policy.slo)
            own.append((place, candidate.name, candidate, forecast))
        else:
            dollars = api_objective(candidate, penalty, forecast)
            apis.append((dollars, candidate.name, candidate, forecast))
    if len(apis) > 1:
        apis.sort(key=_first_two)
    rejected += _overfull(overfull, _elsewhere(apis, request), penalty) if overfull else ()
    if len(rejected) > 1:
        rejected.sort(key=lambda verdict: verdict.candidate.name)
    if not own and not apis:
        return _infeasible(request, policy, rejected)
    if len(own) > 1:
        own.sort(key=_first_two)
        if apart:
            own = order_ways(work, own)
    order = _verdicts(
        _rank(own, apis, _elsewhere(apis, request), penalty, policy.slo.ttft_ms), request
    )
    verdicts = (*order, *rejected) if rejected else order
    return _new(Decision, (policy.name, order, verdicts, order[0].reason, policy.otherwise))


def _order_key(forecast: Forecast, engine: EngineState, slo: Slo) -> float:
    """Return the sort key of an own engine: its predicted load minus the prefill it saves."""
    load = forecast.load or 0.0
    return load - prefill_saved(engine, slo) if engine.prefix_hit_tokens > 0 else load


def _rank(
    own: list[Row],
    apis: list[Row],
    elsewhere: tuple[float | None, float],
    penalty: int,
    ttft_ms: float | None,
) -> list[Ranked]:
    """Return every feasible candidate, best first. Both lists come sorted."""
    value, missed = elsewhere
    accepted: list[Ranked] = []
    refused: list[Ranked] = []
    spare: list[Ranked] = []
    prices: dict[str, float] = {}
    for place, name, candidate, forecast in own:
        pool = candidate.pool or name
        price = prices.get(pool)
        if price is None:
            price = prices[pool] = bend_price(
                candidate.bid_price_pusd_per_s, _min_load(own, place, candidate, forecast),
                top_density=candidate.top_density_pusd_per_s,
                density_spread=inf if _is_looser(ttft_ms, candidate) else candidate.density_spread,
            )  # fmt: skip
        seconds = forecast.engine_seconds
        worth = candidate.avoided_pusd + penalty * missed if value is None else value
        dense = None  # `density`, where a call would cost more than its terms
        if seconds is not None:
            dense = worth / seconds if seconds > 0.0 else inf
        if candidate.is_spare:
            dollars = None if seconds is None else price * seconds
            spare.append((candidate, forecast, dense, dollars, _SPARE))
        elif price == 0.0:
            accepted.append((candidate, forecast, dense, 0.0, None))
        elif dense is not None and dense >= price:
            accepted.append((candidate, forecast, dense, price * (seconds or 0.0), None))
        else:
            dollars = None if seconds is None else price * seconds
            refused.append((candidate, forecast, dense, dollars, _BID_PRICE))
    if len(prices) > 1:
        _by_pool(accepted)
    unpriced: list[Ranked] = []
    for dollars, _, candidate, forecast in apis:
        if dollars < inf:
            accepted.append((candidate, forecast, None, dollars, _COSTLIER))
        else:
            unpriced.append((candidate, forecast, None, None, _UNPRICED))
    return accepted + refused + spare + unpriced


def _is_looser(ttft_ms: float | None, candidate: Candidate) -> bool:
    """Return whether a class with a tighter TTFT uses this pool and needs its last capacity."""
    engine = candidate.engine
    tightest = None if engine is None else engine.tightest_ttft_ms
    return tightest is not None and (ttft_ms is None or tightest < ttft_ms)


def _min_load(own: list[Row], place: float, first: Candidate, forecast: Forecast) -> float:
    """Return the least load of the engine's pool; its own load where no prefill is saved."""
    load = forecast.load or 0.0
    if place == load:
        return load
    return min([row[3].load or 0.0 for row in own if row[2].pool == first.pool])


def _elsewhere(apis: list[Row], request: RoutingRequest) -> tuple[float | None, float]:
    """Return the cost of the best API (`None`: unknown) and its probability of an SLO miss.

    If a later stage has candidates, the request is not rejected, and its miss probability there is
    unknown.
    """
    if not apis:
        return None, 0.0 if request.spills else 1.0
    dollars, missed = apis[0][0], apis[0][3].miss_probability or 0.0
    return (dollars if dollars < inf else None), missed


def _overfull(
    found: list[tuple[Candidate, Forecast, Rejection]],
    elsewhere: tuple[float | None, float],
    penalty: int,
) -> list[Verdict]:
    """Return the verdicts on rejected forecasts; own engines carry the value of their time."""
    value, missed = elsewhere
    verdicts = []
    for candidate, forecast, rejection in found:
        dense = None
        if candidate.engine is not None:
            worth = candidate.avoided_pusd + penalty * missed if value is None else value
            dense = density(worth, forecast.engine_seconds)
        verdicts.append(_rejection(candidate, forecast, rejection, dense))
    return verdicts


def _by_pool(accepted: list[Ranked]) -> None:
    """Sort pools by the time price of the least loaded engine, then by its load."""
    places: dict[str, tuple[float, int]] = {}
    for candidate, _, _, dollars, _ in accepted:
        places.setdefault(candidate.pool or candidate.name, (dollars or 0.0, len(places)))
    accepted.sort(key=lambda row: places[row[0].pool or row[0].name])


def _verdicts(ranked: list[Ranked], request: RoutingRequest) -> tuple[Verdict, ...]:
    """Return the chosen candidate first, then the others by rank with the reason each lost."""
    place, reason = 0, _CHEAPEST if len(ranked) > 1 else _ONLY
    if request.sticky_target is not None or request.preferred is not None:
        place, reason = _preferred_place(ranked, request, reason)
    held = reason
    chosen, forecast, dense, least, _ = ranked[place]
    order = [_verdict(chosen, forecast, reason, dense, least)]
    for index, (candidate, forecast, dense, dollars, lost) in enumerate(ranked):
        if index == place:
            continue
        if index < place:
            reason = held
        elif lost is not None:
            reason = lost
        else:
            dearer = candidate.pool != chosen.pool and (dollars or 0.0) > (least or 0.0)
            reason = _COSTLIER if dearer else _BUSIER
        verdict = (candidate, True, reason, "", dense, dollars) + forecast[:TOLD]  # noqa: RUF005  (joined at once, not by way of a list)
        order.append(_new(Verdict, verdict))
    return tuple(order)


def _preferred_place(
    ranked: list[Ranked], request: RoutingRequest, reason: Reason
) -> tuple[int, Reason]:
    """Return the index of the candidate that goes first and why; 0 without a preferred one."""
    for index, row in enumerate(ranked):
        if row[0].name == request.sticky_target:
            return index, _STICKY
    preferred = request.preferred
    if preferred is not None:
        for index, row in enumerate(ranked):
            if row[0].name in preferred.names:
                return index, preferred.reason
    return 0, reason


def _verdict(
    candidate: Candidate,
    forecast: Forecast,
    reason: Reason,
    dense: float | None,
    dollars: float | None,
) -> Verdict:
    verdict = (candidate, True, reason, "", dense, dollars) + forecast[:TOLD]  # noqa: RUF005  (as above)
    return _new(Verdict, verdict)


def _rejection(
    candidate: Candidate, forecast: Forecast, rejection: Rejection, dense: float | None = None
) -> Verdict:
    reason, detail = rejection
    verdict = (candidate, False, reason, detail, dense, None) + forecast[:TOLD]  # noqa: RUF005  (as above)
    return _new(Verdict, verdict)


def _infeasible(request: RoutingRequest, policy: Policy, rejected: list[Verdict]) -> Decision:
    order: list[Verdict] = []
    if policy.otherwise is InfeasibleAction.BEST_EFFORT:
        order = [verdict for verdict in rejected if _tolerable(request, policy, verdict)]
        order.sort(key=partial(_badness, policy.slo))
    if order:
        least = order[0]
        detail = f"{least.reason}: {least.detail}" if least.detail else least.reason.value
        order[0] = least._replace(reason=Reason.BEST_EFFORT, detail=detail)
        rest = [verdict for verdict in rejected if verdict not in order and verdict is not least]
        reason = Reason.BEST_EFFORT
    else:
        rest = rejected
        reason = main_reason(rejected)
    otherwise = policy.otherwise
    if otherwise is InfeasibleAction.QUEUE and not _may_be_served(request, policy, rejected):
        otherwise = InfeasibleAction.REJECT
    return Decision(policy.name, tuple(order), (*order, *rest), reason, otherwise)


def _may_be_served(request: RoutingRequest, policy: Policy, rejected: list[Verdict]) -> bool:
    """Return whether waiting can help: no if even an empty engine would break a promise."""
    work = None
    for verdict in rejected:
        if verdict.reason in PERMANENT:
            continue
        candidate, engine = verdict.candidate, verdict.candidate.engine
        if engine is None or verdict.load is None:  # no forecast rejects it
            return True
        work = work or work_of(request, policy)
        alone = replace(candidate, engine=emptied(engine))
        assert alone.engine is not None, "it was just given one"
        if forecast_rejection(policy, alone, forecast_engine(work, alone, alone.engine)) is None:
            return True
    return work is None  # all reasons are permanent; the caller reads them


def main_reason(rejected: list[Verdict]) -> Reason:
    """Return the most common reason that may pass soon, else a budget, else the most common."""
    counts = Counter(verdict.reason for verdict in rejected)
    passing = counts.keys() - PERMANENT - {Reason.BUDGET}
    if not passing and Reason.BUDGET in counts:
        return Reason.BUDGET
    hopeful = [word for word in Reason if word in (passing or counts)]
    return max(hopeful, key=lambda word: counts[word], default=Reason.MODEL)


def _tolerable(request: RoutingRequest, policy: Policy, verdict: Verdict) -> bool:
    """Return whether every rejection of this candidate is one that best effort disregards."""
    if verdict.reason not in DISREGARDED:
        return False
    answers = (check(request, policy, verdict.candidate) for check in FILTERS)
    return all(answer is None or answer[0] in DISREGARDED for answer in answers)


def _badness(slo: Slo, verdict: Verdict) -> tuple[bool, bool, bool, float, str]:
    """Return the sort key of a best effort: own engines, then APIs that answer, by cost.

    If a forecast keeps every promise without margins, the engine with the most left goes first,
    otherwise the one with the earliest first token. Engines kept for prompts come last.
    """
    candidate = verdict.candidate
    if candidate.engine is not None:
        used, ttft_ms = _used(slo, verdict, candidate.engine), verdict.ttft_ms
        if used <= 1.0:
            return False, candidate.is_spare, False, used, candidate.name
        worst = inf if ttft_ms is None else ttft_ms
        return False, candidate.is_spare, True, worst, candidate.name
    refuses = verdict.reason in (Reason.CIRCUIT_OPEN, Reason.RATE_LIMIT)
    dollars = inf if candidate.expected_pusd is None else float(candidate.expected_pusd)
    return True, refuses, False, dollars, candidate.name


def _used(slo: Slo, verdict: Verdict, engine: EngineState) -> float:
    """Return the largest share of a promise that a forecast uses, without margins.

    Infinite if unknown. Only rejections for TTFT or TPOT have a margin: KV headroom has none.
    """
    if verdict.ttft_ms is None or verdict.kv_ratio is None or verdict.reason not in _BY_TIME:
        return inf
    seats = (engine.sequences + 1.0) / engine.max_num_seqs if engine.max_num_seqs > 0 else 0.0
    shares = [verdict.kv_ratio, seats]
    for forecast, promises in (
        (verdict.ttft_ms, (slo.ttft_ms, engine.tightest_ttft_ms)),
        (verdict.tpot_ms, (slo.tpot_ms, engine.tightest_tpot_ms)),
    ):
        shares += [forecast / limit for limit in promises if limit and forecast is not None]
    return max(shares)
