"""Layouts that a model cannot be split into."""

import json

from backends.engine.catalog import find_gpu
from backends.engine.modelconfig import read_model
from backends.engine.plan import plan_model
from backends.engine.planning.question import ParallelLayout, PlanRequest
from backends.engine.planning.refusals import refusals

QWEN_7B = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28,
    "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
    "max_position_embeddings": 32768, "torch_dtype": "bfloat16",
}  # fmt: skip


def model_of(folder, **more):
    (folder / "config.json").write_text(json.dumps(QWEN_7B | more))
    return read_model(folder)


def test_heads_and_kv_heads_must_divide_by_a_layers_gpus(tmp_path):
    model = model_of(tmp_path)
    assert refusals(model, ParallelLayout(4)) == ()
    assert refusals(model, ParallelLayout(8)) == (
        "vLLM refuses this: 28 attention heads do not divide by 8 GPUs",
    )
    assert refusals(model, ParallelLayout(14)) == (
        "vLLM refuses this: 4 kv heads do not divide by 14 GPUs",
    )


def test_a_stage_has_at_least_one_layer(tmp_path):
    model = model_of(tmp_path, num_hidden_layers=4)
    assert refusals(model, ParallelLayout(1, 4)) == ()
    (said,) = refusals(model, ParallelLayout(1, 8))
    assert said == "4 layers cannot be 8 stages: some would have none"


def test_what_vllm_refuses_is_neither_chosen_nor_compared_nor_given_flags(tmp_path):
    model = model_of(tmp_path)
    wide = plan_model(model, (find_gpu("T4"),), PlanRequest(tensor_parallel=8))
    assert wide.flags == ()
    assert any("28 attention heads" in words for words in wide.warnings)
    assert "TP8" not in {item.layout for item in wide.scaling}
    assert {"TP4", "TP4 x PP2"} <= {item.layout for item in wide.scaling}

    long = plan_model(model, (find_gpu("T4"),), PlanRequest(context_tokens=1_500_000))
    assert long.gpus == 4, "the widest that vLLM starts"
    assert not long.fits
