"""What an engine can carry inside a TPOT promise, from its step-time model.

In the steady state of `n` sequences with prompts of `p` and outputs of `o` tokens, each step
decodes `n` tokens and prefills `n*p/o` (every sequence that ends is followed by another), so
`step = a + n*(b + c*(p + o/2) + d*p/o)`. The largest `n` with `step <= TPOT` that the KV cache and
the batch limit hold gives the capacity `n/step`.
"""

from dataclasses import dataclass

from backends.stepmodel import StepModel


@dataclass(frozen=True, slots=True)
class TrafficShape:
    """Mean prompt and output tokens of the requests."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class SloCapacity:
    sequences: int
    input_tokens_per_s: float
    output_tokens_per_s: float


def capacity_at(
    step: StepModel,
    shape: TrafficShape,
    *,
    tpot_s: float,
    kv_capacity_tokens: int,
    max_num_seqs: int,
) -> SloCapacity | None:
    """The most that keeps TPOT; `None` when even one sequence does not."""
    p, o = shape.prompt_tokens, shape.output_tokens
    each_s = step.b_s + step.c_s * (p + o / 2) + step.d_s * p / o
    by_time = int((tpot_s - step.a_s) / each_s) if tpot_s > step.a_s else 0
    n = min(by_time, kv_capacity_tokens // (p + o), max_num_seqs)
    if n < 1:
        return None
    output_rate = n / (step.a_s + n * each_s)
    return SloCapacity(n, output_rate * p / o, output_rate)
