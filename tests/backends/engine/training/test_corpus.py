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
    sources = {one.name for one in found if one.kind == "source"}
    assert sources == {"reader", "pkg", "test.test_reader"}, "no package that somebody installed"
    chats = [one for one in found if one.kind == "chat" and one.name == "reader"]
    assert len(chats) == 6, "two questions about the module, four about its function"
    assert any("`reader.read(path, *, size=-1)`" in one.text for one in chats) or any(
        "reader.read" in one.question for one in chats
    )
    assert not any("hidden" in one.question for one in found)
    assert not any(one.kind == "chat" and one.name.startswith("test.") for one in found)


def test_chapters_builtins_and_small_talk_are_there(found):
    assert any(one.kind == "topic" and one.name == "for" for one in found)
    assert any("`len`" in one.text or " len" in one.question for one in found)
    assert any(one.question == "Hello" and "Python" in one.text for one in found)


def test_a_module_is_held_out_whole(found):
    for name in {one.name for one in found}:
        assert len({one.held_out for one in found if one.name == name}) == 1
    kept = sum(one.held_out for one in found if one.kind == "chat")
    assert 0 < kept < len(found) / 5


def test_the_same_seed_gives_the_same_corpus(found, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(corpus, "documents", lambda _library, _seed: iter(found[:9]))
    assert corpus.main([str(tmp_path / "c.xz")]) == 0
    assert "9 documents" in capsys.readouterr().out
    with lzma.open(tmp_path / "c.xz", "rt") as file:
        assert [json.loads(line)["name"] for line in file] == [one.name for one in found[:9]]
