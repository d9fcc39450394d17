"""Idle capacity of own engines for batch lines, which must not delay live requests.

`spare_decision` narrows a decision. Own engines stay only while they are idle enough that live
requests keep their promises with the line in the batch. APIs stay once the line may spill, or if no
own engine could ever take it. `reason_to_preempt` says when running lines must end. Half of every
limit is left to live traffic, which may arrive while a line runs.
"""

from collections.abc import Mapping
from typing import NamedTuple

from router.reasons import PERMANENT, Reason
from router.types import Decision, EngineState, InfeasibleAction, Verdict

SHARE = 0.5  # share of each limit that batch lines may use
STRAINED = 0.85  # share of a limit at which running lines are preempted


class TightestSlo(NamedTuple):
    """The tightest TTFT and TPOT that live requests of a pool are promised, in ms."""

    ttft_ms: float = 1000.0  # default without a policy, because people wait for answers
    tpot_ms: float = 60.0


def spare_decision(
    decision: Decision, promises: Mapping[str, TightestSlo], *, spill: bool
) -> Decision:
    """Return the decision with idle engines first, without the targets that must wait.

    `promises` is by pool.
    """
    own = [verdict for verdict in decision.verdicts if verdict.candidate.internal]
    spill = spill or all(
        not each_verdict.feasible and each_verdict.reason in PERMANENT for each_verdict in own
    )
    idle: list[Verdict] = []
    apis: list[Verdict] = []
    waits: list[Verdict] = []
    for verdict in decision.order:
        if verdict.candidate.internal:
            why = reason_against(verdict, promises.get(verdict.candidate.pool or "", TightestSlo()))
        else:
            why = None if spill else "its batch has time"
        if why is not None:
            waits.append(verdict._replace(feasible=False, reason=Reason.BATCH, detail=why))
        elif verdict.candidate.internal:
            idle.append(verdict)
        else:
            apis.append(verdict)
    order = _explain_order(idle or apis)
    if idle:
        waits += [
            each_verdict._replace(feasible=False, reason=Reason.COSTLIER) for each_verdict in apis
        ]
    ordered = {verdict.candidate.name for verdict in decision.order}
    others = [
        each_verdict
        for each_verdict in decision.verdicts
        if each_verdict.candidate.name not in ordered
    ]
    reason = order[0].reason if order else Reason.BATCH
    return Decision(
        decision.policy, order, (*order, *waits, *others), reason, InfeasibleAction.REJECT
    )


def reason_against(verdict: Verdict, promised: TightestSlo) -> str | None:
    """Return why a line must wait at this own engine; `None` if no live request is affected."""
    engine = verdict.candidate.engine
    assert engine is not None, "asked of own engines only"
    most, capacity = engine.max_num_seqs, engine.kv_capacity_tokens
    running = engine.running + engine.waiting
    if most > 0 and running + 1 > max(1.0, SHARE * most):
        return f"{running} of {most} sequences are taken"
    if capacity > 0 and verdict.kv_free_tokens < SHARE * capacity:
        return f"would leave {verdict.kv_free_tokens:.0f} of {capacity} KV tokens"
    if engine.step is None:  # no prediction: allowed only on an empty engine
        return f"{running} sequences run" if running else None
    if (verdict.ttft_ms or 0.0) > SHARE * promised.ttft_ms:
        return f"the next first token after {verdict.ttft_ms:.0f} ms"
    if verdict.tpot_ms is not None and verdict.tpot_ms > SHARE * promised.tpot_ms:
        return f"{verdict.tpot_ms:.1f} ms between tokens"
    return None


def reason_to_preempt(engine: EngineState, promised: TightestSlo) -> str | None:
    """Return why lines on an engine must end early; `None` if they may continue."""
    running, most = engine.running + engine.waiting, engine.max_num_seqs
    if most > 0 and running > STRAINED * most:
        return f"{running} of {most} sequences are taken"
    taken_tokens = engine.kv_used_tokens + engine.kv_promised_tokens
    if 0 < STRAINED * engine.kv_capacity_tokens < taken_tokens:
        return f"{taken_tokens:.0f} of {engine.kv_capacity_tokens} KV tokens are promised"
    step = engine.step
    if step is None:
        return None
    decode_s = step.a_s + step.b_s * running + step.c_s * engine.context_tokens
    tpot_ms = 1000.0 * engine.step_feedback * decode_s
    if tpot_ms > STRAINED * promised.tpot_ms:
        return f"{tpot_ms:.1f} ms between tokens"
    queued = engine.queued_prefill_tokens
    ttft_ms = 1000.0 * (step.t0_s + engine.step_feedback * (step.d_s * queued + decode_s))
    if ttft_ms > STRAINED * promised.ttft_ms:
        return f"the next first token after {ttft_ms:.0f} ms"
    return None


def _explain_order(order: list[Verdict]) -> tuple[Verdict, ...]:
    """Return the order with its reasons: the first is the cheapest, or the only one."""
    if not order:
        return ()
    word = Reason.CHEAPEST if len(order) > 1 else Reason.ONLY
    rest = [
        verdict._replace(reason=Reason.COSTLIER)
        if verdict.reason in (Reason.CHEAPEST, Reason.ONLY)
        else verdict
        for verdict in order[1:]
    ]
    return (order[0]._replace(reason=word), *rest)
