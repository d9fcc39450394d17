"""Health as a fold: every transition, and that silence is neither death nor good news."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.health import (
    EngineHealth,
    HealthLimits,
    HealthState,
    ProbeResult,
    attached_health,
    health_at,
    observe_probe,
    starting_health,
)

A, B, R, S = ProbeResult.ALIVE, ProbeResult.BLIND, ProbeResult.REFUSED, ProbeResult.SILENT


def fold(health: EngineHealth, probes, *, step_s: float = 0.5) -> EngineHealth:
    for number, probe in enumerate(probes, start=1):
        health = observe_probe(health, probe, number * step_s)
    return health


@pytest.mark.parametrize(
    ("probes", "state"),
    [
        ([], HealthState.LOADING),
        ([R] * 50, HealthState.LOADING),  # refusals are expected until it listens
        ([R, S, A], HealthState.HEALTHY),
        ([A, S], HealthState.HEALTHY),  # busy, not dead
        ([A, B], HealthState.UNKNOWN),
        ([A, R], HealthState.UNKNOWN),
        ([A, R, R], HealthState.DOWN),
        ([A, R, R, A], HealthState.DOWN),
        ([A, R, R, A, A], HealthState.HEALTHY),
        ([A, R, A], HealthState.HEALTHY),
        ([A, B, A], HealthState.HEALTHY),
    ],
)
def test_an_engine_that_we_start(probes, state):
    assert fold(starting_health(0.0), probes).state is state


@pytest.mark.parametrize(
    ("probes", "state"),
    [
        ([], HealthState.UNKNOWN),
        ([S] * 9, HealthState.UNKNOWN),
        ([R, R], HealthState.DOWN),
        ([A], HealthState.HEALTHY),
    ],
)
def test_an_engine_that_somebody_else_runs(probes, state):
    assert fold(attached_health(0.0), probes).state is state


def test_what_was_not_seen_for_too_long_is_unknown_and_says_for_how_long():
    health = fold(starting_health(0.0), [A], step_s=1.0)
    assert health_at(health, 6.0).state is HealthState.HEALTHY
    stale = health_at(health, 6.1)
    assert stale.state is HealthState.UNKNOWN
    assert stale.reason == "not seen for 5.1 s"


def test_silence_turns_to_unknown_only_by_age():
    health = fold(starting_health(0.0), [A, *[S] * 20], step_s=0.5)
    assert health.state is HealthState.UNKNOWN


def test_draining_ends_with_the_closed_port_and_no_probe_revives_it():
    health = replace(fold(starting_health(0.0), [A]), state=HealthState.DRAINING)
    assert fold(health, [A, A, S, B]).state is HealthState.DRAINING
    assert fold(health, [A, R]).state is HealthState.DOWN


def test_the_reason_carries_the_detail():
    health = observe_probe(
        fold(starting_health(0.0), [A]), B, 1.0, detail="no vllm:kv_cache_usage_perc"
    )
    assert health.reason == "its metrics cannot be read: no vllm:kv_cache_usage_perc"


def test_since_moves_only_with_the_state():
    health = fold(starting_health(0.0), [A, A, A])
    assert health.since_s == 0.5
    assert observe_probe(observe_probe(health, R, 2.0), R, 2.5).since_s == 2.5


@given(st.lists(st.sampled_from(list(ProbeResult)), max_size=40))
def test_only_an_engine_just_seen_alive_is_routable(probes):
    health = fold(starting_health(0.0), probes, step_s=0.5)
    if health.state is HealthState.HEALTHY:
        assert health.seen_at_s is not None
        assert len(probes) * 0.5 - health.seen_at_s <= HealthLimits().stale_s
        assert health.last not in (B, R)
