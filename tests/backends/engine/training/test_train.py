"""The recipe on the engine's own torch: it learns, repeats, and writes what Transformers loads."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
pytestmark = [pytest.mark.part("vllm"), pytest.mark.long]


@pytest.fixture
def train(engine_python: Path, small_corpus: Path, tmp_path: Path):
    def make(name: str, *more: str) -> Path:
        words = ["-m", "backends.engine.training.train", "--corpus", str(small_corpus)]
        made = tmp_path / name
        subprocess.run(
            [str(engine_python), *words, "--out", str(made), *more], cwd=ROOT, check=True
        )
        return made

    return make


def test_the_same_seed_and_steps_give_the_same_weights(train):
    item, other = (train(name, "--steps", "4") for name in ("one", "other"))
    weights = [(made / "model.safetensors").read_bytes() for made in (item, other)]
    assert weights[0] == weights[1]
    figures = json.loads((item / "training.json").read_text())
    assert figures["steps"] == 4
    assert figures["bytes"] < 6e6
    different = train("third", "--steps", "4", "--seed", "1")
    assert (different / "model.safetensors").read_bytes() != weights[0]


def test_seconds_are_a_budget_in_which_it_learns(train):
    figures = json.loads((train("timed", "--seconds", "20") / "training.json").read_text())
    assert figures["perplexity"]["source"] < 100, "of 3,072 tokens"
    assert figures["seconds"] >= 20
