"""The value of a candidate: dollars, the price of a likely miss, value per engine-second.

Everything is minimised in one unit, pico-USD: an API costs its expected price plus the policy's
penalty times the probability that it misses the SLO (lognormal latency, learned). An own engine's
dollars are sunk; what its time is worth is in `price_curve`. The forecasts it rests on are in
`forecast`, whose names are offered here too.
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
UNLIMITED_TTFT_MS = 1000.0  # where a policy promises none, a second of waiting is a whole load
SAVED_LOAD_MS = 500.0  # of reading that a prefix cache saves: a whole load, however long a promise

_SQRT2 = sqrt(2.0)
_new = tuple.__new__  # as in `forecast`
_UNSEEN = ApiState()


def forecast_api(work: RequestWork, candidate: Candidate) -> Forecast:
    """Return an API's latency medians and miss probability; the prior before any observation."""
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
    """Expected dollars plus the price of a likely miss; infinite when the dollars are unknown."""
    expected = candidate.expected_pusd
    if expected is None:
        return inf
    return expected + penalty_pusd * (forecast.miss_probability or 0.0)


def prefill_saved(engine: EngineState, slo: Slo) -> float:
    """Return the load that the prefix cache saves of a prompt.

    So an engine that has the prompt's beginning may be fuller than another by as much as reading
    it there would take of the promised first token, or of `SAVED_LOAD_MS`: the engine's time is
    worth no less where a promise is long.
    """
    step = engine.step
    if step is None:
        return 0.0
    limit_s = min(slo.ttft_ms or SAVED_LOAD_MS, SAVED_LOAD_MS) / 1000.0
    return engine.step_feedback * step.d_s * engine.prefix_hit_tokens / limit_s


def density(value_pusd: float, engine_seconds: float | None) -> float | None:
    """Value per engine-second `D = v/r`; `None` when the engine's time cannot be predicted."""
    if engine_seconds is None:
        return None
    return value_pusd / engine_seconds if engine_seconds > 0.0 else inf
