"""Parts of an attempt that took two engines: the work of each, and how long it held KV.

The parts' times add up to the attempt's engine time, to the microsecond. A part is recorded for the
engine that answers, and for the prefill engine once a byte may have been sent to it.
"""

from collections.abc import Sequence

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from gateway.request.engine_progress import engine_time_s
from gateway.request.prefill_leg import LegEnd, PrefillLeg
from ledger.journals.records import AttemptLeg
from router.types import EngineState, StepModel


def legs_of(
    attempt: Attempt, outcome: AttemptOutcome, prompt: float, engine_s: float, now_s: float
) -> tuple[AttemptLeg, ...]:
    """Return the parts of an attempt; empty where one engine did all.

    `engine_s` is the time of the answering engine as if it had read the prompt itself.
    """
    leg, engine = attempt.prefill, attempt.step.frozen.candidate.engine
    if leg is None or engine is None or engine.step is None:
        return ()
    if leg.is_read:
        engine_s = max(0.0, engine_s - _reading_s(engine, engine.step, prompt))
    held_s = now_s - attempt.dispatched_s
    moved_s = None
    if leg.read_s is not None and leg.ended_s is not None:
        moved_s = leg.read_s - leg.ended_s
    answered = AttemptLeg(
        engine=attempt.step.frozen.target.replica or "",
        role="decode",
        busy_us=round(engine_s * 1e6),
        kv_tokens=attempt.step.verdict.kv_promise_tokens,
        held_us=max(0, round(held_s * 1e6)),
        transfer_us=None if moved_s is None else round(moved_s * 1e6),
        outcome=_end_of(outcome),
    )
    return (*_read(leg, prompt, now_s), answered)


def busy_us(legs: Sequence[AttemptLeg]) -> int:
    """Return the engine time of an attempt with parts."""
    return sum(leg.busy_us for leg in legs)


def _read(leg: PrefillLeg, prompt: float, now_s: float) -> tuple[AttemptLeg, ...]:
    if not leg.sent:
        return ()
    ended_s = now_s if leg.ended_s is None else leg.ended_s
    until_s = ended_s if not leg.is_read else now_s if leg.read_s is None else leg.read_s
    tokens = leg.prompt_tokens or prompt or leg.forecast.kv_promise_tokens
    step = leg.engine.step
    work_s = 0.0 if step is None else engine_time_s(leg.engine, step, tokens, 1)
    if not leg.is_read:
        work_s = min(work_s, ended_s - leg.began_s)
    return (
        AttemptLeg(
            engine=leg.target.replica or "",
            role="prefill",
            busy_us=max(0, round(work_s * 1e6)),
            kv_tokens=leg.forecast.kv_promise_tokens,
            held_us=max(0, round((until_s - leg.began_s) * 1e6)),
            transfer_us=None,
            outcome=leg.end.value,
        ),
    )


def _reading_s(engine: EngineState, step: StepModel, prompt: float) -> float:
    """Return the prefill seconds saved at the answering engine: all but the last token's."""
    return engine.step_feedback * step.d_s * max(0.0, prompt - 1.0)


def _end_of(outcome: AttemptOutcome) -> str:
    if outcome.status in ("finished", "rejected"):
        return LegEnd.DONE.value
    return LegEnd.LEFT.value if outcome.error is None else LegEnd.FAILED.value
