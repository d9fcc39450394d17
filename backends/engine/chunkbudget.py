"""Prompt tokens that one step may hold without delaying running answers beyond their SLO.

A chunked-prefill engine fills each step with up to `max_num_batched_tokens` prompt tokens, and
sequences that decode wait for that step. If a full step takes longer than the promised TPOT, short
answers that meet a burst of prompts miss it, whatever the router does. On an H100 model with 2,048
tokens (62 ms a step for a TPOT of 50 ms) 3 of 100 missed it; with 960 tokens 1 of 1,000 did, and
more dollars were avoided (`bench_unseen`, bursts at the engine's capacity, 2026-11-23).
"""

from math import floor

from backends.stepmodel import FittedStepModel

GRAIN = 64  # tokens
LEAST = 64  # tokens; a smaller step reads next to nothing, and each sequence needs one
SEQUENCE_TOKENS = 1_000  # mean context of the sequences that fill half of the cache


def full_step_s(step: FittedStepModel, budget_tokens: int) -> float:
    """Return the seconds of a step full of prompt tokens, with one sequence of empty context."""
    return step.step_s(sequences=1, context_tokens=0, prefill_tokens=budget_tokens)


def prefill_budget(
    step: FittedStepModel, *, tpot_s: float, kv_tokens: int, max_sequences: int
) -> int | None:
    """Return the most prompt tokens of a step that keeps `tpot_s` with a half-full KV cache.

    The result is a multiple of `GRAIN`. It is `None` if not even `LEAST` tokens fit; then `tpot_s`
    is too short for this engine.
    """
    context = kv_tokens / 2
    sequences = max(1, min(max_sequences, round(context / SEQUENCE_TOKENS)))
    left_s = tpot_s - step.step_s(sequences=sequences, context_tokens=context, prefill_tokens=0)
    if step.d_s <= 0.0 or left_s < LEAST * step.d_s:
        return None
    return floor(left_s / step.d_s / GRAIN) * GRAIN
