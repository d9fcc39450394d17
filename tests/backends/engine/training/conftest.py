"""A corpus of a few modules, made as the real one is."""

import json
import lzma
from dataclasses import asdict
from pathlib import Path

import pytest

from backends.engine.training.corpus import HELD_OUT_OF, Document


@pytest.fixture(scope="session")
def small_corpus(tmp_path_factory) -> Path:
    """Of each kind some to learn and some held out; words that repeat, so that they are learned."""
    path = tmp_path_factory.mktemp("corpus") / "corpus.jsonl.xz"
    text = "def read(path): return path.read_text()  # the text of a file\n" * 40
    found = [
        Document(kind, f"m{place}", text, "What does read do?", held_out=place % HELD_OUT_OF == 0)
        for kind in ("chat", "topic", "source")
        for place in range(HELD_OUT_OF)
    ]
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(finding)) + "\n" for finding in found)
    return path
