"""The explanation says the same as the decision, in each of its forms."""

import json
import math

import pytest

from router import explain
from router.decide import decide
from router.types import InfeasibleAction, Slo

FULL = {"kv_used_tokens": 98_000.0}


@pytest.fixture(scope="session")
def spilled(ask, rule, own, api):
    return decide(ask(), rule(), [own(FULL), own(name="pool:llama/1"), api()])


def test_short_names_kind_reason_and_numbers(ask, rule, own, api, spilled):
    assert explain.short(spilled) == "own:cheapest ttft=35ms kv=0.05 z=0.13"
    paid = decide(ask(), rule(), [api()])
    assert explain.short(paid) == "api:only ttft=300ms miss=0.07"
    refused = decide(ask(), rule(), [own(FULL)])
    assert explain.short(refused) == "none:kv_headroom otherwise=reject"


def test_short_leaves_out_what_is_not_finite(ask, rule, own):
    policy = rule(slo=Slo(), kv_headroom_floor=1.0, otherwise=InfeasibleAction.BEST_EFFORT)
    assert " z=" not in explain.short(decide(ask(), policy, [own({"step": None})]))


def test_the_dict_is_json_with_every_candidate(ask, rule, own, spilled):
    document = json.loads(json.dumps(explain.as_dict(spilled), allow_nan=False))
    assert document["chosen"] == "pool:llama/1"
    assert document["order"] == ["pool:llama/1", "openai/small"]
    bounds = {verdict.candidate.name: verdict.candidate.bound_pusd for verdict in spilled.verdicts}
    assert {entry["name"]: entry["bound_pusd"] for entry in document["candidates"]} == bounds
    by_name = {entry["name"]: entry for entry in document["candidates"]}
    assert by_name["pool:llama/0"]["reason"] == "kv_headroom"
    assert not by_name["pool:llama/0"]["feasible"]
    assert "would leave" in by_name["pool:llama/0"]["detail"]
    assert by_name["openai/small"]["miss_probability"] == pytest.approx(0.0722, abs=1e-3)
    stuck = decide(ask(), rule(), [own({"prefill_rate_tokens_per_s": 1e6})])
    assert stuck.verdicts[0].tpot_ms == math.inf
    entry = explain.as_dict(stuck)["candidates"][0]
    assert (entry["tpot_ms"], entry["reason"]) == (None, "tpot")
    assert explain.as_dict(stuck)["chosen"] is None


def test_the_table_marks_the_chosen_and_gives_the_rejected_their_words(ask, rule, own, spilled):
    head, titles, *rows = explain.as_lines(spilled)
    assert head == f"policy p: {explain.short(spilled)}"
    assert titles.split()[:2] == ["candidate", "answer"]
    assert titles.endswith("most uUSD")
    most = spilled.first_choice.candidate.bound_pusd
    assert rows[0].rstrip().endswith("-" if most is None else f"{most / 1e6:.1f}")
    assert [row[0] for row in rows] == ["*", " ", " "]
    assert rows[0].split()[1:3] == ["pool:llama/1", "cheapest"]
    assert "kv_headroom" in rows[2]
    assert rows[2].endswith("floor 0.1")
    refused = explain.as_lines(decide(ask(), rule(), [own(FULL)]))
    assert refused[-1] == "the policy rejects it (`otherwise: reject`)"
    assert refused[0].startswith("policy p: no target is feasible: ")
    assert "*" not in refused[2]


def test_a_cap_on_the_answer_is_told_in_each_form(ask, rule, own, api):
    decision = decide(ask(max_tokens=None), rule(), [own(), api(output_cap=3000)])
    found = {candidate["name"]: candidate for candidate in explain.as_dict(decision)["candidates"]}
    assert found["openai/small"]["output_cap_tokens"] == 3000
    assert found["pool:llama/0"]["output_cap_tokens"] is None
    *_, free, capped = explain.as_lines(decision)
    assert capped.endswith("capped at 3000 output tokens")
    assert "capped" not in free


def test_packing_is_offered_here(ask, rule, spilled):
    packed = explain.pack(ask(), rule(), spilled)
    assert explain.unpack(packed)["candidates"][0]["name"] == "pool:llama/1"


def test_the_header_tells_of_the_cache_that_is_used_or_left(ask, rule, own, api) -> None:
    warm = api(name="a/m", cached_tokens=12_000, cache_saves_pusd=13_500_000_000)
    cold = api(name="b/m", expected_pusd=1)
    used, left = (decide(ask(), rule(), offered) for offered in ([warm], [warm, cold]))
    assert explain.short(used).endswith(" cached=12000")
    assert left.first_choice.candidate is cold
    assert explain.short(left).endswith(" leaves=12000@a/m($0.0135)")
    assert "leaves" not in explain.short(decide(ask(), rule(), [cold, own()]))
