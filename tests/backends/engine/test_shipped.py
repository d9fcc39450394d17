"""The shipped model is whole, small, and what it says it is; it answers under tests/real."""

import json
import struct

from backends.engine import shipped

MOST_BYTES = 6_000_000


def test_it_is_a_whole_checkpoint_of_a_few_million_parameters():
    folder = shipped.DIRECTORY
    names = {path.name for path in folder.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    with (folder / "model.safetensors").open("rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
    header.pop("__metadata__")
    assert {item["dtype"] for item in header.values()} == {"BF16"}
    assert max(item["data_offsets"][1] for item in header.values()) // 2 > 2_000_000
    config = json.loads((folder / "config.json").read_text())
    assert config["tie_word_embeddings"]
    assert config["architectures"] == ["LlamaForCausalLM"]
    assert config["max_position_embeddings"] == shipped.CONTEXT_TOKENS


def test_it_has_learned():
    """Of modules that were held out; chance is the vocabulary's 3,072."""
    figures = json.loads((shipped.DIRECTORY / "training.json").read_text())
    assert figures["perplexity"]["source"] < 10
