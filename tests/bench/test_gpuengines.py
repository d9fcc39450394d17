"""Engines of one GPU start one after the other; those of two beside each other."""

import io
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import gpuengines


@pytest.fixture
def happened(monkeypatch, tmp_path):
    """What is done to servers, in order: vLLM itself needs a GPU host."""
    found: list[tuple[str, str, str]] = []

    class ServedEngine:
        def __init__(self, model, port, flags, log, environ):
            self.base_url, self.seconds = f"http://127.0.0.1:{port}/v1", 0.0
            self.on = (str(port), environ["CUDA_VISIBLE_DEVICES"])
            found.append(("begun", *self.on))

        def up(self, limit_s):
            found.append(("up", *self.on))
            self.seconds = 0.1 if "--fails" not in sys.argv else 0.0
            return "--fails" not in sys.argv

        def end(self):
            found.append(("ended", *self.on))

        def tail(self):
            return "no memory"

    monkeypatch.setattr(gpuengines.gpufork, "preload", lambda: 0.0)
    monkeypatch.setattr(gpuengines.gpufork, "ServedEngine", ServedEngine)

    def run(*words: str) -> int:
        argv = ["gpuengines.py", "model", "--ports", "81", "82", "--logs", str(tmp_path), *words]
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        return gpuengines.main()

    return found, run


FIRST, SECOND = ("81", "0"), ("82", "0")
BESIDE = ["begun", "begun", "up", "up", "ended", "ended"]


def test_of_one_gpu_the_second_begins_when_the_first_is_up(happened, capsys) -> None:
    found, run = happened
    assert run("--gpus", "0", "0") == 0
    assert found == [
        ("begun", *FIRST), ("up", *FIRST), ("begun", *SECOND), ("up", *SECOND),
        ("ended", *SECOND), ("ended", *FIRST),
    ]  # fmt: skip
    assert json.loads(capsys.readouterr().out)["start_s"] == [0.1, 0.1]


@pytest.mark.parametrize("words", [(), ("--gpus", "0", "1"), ("--gpus", "0", "0", "--together")])
def test_of_two_gpus_or_when_told_they_begin_at_once(happened, words) -> None:
    found, run = happened
    assert run(*words) == 0
    assert [what for what, *_ in found] == BESIDE


def test_one_that_does_not_start_is_told_and_nothing_is_left(happened, capsys) -> None:
    found, run = happened
    assert run("--gpus", "0", "0", "--fails") == 1
    assert [what for what, *_ in found] == ["begun", "up", "ended"]
    assert json.loads(capsys.readouterr().out) == {"failed": "no memory"}
