"""Objective of a candidate: expected cost, price of a miss, value per engine-second.

Everything is minimised in pico-USD: an API costs its expected price plus the policy's penalty times
the probability that it misses the SLO (learned lognormal latency). The cost of an own engine is
sunk; `price_curve` has the value of its time. Names of `forecast` are re-exported here.
"""

from math import erfc, inf, log, sqrt

from router.forecast import (
    Forecast,
    RequestWork,
    engine_seconds,
    forecast_engine,
    kv_promise_tokens,
    work_of,
)
from router.types import ApiState, Candidate, EngineState, Slo

__all__ = [
    "Forecast",
    "RequestWork",
    "api_objective",
    "density",
    "engine_seconds",
    "forecast_api",
    "forecast_engine",
    "kv_promise_tokens",
    "miss_probability",
    "prefill_saved",
    "work_of",
]

# An API's latency before its first observation: the external API of the reference simulation,
# 2026-11-20 (lognormal medians; the spread is `ApiState`'s).
PRIOR_TTFT_MS = 450.0
PRIOR_TPOT_MS = 15.0
UNLIMITED_TTFT_MS = 1000.0  # without a promise, a wait of 1 s is a load of 1
SAVED_LOAD_MS = 500.0  # saved prefill that counts as a load of 1, however long the promise

_SQRT2 = sqrt(2.0)
_new = tuple.__new__  # as in `forecast`
_UNSEEN = ApiState()


def forecast_api(work: RequestWork, candidate: Candidate) -> Forecast:
    """Return an API's latency medians and miss probability; priors before any observation."""
    api = candidate.api or _UNSEEN
    ttft, tpot = api.ttft_median_ms, api.tpot_median_ms
    if ttft is None:
        ttft = PRIOR_TTFT_MS
    if not work.decodes:
        tpot = None
    elif tpot is None:
        tpot = PRIOR_TPOT_MS
    missed = 0.0
    ttft_slo, tpot_slo = work.ttft_ms, work.tpot_ms
    if ttft_slo is not None:
        missed = miss_probability(ttft, api.ttft_sigma, ttft_slo)
    if tpot_slo is not None and tpot is not None:
        missed += (1.0 - missed) * miss_probability(tpot, api.tpot_sigma, tpot_slo)
    return _new(Forecast, (ttft, tpot, None, None, missed, None, 0, 0.0, None, ttft_slo, tpot_slo))


def miss_probability(median_ms: float, sigma: float, limit_ms: float) -> float:
    """Return P(lognormal latency > limit). Impossible learned values count as a certain miss."""
    if not 0.0 < median_ms < inf or not sigma >= 0.0:
        return 1.0
    if sigma == 0.0:
        return 1.0 if median_ms > limit_ms else 0.0
    return 0.5 * erfc(log(limit_ms / median_ms) / (sigma * _SQRT2))


def api_objective(candidate: Candidate, penalty_pusd: int, forecast: Forecast) -> float:
    """Return expected cost plus the price of a likely miss, pUSD; inf if the cost is unknown."""
    expected = candidate.expected_pusd
    if expected is None:
        return inf
    return expected + penalty_pusd * (forecast.miss_probability or 0.0)


def prefill_saved(engine: EngineState, slo: Slo) -> float:
    """Return the load that the prefix cache of an engine saves for a prompt.

    An engine that has the prompt's prefix may be fuller than another one by the prefill time saved,
    as a share of the promised TTFT or of `SAVED_LOAD_MS`, whichever is shorter: engine time is not
    worth less where a promise is long.
    """
    step = engine.step
    if step is None:
        return 0.0
    limit_s = min(slo.ttft_ms or SAVED_LOAD_MS, SAVED_LOAD_MS) / 1000.0
    return engine.step_feedback * step.d_s * engine.prefix_hit_tokens / limit_s


def density(value_pusd: float, engine_seconds: float | None) -> float | None:
    """Return the value per engine-second `D = v/r`; `None` if the engine time is unknown."""
    if engine_seconds is None:
        return None
    return value_pusd / engine_seconds if engine_seconds > 0.0 else inf
