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
        ({"hidden_size": 1}, ": `model_type` is missing; known are llama"),
        ({"model_type": "llama", "hidden_size": 1}, "num_hidden_layers is missing"),
        (LLAMA_8B | {"hidden_size": "wide"}, "hidden_size is 'wide'; a whole number above 0"),
        (LLAMA_8B | {"num_attention_heads": 0}, "num_attention_heads is 0; a whole number above 0"),
        (LLAMA_8B | {"quantization_config": {"quant_method": "exl9"}}, "exl9"),
    ],
)
def test_what_is_not_known_is_refused_with_the_reason(tmp_path, config, message):
    with pytest.raises(UnsupportedModel, match=message):
        read_model(write(tmp_path, config))


def test_a_directory_without_a_model_is_refused(tmp_path):
    with pytest.raises(UnsupportedModel, match=r"is not a model: it has no config\.json"):
        read_model(tmp_path)
    with pytest.raises(UnsupportedModel, match="nowhere does not exist"):
        read_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", b"weights", "is not JSON"),
        ("config.json", b"[]", "must hold a JSON object"),
        ("config.json", b"\xff\xfe", "is not JSON"),
        ("config.json", b"[" * 100_000, "is not JSON: it is nested too deep"),
        ("model.safetensors", b"", "is not a safetensors file"),
        ("model.safetensors", b"version https://git-lfs.github.com/spec/v1", "not a safetensors"),
        ("model.safetensors", (9).to_bytes(8, "little") + b"{", "is not a safetensors file"),
        ("model.safetensors", (2).to_bytes(8, "little") + b"[]", "is not a safetensors file"),
        ("model.safetensors", (8).to_bytes(8, "little") + b'{"a": 1}', "is not a safetensors file"),
        ("config.json", b"GGUF" + bytes(64), "config.json is GGUF, which cannot be planned"),
        ("model.safetensors.index.json", b"{}", "is not an index of safetensors files"),
        ("model.safetensors.index.json", b'{"weight_map": 1}', "is not an index of safetensors"),
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
        ({"max_position_embeddings": -1}, "max_position_embeddings is -1; a whole number from 0"),
        ({"num_experts": 8}, "num_experts_per_tok is missing"),
        ({"num_experts": -8, "num_experts_per_tok": 2}, "num_experts is -8; a whole number from 0"),
        ({"num_local_experts": 8, "num_experts_per_tok": 9}, "num_experts_per_tok is 9; of 8 exp"),
        ({"num_local_experts": 8, "num_experts_per_tok": 0}, "num_experts_per_tok is 0; of 8 exp"),
        ({"model_type": ["llama"]}, "models of the type `['llama']` cannot be planned"),
        ({"text_config": "llama"}, "text_config is 'llama'; an object is needed"),
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
        *(
            (
                {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": g}},
                "quantization_config.config_groups: each group is an object",
            )
            for g in ([4], {"g": 4}, {"g": {"weights": 4}}, {"g": {"weights": {"num_bits": -4}}})
        ),
    ],
)
def test_numbers_that_no_engine_could_load_are_told_by_their_field(tmp_path, changes, said):
    (tmp_path / "config.json").write_text(json.dumps(SOUND))
    read_model(tmp_path)  # the control: without the change it is a model
    (tmp_path / "config.json").write_text(json.dumps(SOUND | changes))
    with pytest.raises(UnsupportedModel, match=re.escape(said)):
        read_model(tmp_path)


def tensors(folder: Path, name: str, size: int) -> None:
    header = json.dumps({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    (folder / name).write_bytes(len(header).to_bytes(8, "little") + header)


def index(folder: Path, *names: str, **metadata: object) -> None:
    document = {"metadata": metadata, "weight_map": {name: name for name in names}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(document))


def test_weights_that_lie_there_a_second_time_count_once(tmp_path):
    """Mistral's models come in two layouts beside each other."""
    write(tmp_path, SOUND)
    for name, size in (("model-1.safetensors", 600), ("model-2.safetensors", 400)):
        tensors(tmp_path, name, size)
    assert read_model(tmp_path).stored_bytes == 1000
    tensors(tmp_path, "consolidated.safetensors", 1000)
    assert read_model(tmp_path).stored_bytes == 1000
    tensors(tmp_path, "unused.safetensors", 5000)
    index(tmp_path, "model-1.safetensors", "model-2.safetensors", total_size=1000)
    assert read_model(tmp_path).stored_bytes == 1000
    for name in ("model-1.safetensors", "model-2.safetensors", "unused.safetensors"):
        (tmp_path / name).unlink()
    (tmp_path / "model.safetensors.index.json").unlink()
    assert read_model(tmp_path).stored_bytes == 1000, "alone it is the model"


def test_of_weights_that_are_not_all_there_the_index_says_the_sum(tmp_path):
    """A download that goes on, or has not begun; without a sum the shapes count."""
    write(tmp_path, SOUND)
    index(tmp_path, "model-1.safetensors", "model-2.safetensors", total_size=1000)
    assert read_model(tmp_path).stored_bytes == 1000
    tensors(tmp_path, "model-1.safetensors", 600)
    assert read_model(tmp_path).stored_bytes == 1000
    index(tmp_path, "model-1.safetensors", "model-2.safetensors")
    assert read_model(tmp_path).stored_bytes is None


def test_gguf_is_told_with_what_to_name_instead(tmp_path):
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"GGUF" + bytes(64))
    for place in (weights, tmp_path):
        with pytest.raises(
            UnsupportedModel, match=r"GGUF, .*: name the folder of the original model"
        ):
            read_model(place)


def test_what_is_no_config_is_not_read_to_its_end(tmp_path):
    """Weights of 2 TB named by mistake: a sparse file."""
    with (tmp_path / "weights.bin").open("wb") as file:
        file.truncate(2 << 40)
    with pytest.raises(
        UnsupportedModel, match=r"is not a config\.json: it is larger than 100,000,000 bytes"
    ):
        read_model(tmp_path / "weights.bin")


def test_a_model_in_the_folder_where_one_stands_has_its_name(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    write(tmp_path / "tiny", SOUND)
    monkeypatch.chdir(tmp_path / "tiny")
    assert read_model(Path()).name == "tiny"


@pytest.mark.parametrize(("sequences", "left_out"), [(1, 1.0), (2, 0.75), (32, 0.75**31)])
def test_each_token_chooses_its_own_experts(tmp_path, sequences, left_out):
    model = read_model(write(tmp_path, MIXTRAL))
    idle = 2 * (model.parameters - model.active_parameters)
    read = model.weight_bytes - idle * left_out
    assert model.read_weight_bytes(sequences) == pytest.approx(read)


def test_a_dense_model_is_read_whole(tmp_path):
    model = read_model(write(tmp_path, LLAMA_8B))
    assert model.read_weight_bytes(1) == model.read_weight_bytes(64) == model.weight_bytes
