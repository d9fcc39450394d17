"""Floors of time by layout, in hand-made arithmetic."""

import pytest

from backends.engine.loadfloor import UserLoad
from backends.engine.planning.speed import OVER_FLOORS


def test_stages_hold_the_model_and_make_one_request_no_faster(planned):
    """A token passes all stages, one after the other; only a layer that is split is read faster."""
    plan = planned("70b-fp8", tensor_parallel=1)
    stages = planned("70b-fp8", tensor_parallel=1, pipeline_parallel=2)
    split = planned("70b-fp8", tensor_parallel=2)
    assert (stages.gpus, split.gpus) == (2, 2)
    assert stages["decode_floor_s"] == pytest.approx(plan["decode_floor_s"])
    assert split["decode_floor_s"] == pytest.approx(plan["decode_floor_s"] / 2)
    assert stages["kv_tokens"] == pytest.approx(split["kv_tokens"], rel=0.01)
    assert stages.flags[-2:] == ("--pipeline-parallel-size", "2")
    assert "allreduce_token_s" not in {figure.name for figure in stages.figures}


def test_bytes_over_links_are_two_rings_a_layer(planned):
    """Of 4 GPUs each sends 2 x 3/4 of 8,192 x 2 bytes, 160 times, at 450 GB/s."""
    made = planned("70b-fp8", tensor_parallel=4, prompt_tokens=1000)
    token_s = 160 * 1.5 * 8192 * 2 / 450e9
    assert made["allreduce_token_s"] == pytest.approx(token_s)
    assert made["allreduce_prefill_s"] == pytest.approx(1000 * token_s)


def test_many_users_fill_a_pipeline_and_pay_its_reads(planned):
    """Two groups of 16 read all weights each: by hand."""
    made = planned("70b-fp8", tensor_parallel=1, pipeline_parallel=2, load=UserLoad(32, 512, 256))
    weights, cached = made["weight_bytes"], 32 * 640 * made["kv_bytes_per_token"]
    assert made["load_step_s"] == pytest.approx((2 * weights + cached) / (2 * 4.3e12))


def test_sequences_that_keep_the_promised_time_become_a_flag(planned):
    made = planned("70b-fp8", "H200", tpot_ms=30.0, load=UserLoad(32, 512, 256))
    each_s = 640 * 327_680 / 4.3e12
    within = int((0.030 - made["decode_floor_s"]) / each_s)
    assert made["sequences_in_promise"] == min(within, made["kv_tokens"] // 768)
    place = made.flags.index("--max-num-seqs")
    assert made.flags[place + 1] == f"{made['sequences_in_promise']:g}"
    assert "--max-num-seqs" not in planned("70b-fp8", "H200", tpot_ms=30.0).flags


@pytest.mark.parametrize(
    ("tokens", "context", "took_s"),
    [(960, 32 * 400, 0.0288), (2048, 32 * 400, 0.0522), (8192, 248 * 1030, 0.1993)],
)
def test_a_step_full_of_prompts_takes_what_was_measured(planned, shapes, tokens, context, took_s):
    """`tests/bench/results/h200-one-2026-11-23.json`: gaps beside bursts, at overload."""
    shapes["8b"] |= {"vocab_size": 32_000}
    made = planned("8b", "H200")
    read_s = context * made["kv_bytes_per_token"] / (made["bandwidth"] * 1e12)
    floor_s = made["decode_floor_s"] + read_s + tokens * made["prefill_floor_s"] / 512
    assert OVER_FLOORS * floor_s == pytest.approx(took_s, rel=0.06)


@pytest.mark.parametrize("tpot_ms", [25.0, 30.0, 50.0])
def test_no_more_sequences_than_a_step_has_tokens(planned, tpot_ms):
    """vLLM does not start otherwise: `max_num_batched_tokens` must be at least `max_num_seqs`."""
    made = planned("70b", "H200", tpot_ms=tpot_ms, load=UserLoad(32, 512, 256))
    if made["prefill_budget_tokens"]:
        assert made["sequences_in_promise"] <= made["prefill_budget_tokens"]
    small = planned("8b", "H200", tpot_ms=50.0, load=UserLoad(32, 512, 256))
    assert small["sequences_in_promise"] == small["prefill_budget_tokens"] > 0
    said = {figure.name: figure.formula for figure in small.figures}
    assert said["sequences_in_promise"].startswith("one for each token of prefill_budget_tokens")


def test_many_users_of_a_mixture_read_the_experts_that_they_choose(planned):
    """Each token takes 2 of 8: one user reads a quarter of them, 32 leave none out."""
    item, many = (planned("moe", load=UserLoad(users, 512, 256)) for users in (1, 32))
    idle = 2 * (item["parameters"] - item["active_parameters"])
    for made, users in ((item, 1), (many, 32)):
        read = made["weight_bytes"] - idle * 0.75 ** (users - 1)
        cached = users * 640 * made["kv_bytes_per_token"]
        assert made["load_step_s"] == pytest.approx((read + cached) / 4.3e12)
    assert item["decode_floor_s"] == pytest.approx((item["weight_bytes"] - idle) / 4.3e12)
    staged = planned("moe", tensor_parallel=1, pipeline_parallel=2, load=UserLoad(4, 512, 256))
    read = 2 * (staged["weight_bytes"] - idle * 0.75)  # two groups of two
    cached = 4 * 640 * staged["kv_bytes_per_token"]
    assert staged["load_step_s"] == pytest.approx((read + cached) / (2 * 4.3e12))


def test_a_step_with_prompts_reads_all_experts(planned):
    made = planned("moe", tpot_ms=50.0)
    left_s = (
        0.050 / OVER_FLOORS
        - made["weight_bytes"] / 4.3e12
        - made["kv_tokens"] / 2 * made["kv_bytes_per_token"] / 4.3e12
    )
    most = left_s / (made["prefill_floor_s"] / 512)
    assert most - 64 < made["prefill_budget_tokens"] <= most
