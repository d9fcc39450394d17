"""The tightest promises that a pool's engines live under: what their load is measured by.

Where classes of requests share engines, an engine that just keeps the loosest promise has no room
left for the tightest: whoever comes with 200 ms finds a queue that was good enough for 500. So the
load of an engine is its prediction against the deadline of the tightest class among the arrivals,
admitted or not, and its time is dear early enough (reference simulation, 2026-11-20: at twice an
engine's capacity 0.77 of such a class kept its promise without this, 0.85 with it).

A class counts by its share of the market's window, so that one odd request bends nothing, and only
by promises that an empty engine could keep: others are the API's to keep, whatever the load.
Arrivals are counted in bins of equal ratio; a bin stands for its upper edge.
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
    """The promised TTFT where this engine, empty, would keep it; `None` where it would not."""
    if ttft_ms is None or engine is None or engine.step is None:
        return None
    step = engine.step
    alone_s = step.t0_s + engine.step_feedback * (step.a_s + step.b_s + step.d_s * prompt_tokens)
    return ttft_ms if 1000.0 * alone_s <= ttft_ms else None


def bearable_ms(tpot_ms: float | None, step: StepModel | None) -> float | None:
    """The promised TPOT where one sequence alone would keep it; `None` where it would not."""
    if tpot_ms is None or step is None:
        return None
    return tpot_ms if 1000.0 * (step.a_s + step.b_s) <= tpot_ms else None


def deadline_bin(ttft_ms: float) -> int:
    """Return the bin of a deadline; one outside of all bins counts in the nearest."""
    if not ttft_ms > 1.0:
        return 0
    if ttft_ms == inf:
        return DEADLINES - 1
    return min(int(BINS_PER_OCTAVE * log2(ttft_ms)), DEADLINES - 1)


def tightest_ms(counts: Sequence[float], arrivals: float) -> float | None:
    """The deadline as tight as `LEAST_SHARE` of the arrivals have it; `None`: fewer have any."""
    left = LEAST_SHARE * arrivals
    if not sum(counts) > 0.0:
        return None
    for place, here in enumerate(counts):
        left -= here
        if here > 0.0 and left <= 0.0:
            return float(2.0 ** ((place + 1) / BINS_PER_OCTAVE))
    return None
