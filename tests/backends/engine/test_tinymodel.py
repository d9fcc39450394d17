"""The generated checkpoint: its format, its size, and the biases that make answers end."""

import json
import struct

import pytest

from backends.engine.tinymodel import (
    EMBEDDING,
    TinyModelShape,
    is_complete,
    main,
    make,
    token_biases,
)
from backends.engine.tinytokenizer import train


def header(path) -> dict:
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    found = json.loads(data[8 : 8 + length])
    found["__body__"] = len(data) - 8 - length
    return found


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    item, two, other = (
        make(tmp_path / name, seed=seed).directory / "model.safetensors"
        for name, seed in (("one", 1), ("two", 1), ("other", 2))
    )
    assert item.read_bytes() == two.read_bytes() != other.read_bytes()


def test_tensors_fill_the_file_without_gaps(tmp_path):
    tensors = header(make(tmp_path).directory / "model.safetensors")
    body, _ = tensors.pop("__body__"), tensors.pop("__metadata__")
    end = 0
    for tensor in tensors.values():
        start, stop = tensor["data_offsets"]
        count = 1
        for size in tensor["shape"]:
            count *= size
        assert (start, stop - start) == (end, count * 2)
        end = stop
    assert end == body
    assert len(tensors) == 2 + 1 + 2 * 9


def test_shape_and_config_agree(tmp_path):
    shape = TinyModelShape(layers=1, hidden=64, heads=2, kv_heads=1, head_dim=32)
    made = make(tmp_path, shape=shape)
    config = json.loads((tmp_path / "config.json").read_text())
    tensors = header(tmp_path / "model.safetensors")
    assert config["num_hidden_layers"] == 1
    assert tensors["model.layers.0.self_attn.k_proj.weight"]["shape"] == [32, 64]
    assert tensors["model.embed_tokens.weight"]["shape"] == [made.vocabulary, 64]
    assert config["vocab_size"] == made.vocabulary


def test_an_embedding_model_has_no_head(tmp_path):
    make(tmp_path, shape=EMBEDDING)
    assert "lm_head.weight" not in header(tmp_path / "model.safetensors")
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["LlamaModel"]


def test_a_model_is_complete_only_with_its_config(tmp_path):
    assert not is_complete(tmp_path)
    make(tmp_path)
    assert is_complete(tmp_path)
    (tmp_path / "config.json").unlink()
    assert not is_complete(tmp_path)


@pytest.mark.parametrize(
    ("token", "low", "high"),
    [
        ("Ġgateway", 0.0, 0.0),
        ("<|im_end|>", 1.0, 5.0),
        ("<|im_start|>", -12.0, -12.0),
        ("Ċ", -12.0, -12.0),
        ("Ġ", -12.0, -12.0),
        ("é", -12.0, -12.0),
        ("7", -4.0, -4.0),
    ],
)
def test_biases_keep_noise_readable_and_answers_finite(token, low, high):
    vocabulary = train()
    assert low <= token_biases(vocabulary)[vocabulary.id_of(token)] <= high


def test_as_a_command_it_prints_what_it_made(tmp_path, capsys):
    assert main([str(tmp_path / "m"), "--embedding"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["directory"] == str(tmp_path / "m")
    assert printed["parameters"] > 100_000
