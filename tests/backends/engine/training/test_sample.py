"""A checkpoint's answers, shown by Transformers."""

import subprocess
from pathlib import Path

import pytest

from backends.engine import tinymodel

ROOT = Path(__file__).parents[4]


@pytest.mark.part("vllm")
@pytest.mark.long
def test_each_question_has_an_answer(engine_python: Path, tmp_path: Path):
    model = tinymodel.make(tmp_path / "tiny").directory
    words = [str(engine_python), "-m", "backends.engine.training.sample", str(model), "Hello"]
    said = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said.startswith('Hello\n    "')
