"""Model arithmetic against published parameter counts and against a real checkpoint's bytes."""

import json
import re
from pathlib import Path

import pytest

from backends.engine import tinymodel
from backends.engine.modelconfig import UnsupportedModel, read_model

LLAMA_8B = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "torch_dtype": "bfloat16",
}  # fmt: skip
MISTRAL_7B = LLAMA_8B | {"model_type": "mistral", "vocab_size": 32000}
QWEN3_8B = {
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288,
    "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "vocab_size": 151936, "dtype": "bfloat16",
}  # fmt: skip
MIXTRAL = LLAMA_8B | {
    "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
}  # fmt: skip
QWEN3_MOE = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
    "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128,
    "num_experts_per_tok": 8,
}  # fmt: skip


def write(folder: Path, config: dict, **more: object) -> Path:
    (folder / "config.json").write_text(json.dumps(config | more))
    return folder


@pytest.mark.parametrize(
    ("config", "billions", "active_billions"),
    [
        (LLAMA_8B, 8.03, 8.03),
        (MISTRAL_7B, 7.25, 7.25),
        (QWEN3_8B, 8.19, 8.19),
        (MIXTRAL, 46.7, 12.9),
        (QWEN3_MOE, 30.5, 3.35),
    ],
    ids=["llama", "mistral", "qwen3", "mixtral", "qwen3-moe"],
)
def test_parameters_agree_with_what_is_published(tmp_path, config, billions, active_billions):
    model = read_model(write(tmp_path, config))
    assert model.parameters / 1e9 == pytest.approx(billions, rel=0.01)
    assert model.active_parameters / 1e9 == pytest.approx(active_billions, rel=0.01)


def test_kv_bytes_count_kv_heads_not_heads(tmp_path):
    model = read_model(write(tmp_path, LLAMA_8B))
    assert model.kv_bytes_per_token() == 2 * 32 * 8 * 128 * 2 == 131072
    assert model.kv_bytes_per_token(element_bytes=1) == 65536


@pytest.mark.parametrize(
    ("quantization", "bits", "compute"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4.25, "bf16"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, 4.125, "bf16"),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True}, 8.0, "bf16"),
        ({"quant_method": "fp8", "activation_scheme": "dynamic"}, 8.0, "fp8"),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 8, "type": "int"},
                        "input_activations": {"num_bits": 8},
                    }
                },
            },
            8.0,
            "int8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 8, "type": "float"},
                        "input_activations": {"num_bits": 8},
                    }
                },
            },
            8.0,
            "fp8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "group_size": 128}}},
            },
            4.125,
            "bf16",
        ),
    ],
)
def test_quantized_weights(tmp_path, quantization, bits, compute):
    model = read_model(write(tmp_path, LLAMA_8B, quantization_config=quantization))
    assert (model.weights.bits, model.weights.compute) == (bits, compute)
    tables = 2 * 128256 * 4096 * 2
    assert model.weight_bytes == pytest.approx(model.linear_parameters * bits / 8 + tables)


def test_tied_tables_count_once(tmp_path):
    untied = read_model(write(tmp_path, LLAMA_8B)).table_parameters
    tied = read_model(write(tmp_path, LLAMA_8B, tie_word_embeddings=True)).table_parameters
    assert untied == 2 * tied


def test_stored_files_win_over_shapes_and_agree_with_them(tmp_path):
    made = tinymodel.make(tmp_path / "model")
    model = read_model(made.directory)
    assert model.stored_bytes == model.weight_bytes == made.parameters * 2
    # Shapes count everything but the norms: five vectors of the hidden size.
    assert model.parameters == made.parameters - 5 * model.hidden


def test_a_model_within_a_model_is_read(tmp_path):
    config = {"model_type": "llava", "text_config": LLAMA_8B}
    assert read_model(write(tmp_path, config)).layers == 32


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "t5"}, "models of the type `t5` cannot be planned; known are llama"),
        ({"hidden_size": 1}, "is no model's: it has no `model_type`; known are llama"),
        ({"model_type": "llama", "hidden_size": 1}, "num_hidden_layers is missing"),
        (LLAMA_8B | {"hidden_size": "wide"}, "not a model's numbers"),
        (LLAMA_8B | {"num_attention_heads": 0}, "not a model's numbers"),
        (LLAMA_8B | {"quantization_config": {"quant_method": "exl9"}}, "exl9"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(tmp_path, config, message):
    with pytest.raises(UnsupportedModel, match=message):
        read_model(write(tmp_path, config))


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(UnsupportedModel, match=r"is no model: it has no config\.json"):
        read_model(tmp_path)
    with pytest.raises(UnsupportedModel, match="nowhere is not there"):
        read_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", b"weights", "is not JSON"),
        ("config.json", b"[]", "holds no JSON object"),
        ("config.json", b"\xff\xfe", "is not JSON"),
        ("config.json", b"[" * 100_000, "is not JSON: it is nested too deep"),
        ("model.safetensors", b"", "is not a safetensors file"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1", "not a safetensors"),
        ("model.safetensors", (9).to_bytes(8, "little") + b"{", "is not a safetensors file"),
    ],
)
def test_files_that_are_not_what_their_names_say_are_told(tmp_path, name, content, said):
    write(tmp_path, LLAMA_8B)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UnsupportedModel, match=said):
        read_model(tmp_path)


SOUND = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 100,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_attention_heads": 0}, "num_attention_heads is 0; a whole number above 0 is needed"),
        ({"num_hidden_layers": -3}, "num_hidden_layers is -3; a whole number"),
        ({"hidden_size": "64"}, "hidden_size is '64'; a whole number"),
        ({"vocab_size": True}, "vocab_size is True; a whole number"),
        ({"num_key_value_heads": 3}, "num_key_value_heads: 3 do not divide the 4 of num_att"),
        ({"hidden_size": 66}, "num_attention_heads: 4 do not divide the hidden_size of 66, and"),
        ({"torch_dtype": "float7"}, "torch_dtype is 'float7'; known are"),
        ({"quantization_config": "awq"}, "quantization_config is 'awq'; an object with a quant_"),
        (
            {"quantization_config": {"quant_method": "hqq"}},
            "config.json: quantization_config.quant_method is 'hqq'; known are awq, gptq, fp8",
        ),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": "x"}},
            "quantization_config.bits is 'x'; a whole number from 1 to 16 is needed",
        ),
        (
            {"quantization_config": {"quant_method": "awq", "bits": 0}},
            "quantization_config.bits is 0; a whole number",
        ),
    ],
)
def test_numbers_that_no_engine_could_load_are_told_by_their_field(tmp_path, changes, said):
    (tmp_path / "config.json").write_text(json.dumps(SOUND))
    read_model(tmp_path)  # the control: without the change it is a model
    (tmp_path / "config.json").write_text(json.dumps(SOUND | changes))
    with pytest.raises(UnsupportedModel, match=re.escape(said)):
        read_model(tmp_path)
