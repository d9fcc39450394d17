"""Health of an engine as a pure fold over probe results, without clock and network.

                 alive                       refused (several)
    LOADING ----------------> HEALTHY <---------------------------> DOWN
                              |    ^                                  ^
              silent, blind   v    | alive                            | refused
                            UNKNOWN               DRAINING -----------+

A busy vLLM answers its metrics page seconds late, so silence does not mean that it is down. An
engine not seen for `stale_s` is UNKNOWN, which counts neither as healthy nor as stopped.
"""

from dataclasses import dataclass, replace
from enum import StrEnum


class HealthState(StrEnum):
    LOADING = "loading"
    HEALTHY = "healthy"
    DRAINING = "draining"
    DOWN = "down"
    UNKNOWN = "unknown"
    OFF = "off"  # stopped on purpose


class ProbeResult(StrEnum):
    """The result of one health check of an engine."""

    ALIVE = "alive"  # answered, and its metrics could be read
    BLIND = "blind"  # answered, but its metrics could not be used
    REFUSED = "refused"  # nothing listens, or it answered with an error
    SILENT = "silent"  # no answer in time


@dataclass(frozen=True, slots=True)
class HealthLimits:
    stale_s: float = 5.0
    refusals_to_down: int = 2
    answers_to_recover: int = 2


@dataclass(frozen=True, slots=True)
class EngineHealth:
    """Health of an engine. `streak` counts equal probes in a row; `reason` is a sentence."""

    state: HealthState
    since_s: float
    seen_at_s: float | None = None
    last: ProbeResult | None = None
    streak: int = 0
    reason: str = ""


def starting_health(now_s: float) -> EngineHealth:
    """Return the health of an engine that was just started: refusals are expected."""
    return EngineHealth(HealthState.LOADING, now_s, reason="starting")


def attached_health(now_s: float) -> EngineHealth:
    """Return the health of an attached engine before its first probe."""
    return EngineHealth(HealthState.UNKNOWN, now_s, reason="not probed so far")


def observe_probe(
    health: EngineHealth,
    probe: ProbeResult,
    now_s: float,
    *,
    detail: str = "",
    limits: HealthLimits | None = None,
) -> EngineHealth:
    """Return the health after one more probe."""
    limits = limits or HealthLimits()
    streak = health.streak + 1 if probe is health.last else 1
    seen = now_s if probe is ProbeResult.ALIVE else health.seen_at_s
    health = replace(health, last=probe, streak=streak, seen_at_s=seen)
    state, reason = _next(health, probe, limits)
    moved = _move(health, state, f"{reason}: {detail}" if detail else reason, now_s)
    return health_at(moved, now_s, limits=limits)


def health_at(
    health: EngineHealth, now_s: float, *, limits: HealthLimits | None = None
) -> EngineHealth:
    """Return the health as of now: an engine not seen for `stale_s` is unknown."""
    limits = limits or HealthLimits()
    if health.state is not HealthState.HEALTHY or health.seen_at_s is None:
        return health
    age_s = now_s - health.seen_at_s
    if age_s <= limits.stale_s:
        return health
    return _move(health, HealthState.UNKNOWN, f"not seen for {age_s:.1f} s", now_s)


def _next(
    health: EngineHealth, probe: ProbeResult, limits: HealthLimits
) -> tuple[HealthState, str]:
    state = health.state
    if state is HealthState.DRAINING:
        # While draining, vLLM's /health stays 200: only the closed port shows that it ended.
        return (
            (HealthState.DOWN, "drained") if probe is ProbeResult.REFUSED else (state, "draining")
        )
    if probe is ProbeResult.ALIVE:
        if state is HealthState.DOWN and health.streak < limits.answers_to_recover:
            return state, "answers again; waiting for one more"
        return HealthState.HEALTHY, "answers"
    if state is HealthState.LOADING:
        return state, "loading"
    if probe is ProbeResult.REFUSED and health.streak >= limits.refusals_to_down:
        return HealthState.DOWN, _REASONS[probe]
    # One refusal may be a full backlog: unknown, so that nothing is sent, but not yet down.
    falls = probe is ProbeResult.BLIND or (
        probe is ProbeResult.REFUSED and state is HealthState.HEALTHY
    )
    return HealthState.UNKNOWN if falls else state, _REASONS[probe]


_REASONS = {
    ProbeResult.BLIND: "its metrics cannot be read",
    ProbeResult.REFUSED: "refuses",
    ProbeResult.SILENT: "silent",
}


def _move(health: EngineHealth, state: HealthState, reason: str, now_s: float) -> EngineHealth:
    since_s = health.since_s if state is health.state else now_s
    return replace(health, state=state, since_s=since_s, reason=reason)
