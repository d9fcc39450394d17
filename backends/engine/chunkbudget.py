"""The prompt tokens of a step for which no running answer's next token comes late.

A chunked-prefill engine fills each step with prompt tokens up to `max_num_batched_tokens`; whoever
decodes meanwhile waits for that step. Where a full one is longer than the promised time per token,
short answers that meet a burst of prompts break their promise, and no router can prevent it: on an
H100 model with 2,048 tokens (62 ms for 50 ms) 3 of 100 did, with 960 one in 1,000, and more dollars
were avoided (`bench_unseen`, bursts at the engine's capacity, 2026-11-23).
"""

from math import floor

from backends.stepmodel import FittedStepModel

GRAIN = 64  # tokens
LEAST = 64  # vLLM needs one for each sequence as well; below it a step reads next to nothing
SEQUENCE_TOKENS = 1_000  # held by each of those that fill half of the cache


def full_step_s(step: FittedStepModel, budget_tokens: int) -> float:
    """Return the seconds of a step full of prompts beside one sequence almost without context."""
    return step.step_s(sequences=1, context_tokens=0, prefill_tokens=budget_tokens)


def prefill_budget(
    step: FittedStepModel, *, tpot_s: float, kv_tokens: int, max_sequences: int
) -> int | None:
    """Return the most tokens that fit into the promised time beside a cache that is half full.

    A multiple of `GRAIN`; `None` where not even `LEAST` do, then the promise is the wrong one.
    """
    context = kv_tokens / 2
    sequences = max(1, min(max_sequences, round(context / SEQUENCE_TOKENS)))
    left_s = tpot_s - step.step_s(sequences=sequences, context_tokens=context, prefill_tokens=0)
    if step.d_s <= 0.0 or left_s < LEAST * step.d_s:
        return None
    return floor(left_s / step.d_s / GRAIN) * GRAIN
