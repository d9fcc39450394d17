"""Sizing against what vLLM 0.25.1 reported and measured on one H200 (2026-11-20)."""

import json

import pytest

from backends.engine import tinymodel
from backends.engine.catalog import find_gpu
from backends.engine.modelconfig import read_model
from backends.engine.plan import EnginePlan, plan_model
from backends.engine.planning.question import PlanRequest

LLAMA_70B = {
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}


@pytest.fixture
def planned(tmp_path):
    def make(quantization=None, gpu="H200", **question) -> EnginePlan:
        more = {"quantization_config": quantization} if quantization else {}
        (tmp_path / "config.json").write_text(json.dumps(LLAMA_70B | more))
        return plan_model(read_model(tmp_path), (find_gpu(gpu),), PlanRequest(**question))

    return make


@pytest.mark.parametrize(
    ("quantization", "weight_bytes", "kv_tokens", "decode_s"),
    [(AWQ, 37.5e9, 291_424, 8.7e-3), (FP8, 69.5e9, 193_504, 16.2e-3)],
    ids=["awq", "fp8"],
)
def test_a_70b_on_an_h200(planned, quantization, weight_bytes, kv_tokens, decode_s):
    made = planned(quantization)
    assert made.fits
    assert made.gpus == 1
    assert made["kv_bytes_per_token"] == 327_680
    assert made["weight_bytes"] == pytest.approx(weight_bytes, rel=0.01)
    assert made["kv_tokens"] == pytest.approx(kv_tokens, rel=0.03)
    assert made["decode_floor_s"] == pytest.approx(decode_s, rel=0.01)


def test_prompts_in_a_step_leave_the_promised_time_for_the_next_token(planned):
    """50 ms are 38.5 by the floors, less 8.7 of weights and 9.9 of half a cache, 0.17 a token."""
    made = planned(AWQ, tpot_ms=50.0)
    left_s = (
        0.050 / 1.3
        - made["decode_floor_s"]
        - made["kv_tokens"] / 2 * 327_680 / (made["bandwidth"] * 1e12)
    )
    most = left_s / (made["prefill_floor_s"] / 512)
    assert most - 64 < made["prefill_budget_tokens"] <= most
    assert made["prefill_budget_tokens"] % 64 == 0
    assert made.flags[-2:] == (
        "--max-num-batched-tokens", f"{made['prefill_budget_tokens']:g}",
    )  # fmt: skip
    assert made.warnings == planned(AWQ).warnings
    assert "--max-num-batched-tokens" not in planned(AWQ).flags


def test_a_promise_that_no_step_keeps_is_said(planned):
    made = planned(AWQ, tpot_ms=10.0)
    assert made["prefill_budget_tokens"] == 0
    assert "--max-num-batched-tokens" not in made.flags
    assert made.warnings[-1].startswith("10 ms a token is not kept beside a cache that is half")


def test_prefill_floor_in_bf16(planned):
    assert planned(AWQ, prompt_tokens=512)["prefill_floor_s"] == pytest.approx(0.089, rel=0.01)


def test_fp8_prefill_is_faster_where_the_card_has_fp8(planned):
    assert planned(FP8)["prefill_floor_s"] < planned(AWQ)["prefill_floor_s"] / 2
    on_a100 = planned(FP8, "A100-80GB", tensor_parallel=2)
    assert on_a100.warnings == ("A100-80GB has no fp8 units: such weights save memory, not time",)


def test_bf16_takes_two_gpus_and_the_flags_say_so(planned):
    made = planned()
    assert made.gpus == 2
    assert made.flags[-2:] == ("--tensor-parallel-size", "2")


def test_too_little_memory_is_said_and_no_concurrency_is_promised(planned):
    made = planned(gpu="T4", tensor_parallel=1)
    assert not made.fits
    assert made["kv_tokens"] == 0
    assert made.warnings[0].startswith("does not fit: 1 x T4")
    with pytest.raises(StopIteration):
        made["concurrency"]


def test_tensor_parallelism_over_pcie_is_warned_about(planned):
    made = planned(FP8, "L40S")
    assert made.gpus == 2
    assert "PCIe 4 x16 only" in made.warnings[0]
    assert not planned(AWQ, "H100", tensor_parallel=2).warnings


def test_more_gpus_than_kv_heads_store_copies(planned):
    eight, sixteen = (planned(FP8, tensor_parallel=count) for count in (8, 16))
    assert sixteen["kv_tokens"] < eight["kv_tokens"] * 1.1
    assert "more than once" in sixteen.warnings[-1]


def test_heads_that_do_not_divide_are_said(planned):
    assert "refuses" in planned(AWQ, "H100", tensor_parallel=3).warnings[0]


def test_fp8_kv_doubles_the_tokens(planned):
    assert planned(AWQ, kv_dtype="fp8")["kv_tokens"] == pytest.approx(
        2 * planned(AWQ)["kv_tokens"], abs=2
    )


def test_concurrency_is_tokens_over_context(planned):
    made = planned(AWQ, context_tokens=2048)
    assert made["concurrency"] == made["kv_tokens"] // 2048
    # More sequences share one read of the weights, but each brings its own KV to read.
    assert made["output_ceiling_tokens_s"] < made["concurrency"] / made["decode_floor_s"]


def test_each_figure_shows_arithmetic_that_gives_it(planned):
    for figure in planned(FP8).figures:
        assert figure.formula
    kv = next(f for f in planned(FP8).figures if f.name == "kv_bytes_per_token")
    assert kv.formula == "2 (K and V) x 80 layers x 8 kv heads x 128 head_dim x 2 B"


def test_a_generated_checkpoint_is_planned_from_its_files(tmp_path):
    made = tinymodel.make(tmp_path / "tiny")
    result = plan_model(read_model(made.directory), (find_gpu("L4"),), PlanRequest())
    assert result["weight_bytes"] == made.parameters * 2
