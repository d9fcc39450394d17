"""Figures of a what-if follow from its outcomes, and add up."""

import pytest

from ledger.money import PUSD_PER_USD


def test_dollars_are_fixed_and_those_of_apis(busy) -> None:
    for result in busy["results"]:
        dollars = result["dollars"]
        assert dollars["fixed_usd"] == pytest.approx(3.0 * busy["traffic"]["seconds"] / 3600)
        assert dollars["total_usd"] == dollars["fixed_usd"] + dollars["api_usd"]
        api = next(each for each in result["targets"] if each["target"] == "openai/mini")
        pusd = 150_000 * api["input"] + 600_000 * api["output"]
        assert dollars["api_usd"] == pytest.approx(pusd / PUSD_PER_USD)
        assert result["spill"]["spilled"] == api["requests"]
        assert result["spill"]["spilled_value_usd"] == pytest.approx(dollars["api_usd"])
        assert sum(each["requests"] for each in result["targets"]) == 1200


def test_promises_are_counted_by_class(busy) -> None:
    new, old = busy["results"]
    (loose,), (tight,) = new["classes"], old["classes"]
    assert (loose["class"], tight["class"]) == ("loose", "tight")
    assert tight["attainment_own"] >= 0.97
    assert tight["attainment_api"] == pytest.approx(0.62, abs=0.08)
    served, spilled = tight["requests"], old["spill"]["spilled"]
    kept = (served - spilled) * tight["attainment_own"] + spilled * tight["attainment_api"]
    assert tight["attainment"] == pytest.approx(kept / served)
    assert loose["ttft_ms_p95"] > tight["ttft_ms_p50"]


def test_load_over_time_has_both_ends(busy) -> None:
    load = busy["results"][1]["load"]
    assert {item["pool"] for item in load} == {"chat"}
    assert load[0]["at_s"] == 0.0
    assert 0.1 < max(item["kv_ratio"] for item in load) <= 1.0
    assert max(item["running"] for item in load) > 20


def test_what_moved_adds_up_to_the_difference(busy) -> None:
    new, old = busy["results"]
    differs = busy["disagreement"]
    assert differs["moved"] == sum(flow["requests"] for flow in differs["flows"]) > 0
    change = sum(flow["api_usd_change"] for flow in differs["flows"])
    assert change == pytest.approx(new["dollars"]["api_usd"] - old["dollars"]["api_usd"])
    for flow in differs["flows"]:
        assert flow["from"] != flow["to"]
        assert flow["examples"]
