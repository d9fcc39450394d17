"""What makes the scene of stored answers red, told to its judge."""

from collections import Counter
from types import SimpleNamespace

import pytest
import scene_stored
from scene import SceneFigures
from talkers import StoredTurn, end_of

ANSWER = {"id": "resp_1", "store": True}


@pytest.mark.parametrize(
    ("own", "strangers", "seen", "red"),
    [
        ((200, ANSWER), (404, None), {}, []),
        ((404, None), (404, None), {}, ["lost 1"]),
        ((200, {**ANSWER, "store": False}), (404, None), {}, ["changed 1"]),
        ((200, ANSWER), (200, ANSWER), {}, ["seen by another team 1"]),
        ((200, ANSWER), (404, None), {"gone at once": 2, "not stored": 3}, ["gone at once 2"]),
    ],
)
def test_what_is_red(monkeypatch, own, strangers, seen, red) -> None:
    found = {"own": own, "stranger": strangers}
    monkeypatch.setattr(scene_stored, "look", lambda _host, token, _name: found[token])
    talkers = SimpleNamespace(told=[StoredTurn("own", ANSWER)], seen=Counter(seen))
    figures = SceneFigures()
    scene_stored._judge(figures, talkers, [None], "stranger")
    assert figures.red == red


def test_an_end_is_what_a_whole_stream_ends_with() -> None:
    end = b'event: response.completed\ndata: {"type":"response.completed","response":{"id":"a"}}'
    assert end_of(b"data: {}\n\n" + end + b"\n\n") == {"id": "a"}
    assert end_of(b"data: {}\n\n" + end) is None
    assert end_of(b'event: error\ndata: {"type":"error"}\n\n') is None
