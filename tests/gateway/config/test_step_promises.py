"""Budgets of steps follow from what policies promise for a token, and what breaks one is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.engine.chunkbudget import full_step_s
from backends.simulator.profiles import PROFILES
from backends.stepmodel import FittedStepModel
from gateway.config.settings import Settings, parse
from gateway.config.step_promises import (
    LEAST_BUDGET,
    LONG_ANSWER,
    PolicyPromise,
    PoolSteps,
    broken_promises,
    chosen_limits,
    kept_budget,
    kept_sequences,
    measured_steps,
    profile_steps,
    promise_faults,
    promises_on,
    started_steps,
)
from ledger.fleet.pool_records import CapacityRow

H100 = "h100-llama-3.1-8b-fp8"
TEXT = """
models:
  chat: {targets: [pool:own, openai/m], compare_with: [openai/m]}
  other: {targets: [openai/m]}
pools:
  own: {engine: {%s}, gpu: {type: H100, usd_per_hour: 3}}
providers: {openai: {api_key_env: X}}
policies: [%s]
"""
MANAGED = f"kind: simulated, model: {H100}, replicas: 1"
ATTACHED = f"kind: simulated, model: {H100}, endpoints: ['http://127.0.0.1:9/v1']"
TIGHT = "{name: tight, slo: {ttft_ms: 500, tpot_ms: 50}}"


def settings(engine: str = MANAGED, policies: str = TIGHT) -> Settings:
    return parse(TEXT % (engine, policies), name="test")


def steps_of(known: Settings) -> PoolSteps:
    found = profile_steps(known, "own")
    assert found is not None
    return found


def test_a_profiles_engines_are_started_with_a_step_that_keeps_the_promise() -> None:
    """Red before: 2,048 tokens, 62 ms for 50, and three of 100 short answers came late."""
    known = settings()
    steps = started_steps(known, "own", steps_of(known))
    assert steps.budget_tokens == 960
    assert list(promise_faults(known, {})) == []
    (note,) = chosen_limits(known, {})
    assert "960 in place of 2048" in note


@pytest.mark.parametrize(
    ("engine", "cure"),
    [
        (MANAGED + ", prefill_budget_tokens: 2048", "set `prefill_budget_tokens: 960`"),
        (ATTACHED, "start its engines with --max-num-batched-tokens 960"),
    ],
)
def test_what_stands_is_not_changed_and_warned_of(engine: str, cure: str) -> None:
    known = settings(engine)
    assert started_steps(known, "own", steps_of(known)).budget_tokens == 2048
    (fault,) = promise_faults(known, {})
    assert (fault.severity, fault.place) == ("warning", ("pools", "own", "engine"))
    assert "62 ms" in fault.message
    assert cure in fault.message
    (fault,) = promise_faults(known, {}, at_policies=True)
    assert fault.place == ("policies", 0, "slo", "tpot_ms")


def test_a_promise_that_no_step_keeps_changes_nothing_and_is_told() -> None:
    known = settings(policies="{name: hasty, slo: {tpot_ms: 6}}")
    assert started_steps(known, "own", steps_of(known)).budget_tokens == 2048
    (fault,) = promise_faults(known, {})
    assert "promise more" in fault.message


@pytest.mark.parametrize(
    ("policies", "tpot"),
    [
        (TIGHT, 50.0),
        (f"{{name: there, match: {{models: [other]}}, slo: {{tpot_ms: 9}}}}, {TIGHT}", 50.0),
        (f"{{name: api, candidates: [openai/m], slo: {{tpot_ms: 9}}}}, {TIGHT}", None),
        (f"{{name: all, slo: {{tpot_ms: 80}}}}, {TIGHT}", 80.0),
        (f"{{name: team, match: {{teams: [a]}}, slo: {{tpot_ms: 80}}}}, {TIGHT}", 50.0),
        (f"{{name: seen, shadow: true, slo: {{tpot_ms: 9}}}}, {TIGHT}", 50.0),
        ("{name: begins, match: {models: [ch*]}, slo: {tpot_ms: 70}}", 70.0),
        ("{name: none}", None),
    ],
)
def test_only_policies_that_requests_of_the_pool_fall_under_count(policies, tpot) -> None:
    found = promises_on(settings(policies=policies), "own")
    assert min([each.tpot_ms for each in found], default=None) == tpot


@given(
    a=st.floats(1e-3, 30e-3), d=st.floats(1e-6, 200e-6), tpot_ms=st.floats(5.0, 500.0),
    budget=st.integers(LEAST_BUDGET, 16_384),
)  # fmt: skip
def test_a_kept_budget_keeps_it_and_is_never_larger_than_before(a, d, tpot_ms, budget) -> None:
    steps = PoolSteps(FittedStepModel(a, 20e-6, 20e-9, d, 0.01), budget, 256, 400_000)
    promise = PolicyPromise("p", tpot_ms)
    found = kept_budget(steps, [promise])
    broken = list(broken_promises("own", steps, [promise]))
    if found is None:
        assert [each.budget for each in broken] == [None]
        return
    assert full_step_s(steps.step, found) <= tpot_ms / 1e3 + 1e-12
    assert LEAST_BUDGET <= found <= budget
    assert bool(broken) == (found < budget)


def test_long_answers_average_a_full_step_away() -> None:
    shortest = {"chat": LONG_ANSWER}
    known = settings()
    assert promises_on(known, "own", shortest)[0].is_long
    assert not promises_on(known, "own", {"chat": LONG_ANSWER - 1})[0].is_long
    assert started_steps(known, "own", steps_of(known), shortest).budget_tokens == 2048
    steps = steps_of(known)._replace(budget_tokens=8192)
    assert list(broken_promises("own", steps, promises_on(known, "own", shortest)))


def test_a_batch_keeps_the_promise_without_prompts() -> None:
    steps = PoolSteps(FittedStepModel(5e-3, 1e-3, 0.0, 1e-5, 0.0), 2048, 256, 1000)
    assert kept_sequences(steps, [PolicyPromise("p", 45.0)]) == 40
    assert kept_sequences(steps, [PolicyPromise("p", 5.5)]) == 256, "nothing keeps it"
    assert kept_sequences(steps, []) == 256


def test_what_the_books_measured_counts_where_there_is_no_profile() -> None:
    known = settings("model: /models/x, replicas: 1")
    step = PROFILES[H100].shape.step
    row = CapacityRow(
        "own", "pool:own/0", 0, 480_000, None, step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s,
        "fitted", prefill_budget_tokens=4096,
    )  # fmt: skip
    unknown = CapacityRow("own", "pool:own/1", 0, None, *[None] * 6, "nobody")
    measured = measured_steps([unknown, row])
    assert measured["own"].budget_tokens == 4096
    assert started_steps(known, "own", measured["own"]).budget_tokens == 960
    assert list(promise_faults(known, {})) == [], "nobody knows its steps"
    attached = settings("model: x, endpoints: ['http://127.0.0.1:9/v1']")
    (fault,) = promise_faults(attached, measured)
    assert "119 ms" in fault.message
