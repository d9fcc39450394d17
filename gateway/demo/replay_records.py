"""Journal records of replayed requests: those of the gateway, marked as simulated."""

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from gateway.demo.demand import DemoArrival
from gateway.demo.replay_fleet import DemoApi, DemoFleet, DemoFlight, DemoReplica
from ledger.accounts import provisional_charge_pusd
from ledger.journals.records import (
    AttemptOpened,
    AttemptSettled,
    Basis,
    ComparedCost,
    RequestRefused,
    Status,
    TokenCounts,
)
from ledger.prices.book import Price, cost_pusd
from router.explain import pack_bounded
from router.forecast import engine_seconds
from router.types import Decision, Policy, RoutingRequest, Verdict

DECISION_LIMIT_BYTES = 800
TAGS = (("replayed", "yes"),)
_HTTP: Mapping[Status, int] = {"finished": 200, "client_gone": 499, "upstream_error": 502}


@dataclass(frozen=True, slots=True)
class DemoCaller:
    """Key of a team's requests: ids of rows in the ledger."""

    org_id: str
    team_id: str
    user_id: str | None
    key_id: str


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """Request in progress, with the values of its records."""

    number: int
    arrival: DemoArrival
    caller: DemoCaller
    request: RoutingRequest
    policy: Policy
    decision: Decision
    comparators: tuple[Price, ...]

    @property
    def id(self) -> str:
        return f"replay-{self.number:06d}"

    @property
    def best_own(self) -> Verdict | None:
        """Return the own engine that came furthest in the decision, as in the gateway."""
        own = [verdict for verdict in self.decision.verdicts if verdict.candidate.internal]
        return min(own, key=lambda v: (not v.feasible, v.load is None, v.load or 0.0), default=None)


@dataclass(frozen=True, slots=True)
class DemoResult:
    """End of an attempt; times in seconds, `ttft_s` None before the first token."""

    status: Status
    tokens: TokenCounts
    basis: Basis
    ttft_s: float | None
    duration_s: float
    cost_pusd: int | None
    engine_s: float = 0.0
    finish_reason: str | None = None


def own_result(replica: DemoReplica, flight: DemoFlight, status: Status) -> DemoResult:
    """Return a request's use of an engine, charged as in the gateway."""
    arrival, step = flight.arrival, replica.step
    tokens = TokenCounts()
    if flight.first_s is not None:
        fresh = arrival.prompt_tokens - flight.cached
        tokens = TokenCounts(input=fresh, cached=flight.cached, output=flight.generated)
    seconds = engine_seconds(
        step,
        kv_capacity_tokens=replica.shape.kv_capacity_tokens,
        prompt_tokens=tokens.input,
        output_mean=float(tokens.output),
        output_mean_square=float(tokens.output) ** 2,
    )
    rate = replica.rate_pusd_per_hour
    cost = None
    if rate is not None:
        cost = min(
            provisional_charge_pusd(round(seconds * 1e6), rate, gpus=1),
            flight.chosen.candidate.bound_pusd or 0,
        )
    first_s = flight.first_s
    return DemoResult(
        status,
        tokens,
        "reported" if status == "finished" else "continuous",
        None if first_s is None else first_s - arrival.at_s,
        flight.end_s - arrival.at_s,
        cost,
        seconds,
        _finish_reason(arrival) if status == "finished" else None,
    )


def api_result(api: DemoApi, arrival: DemoArrival, ttft_s: float, tpot_s: float) -> DemoResult:
    """Return a request's use of an API at its price; clients may disconnect there, too."""
    output = arrival.output_tokens
    if arrival.patience is not None:
        output = max(1, round(arrival.patience * output))
    tokens = TokenCounts(input=arrival.prompt_tokens, output=output)
    cost = None if api.price is None else cost_pusd(tokens, api.price)
    duration_s = ttft_s + (output - 1) * tpot_s
    if arrival.patience is not None:
        return DemoResult("client_gone", tokens, "estimated", ttft_s, duration_s, cost)
    reason = _finish_reason(arrival)
    return DemoResult(
        "finished", tokens, "reported", ttft_s, duration_s, cost, finish_reason=reason
    )


