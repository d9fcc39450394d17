"""The configured order of targets, used when no forecast is possible.

The order is used while telemetry is silent, because published values are stale, and when a decision
fails. Rules and money apply as usual (`router.filters`). Targets follow in the order of the
configuration; within a pool the engine with the fewest sequences goes first. Stale values must not
look like free capacity, so an own engine is filled to `SHARE` of its last known capacity by the
gateway's own events, and an engine that was never seen is not used.
"""

from collections.abc import Sequence

from router.decide import main_reason
from router.filters import FILTERS, health
from router.reasons import Reason, Rejection
from router.request_kinds import KIND_TRAITS
from router.types import (
    Candidate,
    Decision,
    EngineState,
    Policy,
    RoutingRequest,
    TargetHealth,
    Verdict,
)

SHARE = 0.5  # of sequences and of KV cache: unseen load may be as large
_SURE = tuple(check for check in FILTERS if check is not health)
_USABLE = (TargetHealth.HEALTHY, TargetHealth.UNKNOWN)


def static_order(
    request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate], why: str
) -> Decision:
    """Return a decision in the order of `candidates`; `why` is the detail of its verdicts."""
    places: dict[str, int] = {}
    found: list[tuple[bool, bool, bool, int, int, Verdict]] = []
    rejected: list[Verdict] = []
    for candidate in candidates:
        place = places.setdefault(candidate.pool or candidate.name, len(places))
        kv = _max_tokens_of(request, candidate)
        rejection = _rejection(request, policy, candidate, kv)
        if rejection is not None:
            reason, detail = rejection
            rejected.append(Verdict(candidate, False, reason, detail))
            continue
        engine, preferred = candidate.engine, request.preferred
        found.append(
            (
                candidate.is_spare,
                candidate.name != request.sticky_target,
                preferred is None or candidate.name not in preferred.names,
                place,
                0 if engine is None else engine.sequences,
                Verdict(candidate, True, Reason.STATIC, why, kv_promise_tokens=kv),
            )
        )
    order = tuple([row[-1] for row in sorted(found, key=lambda row: row[:-1])])
    reason = Reason.STATIC if order else main_reason(rejected)
    return Decision(policy.name, order, (*order, *rejected), reason, policy.otherwise)


def _rejection(
    request: RoutingRequest, policy: Policy, candidate: Candidate, kv: int
) -> Rejection | None:
    engine = candidate.engine
    for check in _SURE:
        rejection = check(request, policy, candidate)
        if rejection is not None:
            return rejection
    if engine is None or engine.health not in _USABLE:
        return health(request, policy, candidate)
    if not engine.sane or not engine.kv_capacity_tokens > 0:
        return Reason.UNKNOWN_STATE, "never seen"
    return None if _has_capacity(engine, request.n, kv) else (Reason.UNKNOWN_STATE, _full())


def _has_capacity(engine: EngineState, choices: int, kv: int) -> bool:
    taken, capacity, most = (
        engine.kv_taken_tokens + kv,
        engine.kv_capacity_tokens,
        engine.max_num_seqs,
    )
    if not engine.sequences:  # an empty engine takes any request that fits
        return taken <= capacity
    return taken <= SHARE * capacity and (most <= 0 or engine.sequences + choices <= SHARE * most)


def _full() -> str:
    return f"{SHARE:.0%} of what it was last known to hold is taken"


def _max_tokens_of(request: RoutingRequest, candidate: Candidate) -> int:
    """Return the maximum KV tokens that the request may hold there, without learned estimates."""
    engine = candidate.engine
    if engine is None:
        return 0
    longest = request.prompt_tokens
    if KIND_TRAITS[request.kind].decoded:
        most = request.max_tokens
        longest = max(longest, candidate.context_tokens) if most is None else longest + most
    block = max(1, engine.kv_block_tokens)
    return (longest + block - 1) // block * block * request.n
