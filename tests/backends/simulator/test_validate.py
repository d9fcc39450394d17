"""The shipped model against the runs that it was not fitted to, and a wrong one as the control."""

from dataclasses import replace

import pytest

from backends.simulator.measurements import MeasuredRequest, read
from backends.simulator.profiles import DATA, PROFILES
from backends.simulator.validate import ValidationSlo, crossing, figures, halves, saturated, worst

SHAPE = PROFILES["h200-llama-3.1-8b-fp8"].shape


@pytest.fixture(scope="module")
def runs():
    return read(DATA / "h200_llama8b_fp8_requests.csv.gz")


def test_every_other_run_is_held_out(runs):
    fitted, held_out = halves(runs)
    assert (list(fitted), held_out) == (["1", "10", "50", "100"], ["5", "25", "75"])


def test_the_shipped_model_keeps_every_bar(runs):
    found = figures(SHAPE, runs, halves(runs)[1])
    assert [finding for finding in found if not finding.good] == []
    assert {finding.name for finding in found if finding.held_out} == {
        "TTFT p50", "TPOT p50", "output tokens/s", "saturation", "SLO broken from",
    }  # fmt: skip
    judged = [
        finding.run for finding in found if finding.name == "TTFT p50" and finding.bar is not None
    ]
    assert judged == ["1", "5", "10", "25"], "up to 0.8 of saturation"


def test_its_linear_step_alone_does_not(runs):
    """The negative control: what the simulated engine was before launches and streams counted."""
    found = figures(replace(SHAPE, pace=None), runs, halves(runs)[1])
    beyond = {(finding.run, finding.name) for finding in found if not finding.good}
    assert ("25", "TTFT p50") in beyond
    assert ("50", "TPOT p50") in beyond
    assert worst(found)[0].error == max(
        (finding.error for finding in found if finding.bar), key=abs
    )


def test_where_a_promise_breaks_lies_between_two_rates():
    def run(slow):
        return [
            MeasuredRequest(0.0, 9, 2, 0.1 if index >= slow else 9.0, 9.1) for index in range(100)
        ]

    rates = {"10": 10.0, "20": 20.0}
    promise = ValidationSlo(1.0, 10.0, 0.99)
    assert crossing({"10": run(0), "20": run(2)}, rates, promise) == pytest.approx(15.0)
    assert crossing({"10": run(0), "20": run(1)}, rates, promise) is None
    assert crossing({"10": run(5), "20": run(5)}, rates, promise) is None


def test_a_run_that_asks_for_more_than_is_served_is_saturated():
    def run(rate, ends_s):
        return [MeasuredRequest(n / rate, 100, 10, 0.1, ends_s - n / rate) for n in range(40)]

    assert saturated({"20": run(20, 4.0)})  # of 2 s, served in 4
    assert not saturated({"20": run(20, 2.2)})
    assert saturated({"4": run(4, 10.5), "20": run(20, 4.0)})
    assert saturated({"all": run(20, 2.2)})  # no rate is said
