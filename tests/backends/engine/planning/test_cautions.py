"""What a plan warns of."""

import pytest

from backends.engine.loadfloor import UserLoad


def test_layers_over_pcie_over_hosts_and_over_odd_stages_are_warned_about(planned):
    cards = planned("70b-fp8", "L40S")
    assert "PCIe 4 x16 only" in cards.warnings[0]
    assert "--gpus 1 --pipeline-parallel 2" in cards.warnings[0]
    assert not planned("70b-fp8", "L40S", tensor_parallel=1, pipeline_parallel=4).warnings

    wide = planned("70b-fp8", "H100", tensor_parallel=8, gpus_per_host=4)
    (crossing,) = wide.warnings
    assert crossing.startswith("tensor parallelism over 8 GPUs crosses hosts of 4")
    assert crossing.endswith("between hosts: --gpus 4 --pipeline-parallel 2")
    odd = planned("70b-fp8", "H100", tensor_parallel=2, pipeline_parallel=3)
    assert odd.warnings[0].startswith("80 layers do not divide by 3 stages")


def test_mixed_gpus_count_as_the_weakest_and_are_warned_about(planned):
    mixed = planned("70b-fp8", "H100", "L40S", tensor_parallel=2)
    weak = planned("70b-fp8", "L40S", "L40S", tensor_parallel=2)
    assert mixed.gpu == "H100 + L40S"
    assert weak.gpu == "L40S"
    for name in ("kv_tokens", "decode_floor_s", "prefill_floor_s", "allreduce_token_s"):
        assert mixed[name] == pytest.approx(weak[name]), name
    assert mixed.warnings[0].startswith("mixed GPUs (H100, L40S): each step waits for the slowest")
    assert not any("mixed" in words for words in weak.warnings)


def test_what_one_of_a_mixed_set_cannot_multiply_none_does(planned):
    made = planned("70b-fp8", "H100", "A100-80GB", tensor_parallel=2)
    assert any("no fp8 units" in words for words in made.warnings)


def test_a_cache_too_small_for_the_load_is_said_with_what_would_hold_it(planned):
    load = UserLoad(64, 2000, 500)
    cramped = planned("70b-fp8", "H100", tensor_parallel=1, load=load)
    assert "the KV cache holds 6 of 64 users" in cramped.warnings[0]
    assert "--kv-dtype fp8 holds 12" in cramped.warnings[0]
    halved = planned("70b-fp8", "H100", tensor_parallel=1, load=load, kv_dtype="fp8")
    assert "holds 12 of 64 users" in halved.warnings[0]
    assert "--kv-dtype" not in halved.warnings[0]


def test_more_context_than_the_model_has_is_warned_of(planned):
    assert "more than the 4,096 that" in " ".join(planned("8b", context_tokens=8192).warnings)
    assert "was made for" not in " ".join(planned("8b", context_tokens=4096).warnings)