def opened_record(
    asked: DemoRequest, chosen: Verdict, fleet: DemoFleet, policy_version: str
) -> AttemptOpened:
    candidate, best = chosen.candidate, asked.best_own
    own = candidate.engine is not None
    api = None if own else fleet.apis[candidate.name]
    headroom = None if best is None or best.kv_ratio is None else round((1 - best.kv_ratio) * 1e6)
    return AttemptOpened(
        attempt_id=f"{asked.id}.1",
        request_id=asked.id,
        attempt_no=1,
        opened_us=round(asked.arrival.at_s * 1e6),
        key_id=asked.caller.key_id,
        user_id=asked.caller.user_id,
        team_id=asked.caller.team_id,
        org_id=asked.caller.org_id,
        kind=asked.request.kind.value,
        stream=True,
        model=asked.request.model,
        target=candidate.name,
        backend="own" if own else "api",
        pool=candidate.pool,
        engine=candidate.name.rpartition("/")[2] if own else None,
        provider=None if api is None else api.provider,
        upstream_model=fleet.served_name(candidate) if api is None else api.upstream_model,
        simulated=True,
        policy=asked.policy.name,
        policy_version=policy_version,
        reason=chosen.reason.value,
        spill_reason=None if own or best is None else best.reason.value,
        price_version=None if api is None or api.price is None else api.price.version,
        bound_pusd=candidate.bound_pusd or 0,
        prompt_tokens_estimate=asked.request.prompt_tokens,
        ttft_predicted_us=None if chosen.ttft_ms is None else round(chosen.ttft_ms * 1e3),
        kv_headroom_ppm=headroom,
        bid_price_pusd_per_s=round(candidate.bid_price_pusd_per_s),
        tags=TAGS,
        decision=_blob(asked),
    )


def settled_record(asked: DemoRequest, result: DemoResult) -> AttemptSettled:
    ttft_s = result.ttft_s
    return AttemptSettled(
        attempt_id=f"{asked.id}.1",
        settled_us=round((asked.arrival.at_s + result.duration_s) * 1e6),
        status=result.status,
        http_status=_HTTP[result.status],
        tokens=result.tokens,
        basis=result.basis,
        cost_pusd=result.cost_pusd,
        ttft_us=None if ttft_s is None else round(ttft_s * 1e6),
        duration_us=round(result.duration_s * 1e6),
        engine_us=round(result.engine_s * 1e6),
        finish_reason=result.finish_reason,
        error="engine_lost" if result.status == "upstream_error" else None,
        slo_met=_slo_met(asked.policy, result),
        compared=tuple(
            ComparedCost(price.name, price.version, cost_pusd(result.tokens, price))
            for price in asked.comparators
        ),
    )


def refused_record(asked: DemoRequest) -> RequestRefused:
    """Return the record of a request without a feasible target, rejected by its policy."""
    return RequestRefused(
        request_id=asked.id,
        refused_us=round(asked.arrival.at_s * 1e6),
        key_id=asked.caller.key_id,
        team_id=asked.caller.team_id,
        org_id=asked.caller.org_id,
        model=asked.request.model,
        policy=asked.policy.name,
        reason=asked.decision.reason.value,
        http_status=429,
        decision=_blob(asked),
    )


def _finish_reason(arrival: DemoArrival) -> str:
    return "length" if arrival.output_tokens >= arrival.max_tokens else "stop"


def _slo_met(policy: Policy, result: DemoResult) -> bool | None:
    """Return whether the SLO was met, as in metering; None if the client disconnected."""
    slo = policy.slo
    if result.status == "client_gone":
        return None
    if result.status != "finished" or result.ttft_s is None:
        return False
    if slo.ttft_ms is not None and result.ttft_s * 1e3 > slo.ttft_ms:
        return False
    if slo.tpot_ms is None or result.tokens.output < 2:
        return True
    tpot_s = (result.duration_s - result.ttft_s) / (result.tokens.output - 1)
    return tpot_s * 1e3 <= slo.tpot_ms


def _blob(asked: DemoRequest) -> bytes:
    """Return the decision as the gateway stores it."""
    decided = (asked.request, asked.policy, asked.decision)
    return pack_bounded(DECISION_LIMIT_BYTES, msgspec.msgpack.encode, decided)
