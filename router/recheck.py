"""Recheck of a decision with the load that peers had at that moment. Pure.

Workers that share an engine learn of each other's load late: two may give away its last capacity.
The decision is repeated with the peers' load of that time, so that one of the two sees that the
other came first. The recheck tests whether an own engine would still be chosen, not which one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from router.decide import decide
from router.types import Candidate, EngineState, Policy, RoutingRequest


class PeerLoad(NamedTuple):
    """The load of other workers on one engine, in sequences and tokens."""

    sequences: float = 0.0
    context_tokens: float = 0.0
    queued_prefill_tokens: float = 0.0
    promised_tokens: float = 0.0

    def beyond(self, known: "PeerLoad") -> "PeerLoad":
        """Return the part of this load that is not in `known`."""
        return PeerLoad(*(now - then for now, then in zip(self, known, strict=True)))


def is_still_first(
    request: RoutingRequest,
    policy: Policy,
    candidates: Sequence[Candidate],
    chosen: str,
    missed: PeerLoad,
) -> bool:
    """Return whether `chosen`, an own engine, would have gone before every API.

    `candidates` are those of the decision. `missed` is the peers' load that the decision did not
    know.
    """
    known = [
        replace(candidate, engine=_with(candidate.engine, missed))
        if candidate.name == chosen and candidate.engine is not None
        else candidate
        for candidate in candidates
    ]
    for verdict in decide(request, policy, known).order:
        if verdict.candidate.name == chosen:
            return True
        if verdict.candidate.engine is None:
            return False
    return False


def _with(engine: EngineState, missed: PeerLoad) -> EngineState:
    """Return the engine with the missed load added; held tokens are no longer promised."""
    held = missed.context_tokens + missed.queued_prefill_tokens
    return replace(
        engine,
        running=max(0, engine.running + round(missed.sequences)),
        context_tokens=max(0.0, engine.context_tokens + missed.context_tokens),
        queued_prefill_tokens=max(0.0, engine.queued_prefill_tokens + missed.queued_prefill_tokens),
        kv_used_tokens=max(0.0, engine.kv_used_tokens + held),
        kv_promised_tokens=max(0.0, engine.kv_promised_tokens + missed.promised_tokens - held),
    )
