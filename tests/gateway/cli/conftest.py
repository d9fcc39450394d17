"""`breakeven engine ...` as a fixture, and a model's shape to plan with."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from gateway.cli.app import app

MODEL = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 8192, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def engine() -> Callable[..., Result]:
    def invoke(*words: object) -> Result:
        return CliRunner().invoke(app, ["engine", *(str(word) for word in words)])

    return invoke


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    return tmp_path
