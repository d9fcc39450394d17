"""The step-time model of a continuous-batching engine, as fitted, simulated and published.

`step = a + b*sequences + c*context_tokens + d*prefill_tokens`; TTFT adds the constant `t0`.
Source of the form: fits of published vLLM measurements (throughput, TTFT and TPOT medians).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FittedStepModel:
    """Seconds per step, per sequence, per context token, per prefill token, and constant TTFT."""

    a_s: float
    b_s: float
    c_s: float
    d_s: float
    t0_s: float

    def step_s(self, *, sequences: int, context_tokens: float, prefill_tokens: float) -> float:
        """Duration of one engine step in seconds."""
        return (
            self.a_s + self.b_s * sequences + self.c_s * context_tokens + self.d_s * prefill_tokens
        )
