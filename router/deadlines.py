"""The tightest promises of a pool's requests; the load of its engines is measured by them.

Where classes of requests share engines, an engine that just keeps the loosest promise cannot keep
the tightest: a request with 200 ms finds a queue that is acceptable for 500 ms. So the load of an
engine is its prediction against the tightest deadline among the arrivals, admitted or not. In the
reference simulation (2026-11-20), at twice an engine's capacity, 0.77 of the tight class kept its
promise without this rule and 0.85 with it. A class counts only from `LEAST_SHARE` of the arrivals,
and only with promises that an empty engine could keep. Arrivals are counted in bins of equal ratio;
a bin stands for its upper edge.
"""

from collections.abc import Sequence
from math import inf, log2

from router.types import EngineState, StepModel

LEAST_SHARE = 0.05  # of a window's arrivals
BINS_PER_OCTAVE = 16
OCTAVES = 16  # from 1 ms to a minute
DEADLINES = BINS_PER_OCTAVE * OCTAVES


def keepable_ms(
    ttft_ms: float | None, prompt_tokens: int, engine: EngineState | None
) -> float | None:
    """Return the promised TTFT if this engine, when empty, would keep it; otherwise `None`."""
    if ttft_ms is None or engine is None or engine.step is None:
        return None
    step = engine.step
    alone_s = step.t0_s + engine.step_feedback * (step.a_s + step.b_s + step.d_s * prompt_tokens)
    return ttft_ms if 1000.0 * alone_s <= ttft_ms else None


def bearable_ms(tpot_ms: float | None, step: StepModel | None) -> float | None:
    """Return the promised TPOT if one sequence alone would keep it; otherwise `None`."""
    if tpot_ms is None or step is None:
        return None
    return tpot_ms if 1000.0 * (step.a_s + step.b_s) <= tpot_ms else None


def deadline_bin(ttft_ms: float) -> int:
    """Return the bin of a deadline; a deadline outside all bins counts in the nearest one."""
    if not ttft_ms > 1.0:
        return 0
    if ttft_ms == inf:
        return DEADLINES - 1
    return min(int(BINS_PER_OCTAVE * log2(ttft_ms)), DEADLINES - 1)


def tightest_ms(counts: Sequence[float], arrivals: float) -> float | None:
    """Return the TTFT that `LEAST_SHARE` of arrivals have or undercut; `None` if fewer do."""
    left = LEAST_SHARE * arrivals
    if not sum(counts) > 0.0:
        return None
    for place, here in enumerate(counts):
        left -= here
        if here > 0.0 and left <= 0.0:
            return float(2.0 ** ((place + 1) / BINS_PER_OCTAVE))
    return None
