"""`breakeven engine ladder`: the table of what is kept, and mistakes in one line."""

import fcntl
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gateway.cli.app import app


def ladder(*words: object):
    return CliRunner().invoke(app, ["engine", "ladder", *(str(word) for word in words)])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").touch()
    return folder


@pytest.fixture
def known(model: Path, tmp_path: Path) -> tuple[object, ...]:
    """The words of a call whose log holds two rungs and a failure."""
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    words = (model, "--engine", tmp_path / "engine", "--log", tmp_path / "log.jsonl",
             "--most", 0, "--users", 4)  # fmt: skip
    assert ladder(*words).exit_code == 0
    entries = [
        ("naive", 0.2, 30.0), ("+ SDPA", 0.1, 60.0),
    ]  # fmt: skip
    with (tmp_path / "log.jsonl").open("a") as file:
        for name, ttft_s, tokens_s in entries:
            item = {"key": name, "ttft_s": ttft_s, "ttft_users_s": 2 * ttft_s, "tokens_s": tokens_s,
                   "alone_tokens_s": tokens_s / 2, "memory_bytes": 3 << 30}  # fmt: skip
            file.write(json.dumps(item) + "\n")
        failed = {"key": "vLLM, all of it off", "failed": "no memory left"}
        file.write(json.dumps(failed) + "\n")
        probe = {"attention": [{"tokens": 512, "phase": "prefill", "kernel": "fused",
                                "seconds": {"value": 1e-3}}]}  # fmt: skip
        file.write(json.dumps({"key": "attention", "probe": probe}) + "\n")
    return words


def test_what_is_kept_is_a_table(known):
    answer = ladder(*known)
    assert answer.exit_code == 0, answer.output
    for words in ("200.0 ms", "3.00 GiB", "2.00", "failed: no memory left", "left out:", "not yet",
                  "Attention of one layer"):  # fmt: skip
        assert words in answer.stdout, words
    document = json.loads(ladder(*known, "--json").stdout)
    rungs = {rung["name"]: rung for rung in document["rungs"]}
    assert rungs["+ SDPA"]["gain_ttft"] == rungs["+ SDPA"]["total_tokens"] == 2.0
    assert document["climb"]["users"] == 4
    assert document["attention"]["attention"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--users", 8), "belongs to other work (climb differ)"),
        (("--only", "faster"), "no rung is named 'faster'"),
        (("--engine", "nowhere"), "breakeven engine install"),
        (("--gpus", 99), "--gpus 99: engines here see"),
    ],
)
def test_mistakes_are_told(known, more, said):
    answer = ladder(*known, *more)
    assert answer.exit_code == 1
    assert said in answer.stderr


def test_a_folder_that_is_no_model_is_told(tmp_path):
    answer = ladder(tmp_path)
    assert answer.exit_code == 1
    assert "has no config.json" in answer.stderr


def test_beside_another_climb_what_is_known_is_shown_and_nothing_is_begun(known, tmp_path):
    with (tmp_path / "log.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert ladder(*known).exit_code == 0
        answer = ladder(*known, "--most", 1)
    assert answer.exit_code == 1
    assert "log.jsonl: another process works on it" in answer.stderr
