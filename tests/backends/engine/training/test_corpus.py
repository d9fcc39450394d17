"""What the shipped model learns from, out of a library of two modules and of this Python's own."""

import json
import lzma
from pathlib import Path

import pytest

from backends.engine.training import corpus

MODULE = '''"""Reads what was written, in the order in which it was written."""

def read(path, *, size=-1):
    """Give the text of a file, or its first `size` letters."""
    return path.read_text()[:size]


def _hidden():
    """Nobody asks for what is not public."""
'''


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[corpus.Document]:
    library: Path = tmp_path_factory.mktemp("lib")
    for name in ("reader.py", "test/test_reader.py", "site-packages/other.py", "pkg/__init__.py"):
        path = library / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(MODULE)
    return list(corpus.documents(library, seed=0))


def test_modules_are_learned_and_asked_about(found):
    sources = {finding.name for finding in found if finding.kind == "source"}
    assert sources == {"reader", "pkg", "test.test_reader"}, "no package that somebody installed"
    chats = [finding for finding in found if finding.kind == "chat" and finding.name == "reader"]
    assert len(chats) == 6, "two questions about the module, four about its function"
    assert any("`reader.read(path, *, size=-1)`" in chat.text for chat in chats) or any(
        "reader.read" in chat.question for chat in chats
    )
    assert not any("hidden" in finding.question for finding in found)
    assert not any(finding.kind == "chat" and finding.name.startswith("test.") for finding in found)


def test_chapters_builtins_and_small_talk_are_there(found):
    assert any(finding.kind == "topic" and finding.name == "for" for finding in found)
    assert any("`len`" in finding.text or " len" in finding.question for finding in found)
    assert any(finding.question == "Hello" and "Python" in finding.text for finding in found)


def test_a_module_is_held_out_whole(found):
    for name in {finding.name for finding in found}:
        assert len({finding.held_out for finding in found if finding.name == name}) == 1
    kept = sum(finding.held_out for finding in found if finding.kind == "chat")
    assert 0 < kept < len(found) / 5


def test_the_same_seed_gives_the_same_corpus(found, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(corpus, "documents", lambda _library, _seed: iter(found[:9]))
    assert corpus.main([str(tmp_path / "c.xz")]) == 0
    assert "9 documents" in capsys.readouterr().out
    with lzma.open(tmp_path / "c.xz", "rt") as file:
        assert [json.loads(line)["name"] for line in file] == [
            finding.name for finding in found[:9]
        ]
