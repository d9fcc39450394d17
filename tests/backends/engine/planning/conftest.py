"""Published shapes, and plans of them: `planned(shape, "H100", load=Load(32))`."""

import json

import pytest

from backends.engine.catalog import find_gpu
from backends.engine.modelconfig import read_model
from backends.engine.plan import plan_model
from backends.engine.planning.question import PlanRequest

SEVENTY = {
    "model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
SEVEN = SEVENTY | {
    "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32,
}  # fmt: skip
EIGHT = SEVEN | {"intermediate_size": 14336, "num_key_value_heads": 8, "vocab_size": 128256}
MIXTURE = EIGHT | {
    "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 32000,
}  # fmt: skip
FP8 = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}


@pytest.fixture
def shapes():
    return {"70b": SEVENTY, "70b-fp8": SEVENTY | FP8, "7b": SEVEN, "8b": EIGHT, "moe": MIXTURE}


@pytest.fixture
def model(tmp_path, shapes):
    def make(shape):
        folder = tmp_path / shape
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(shapes[shape]))
        return read_model(folder)

    return make


@pytest.fixture
def planned(model):
    def make(shape, *gpus, **question):
        return plan_model(
            model(shape), [find_gpu(name) for name in gpus or ("H200",)], PlanRequest(**question)
        )

    return make
