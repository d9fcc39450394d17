"""The step-time model of a continuous-batching engine, as fitted, simulated, published.

`step = a + b*sequences + c*context_tokens + d*prefill_tokens`; TTFT adds the constant `t0`. Tokens
of a long prompt attend to thousands before them: `q` is the time of one such pair, so a prompt read
from its beginning adds `q * tokens**2 / 2` over all its steps. Source of the form: fits of
published vLLM measurements (throughput, TTFT and TPOT medians).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FittedStepModel:
    """Seconds per step, per sequence, per context token, per prefill token, and constant TTFT.

    `q_s`: seconds for each token of a prompt and each earlier one that it attends to; 0 is unknown.
    """

    a_s: float
    b_s: float
    c_s: float
    d_s: float
    t0_s: float
    q_s: float = 0.0

    def step_s(
        self,
        *,
        sequences: int,
        context_tokens: float,
        prefill_tokens: float,
        attended_tokens: float = 0.0,
    ) -> float:
        """Return the seconds of one engine step.

        `attended_tokens`: pairs of a token that the step reads and an earlier one
        (`attended_tokens()`).
        """
        linear_s = (
            self.a_s + self.b_s * sequences + self.c_s * context_tokens + self.d_s * prefill_tokens
        )
        return linear_s + self.q_s * attended_tokens


def attended_tokens(before: float, tokens: float) -> float:
    """Return the pairs of a read token and an earlier one, after `before` cached tokens."""
    return tokens * (before + 0.5 * tokens)
