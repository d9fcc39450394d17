"""A step full of prompts is no longer than the promised time per token."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from backends.engine.chunkbudget import GRAIN, LEAST, full_step_s, prefill_budget
from backends.simulator.profiles import PROFILES
from backends.stepmodel import FittedStepModel

SHAPE = PROFILES["h100-llama-3.1-8b-fp8"].shape
GIVEN = {"kv_tokens": SHAPE.kv_capacity_tokens, "max_sequences": SHAPE.max_num_seqs}
SECONDS = st.floats(1e-7, 1e-4)


def test_an_h100_with_the_usual_budget_breaks_50_ms_and_with_this_one_keeps_it():
    assert full_step_s(SHAPE.step, 2048) > 0.050
    budget = prefill_budget(SHAPE.step, tpot_s=0.050, **GIVEN)
    assert budget == 960
    assert full_step_s(SHAPE.step, budget) < 0.050


@given(SECONDS, SECONDS, SECONDS, st.floats(0.001, 0.2), st.integers(100, 10**6))
def test_it_is_the_largest_that_fits(b_s, c_s, d_s, tpot_s, kv_tokens):
    step = FittedStepModel(0.005, b_s, c_s / 1_000, d_s, 0.0)
    found = prefill_budget(step, tpot_s=tpot_s, kv_tokens=kv_tokens, max_sequences=256)
    sequences = max(1, min(256, round(kv_tokens / 2_000)))

    def takes_s(tokens: int) -> float:
        return step.step_s(sequences=sequences, context_tokens=kv_tokens / 2, prefill_tokens=tokens)

    if found is None:
        assert takes_s(LEAST) > tpot_s * (1 - 1e-9)
        return
    assert found % GRAIN == 0
    assert takes_s(found) <= tpot_s * (1 + 1e-9)
    assert takes_s(found + GRAIN) > tpot_s * (1 - 1e-9)


def test_a_promise_that_nothing_keeps_has_none():
    assert prefill_budget(SHAPE.step, tpot_s=0.004, **GIVEN) is None
    assert prefill_budget(replace(SHAPE.step, d_s=0.0), tpot_s=1.0, **GIVEN) is None
