"""Engine time of attempts that the gateway ended before the engine reported any progress."""

from gateway.kinds.outcome import AttemptOutcome
from gateway.request.attempt import Attempt
from ledger.journals.records import TokenCounts
from router.forecast import engine_seconds
from router.types import EngineState, StepModel

_NOTHING = TokenCounts()


def is_interrupted(outcome: AttemptOutcome, tokens: TokenCounts) -> bool:
    """Return whether the gateway ended the attempt before the engine reported any tokens.

    A failure of the engine itself is not charged to the client.
    """
    ours = outcome.status in ("client_gone", "timeout") and outcome.error is None
    return ours and tokens == _NOTHING and outcome.billable


def estimate_progress(
    attempt: Attempt, engine: EngineState, step: StepModel, now_s: float
) -> tuple[TokenCounts, float]:
    """Return the prompt once its prefill must be over, and the expected engine seconds.

    The estimate uses the decision's predictions for this engine's load, at most the elapsed time. A
    silent stream counts as still in prefill: it has made no token, and prefill may be that late.
    """
    request, verdict = attempt.plan.request, attempt.step.verdict
    prompt, passed_s = request.prompt_tokens, now_s - attempt.dispatched_s
    alone_s = step.t0_s + step.d_s * prompt
    first_s = alone_s if verdict.ttft_ms is None else verdict.ttft_ms / 1e3
    token_s = max(step.a_s + step.b_s, (verdict.tpot_ms or 0.0) / 1e3)
    if passed_s < first_s or attempt.plan.asked.stream:
        part = min(1.0, passed_s / first_s) if first_s > 0 else 1.0
        return _NOTHING, min(passed_s, engine_time_s(engine, step, prompt, 0) * part)
    output = (passed_s - first_s) / token_s if token_s > 0 else 0.0
    if request.max_tokens is not None:
        output = min(output, float(request.max_tokens))
    expected_s = engine_time_s(engine, step, prompt, output * request.n)
    return TokenCounts(input=prompt), min(passed_s, expected_s)


def engine_time_s(engine: EngineState, step: StepModel, prompt: float, output: float) -> float:
    """Return the engine seconds of these tokens, by the step model and its observed feedback."""
    return engine.step_feedback * engine_seconds(
        step,
        kv_capacity_tokens=engine.kv_capacity_tokens,
        prompt_tokens=prompt,
        output_mean=float(output),
        output_mean_square=float(output) ** 2,
    )
