"""The fit finds parameters it was given, and reproduces the measured requests as stated.

Other people's measurements lie outside the repository; their tests say so when they are missing.
"""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from backends.simulator import fit
from backends.simulator.measurements import MeasuredRequest, read, summarise
from backends.simulator.profiles import DATA, PROFILES
from backends.simulator.shape import EngineShape, StepTiming
from backends.stepmodel import FittedStepModel

TRUTH = FittedStepModel(a_s=5e-3, b_s=2e-5, c_s=3e-8, d_s=3e-5, t0_s=1e-2)
H200 = DATA / "h200_llama8b_fp8_requests.csv.gz"
RTX4090 = (
    Path(__file__).resolve().parents[4]
    / "shared/measurements/vllm/vllm_measured_RTX4090_Llama-3.1-8B.csv.gz"
)

# Simulated over observed minus one, of the shipped profile's linear step, in percent, with the
# largest deviation that counts as unchanged: 1 point.
H200_ERRORS = {  # rate: TTFT p50, TPOT p50, output tokens/s
    "1": (8.3, 4.0, -0.3),
    "5": (4.0, 3.5, -0.2),
    "10": (0.4, -1.1, -0.1),
    "25": (-42.5, -11.7, 0.9),
    "50": (0.9, 25.9, -1.9),
    "75": (-10.5, 4.4, -7.1),
    "100": (11.2, 3.6, -7.8),
}


@pytest.fixture(scope="module")
def shape():
    return EngineShape(step=TRUTH, blocks=30001, prefill_budget_tokens=2048)


@pytest.fixture(scope="module")
def runs(shape):
    """Requests that an engine with known parameters served, at two rates."""
    rng = random.Random(5)
    found = {}
    for rate in (2.0, 20.0):
        found[str(rate)] = fit.simulate(shape, requests_at(rate, 80, rng))
    return found


def requests_at(rate, count, rng=None, *, seed=0):
    rng = rng or random.Random(seed)
    at_s, requests = 0.0, []
    for _ in range(count):
        at_s += rng.expovariate(rate)
        prompt, output = rng.randint(100, 900), rng.randint(50, 250)
        requests.append(MeasuredRequest(at_s, prompt, output, 1.0, 2.0))
    return requests


def test_an_exact_model_has_no_loss(shape, runs):
    assert fit.loss(shape, runs) == pytest.approx(0.0, abs=1e-9)


def test_a_wrong_model_has(shape, runs):
    wrong = replace(shape, step=replace(TRUTH, a_s=2 * TRUTH.a_s))
    assert fit.loss(wrong, runs) > 0.1


def test_the_pace_recovers_what_a_linear_step_cannot(shape):
    """Launches that take longer than their work, and streams that keep new requests waiting."""
    short = replace(TRUTH, d_s=5e-6)  # work hides behind its launch
    truth = StepTiming(short, captured_s=1.2e-2, eager_s=3e-2, stream_s=1e-3, stream_power=1.0)
    asked = {str(rate): requests_at(rate, 60, seed=rate) for rate in (2, 20)}
    runs = {
        name: fit.simulate(replace(shape, pace=truth), requests) for name, requests in asked.items()
    }
    start = replace(shape, pace=replace(truth, eager_s=2.2e-2, stream_s=7e-4))
    found = fit.fit_pace(start, runs, evaluations=200)
    after = fit.loss(replace(shape, pace=found), runs)
    assert after < 0.5 * fit.loss(start, runs)
    assert after < 0.5 * fit.loss(replace(shape, step=short), runs)


@pytest.mark.parametrize("longest", [900, 12_000])
def test_long_prompts_tell_what_attention_adds(longest):
    """Fitted to prompts of up to 12,000 tokens, held against one of 40,000; short ones say nothing.

    The linear fit of the same runs is off by twice as much at least.
    """
    truth = replace(TRUTH, q_s=TRUTH.d_s / 20_000)
    long = EngineShape(step=truth, blocks=30001, prefill_budget_tokens=2048, context_tokens=60_000)
    asked = [MeasuredRequest(3.0 * number, longest * (1 + number % 4) // 4, 20, 1.0, 2.0)
             for number in range(12)]  # fmt: skip
    runs = {"a": fit.simulate(long, asked)}
    start = replace(long, pace=StepTiming(replace(TRUTH, d_s=1.3 * TRUTH.d_s)))
    found = fit.fit_pace(replace(start, pace=replace(start.pace, captured_s=1e-3, eager_s=1e-3,
                         stream_s=1e-9)), runs, evaluations=250)  # fmt: skip
    held_out = [MeasuredRequest(0.0, 40_000, 20, 1.0, 2.0)]
    (real,) = fit.simulate(long, held_out)
    (bent,) = fit.simulate(replace(long, pace=found), held_out)
    if longest < fit.LONG_PROMPT:
        assert found.step.q_s == 0.0
    else:
        assert bent.ttft_s == pytest.approx(real.ttft_s, rel=0.15)
        (linear,) = fit.simulate(replace(long, step=TRUTH, pace=None), held_out)
        assert abs(linear.ttft_s - real.ttft_s) > 2 * abs(bent.ttft_s - real.ttft_s)


def test_of_a_run_that_falls_behind_ttft_does_not_count(shape, runs):
    late = {name: [replace(item, ttft_s=0.9 * item.e2e_s) for item in runs[name]] for name in runs}
    exact = fit.simulate(shape, late["20.0"])
    observed = {"2.0": runs["2.0"], "20.0": [
        replace(item, ttft_s=0.5 * item.e2e_s, e2e_s=item.e2e_s) for item in exact
    ]}  # fmt: skip
    summary = summarise(observed["20.0"])
    assert not fit.is_keeping_up(summary, observed["20.0"])
    assert fit.is_keeping_up(summarise(runs["2.0"]), runs["2.0"])


def test_what_a_gateway_believes_is_on_the_careful_side():
    pace = StepTiming(TRUTH, captured_tokens=500, captured_s=1e-2, eager_s=3e-2)
    assert fit.believed_model(pace).d_s == pytest.approx((3e-2 - TRUTH.a_s) / 500)
    assert fit.believed_model(StepTiming(TRUTH)) == TRUTH


def test_the_linear_step_of_the_h200_misses_by_what_it_says():
    runs = read(H200)
    assert sum(map(len, runs.values())) == 3192
    compared = fit.compare(replace(PROFILES["h200-llama-3.1-8b-fp8"].shape, pace=None), runs)
    for rate, (observed, simulated) in compared.items():
        errors = [100 * (ratio - 1) for ratio in simulated.ratios(observed)]
        assert errors == pytest.approx(H200_ERRORS[rate], abs=1.0), rate


def test_the_rtx_4090_profile_misses_by_what_it_says():
    if not RTX4090.exists():
        pytest.skip(f"other people's measurements are not here: {RTX4090.name} in ../shared")
    compared = fit.compare(PROFILES["rtx4090-llama-3.1-8b"].shape, read(RTX4090))
    ((observed, simulated),) = compared.values()
    errors = [100 * (ratio - 1) for ratio in simulated.ratios(observed)]
    assert errors == pytest.approx([-0.3, 0.6, -0.8, -2.7], abs=0.5)
