"""Check whether a pool can spare one of its engines for a while. Pure.

No request may fail and no promise may be broken, so the other engines must have capacity for all
requests in flight in the pool, with headroom, at the promised TPOT.
"""

from collections.abc import Mapping

from router.types import EngineState, TargetHealth

ROOM = 0.7  # share of the others' capacity: load may grow while one is away


def reason_against(engines: Mapping[str, EngineState], name: str) -> str | None:
    """Return why `name` cannot be taken out of its pool; `None` if it can."""
    gone = engines[name]
    rest = [
        state
        for other, state in engines.items()
        if other != name and state.health is TargetHealth.HEALTHY
    ]
    away = sorted(
        other
        for other, state in engines.items()
        if other != name and state.health is not TargetHealth.HEALTHY
    )
    if away:
        return f"{', '.join(away)} does not serve"
    if not rest:
        busy = gone.sequences
        return f"{busy} requests are under way and nobody else serves" if busy else None
    sequences = gone.sequences + sum(state.sequences for state in rest)
    most = sum(state.max_num_seqs for state in rest)
    if sequences > ROOM * most:
        return f"{sequences} requests are under way, the others run {most} at most"
    taken = gone.kv_taken_tokens + sum(state.kv_taken_tokens for state in rest)
    room = sum(state.kv_capacity_tokens for state in rest)
    if taken > ROOM * room:
        return f"{taken:.0f} KV tokens are taken, the others have {room}"
    return _too_slow(gone, rest, sequences)


def _too_slow(gone: EngineState, rest: list[EngineState], sequences: int) -> str | None:
    """Return why a promised TPOT would break with the load redistributed, or `None`."""
    promised = [
        state.tightest_tpot_ms for state in (gone, *rest) if state.tightest_tpot_ms is not None
    ]
    if not promised:
        return None
    context = (gone.context_tokens + sum(state.context_tokens for state in rest)) / len(rest)
    for state in rest:
        if state.step is None:
            return "the others' pace is not known"
        step = state.step.a_s + state.step.b_s * sequences / len(rest) + state.step.c_s * context
        tpot_ms = 1e3 * step * state.step_feedback
        if tpot_ms > min(promised) * state.safety_tpot:
            return f"a token would take {tpot_ms:.0f} ms, {min(promised):.0f} ms are promised"
    return None
