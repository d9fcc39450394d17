"""`breakeven engine pack` and `unpack`: what is said, and what a slip is told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backends.engine.packing.parts import LEAST_PART, PackedBundle, write_bundle
from gateway.cli import enginepack
from gateway.cli.app import app


def run(*words: object):
    return CliRunner().invoke(app, ["engine", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--part-size", "60 pages"], "--part-size 60 pages: a size of at least 2M"),
        (["--part-size", "10K"], "a size of at least 2M, such as 60M or 4G"),
        (["--python", "3.9"], "the engine's set is for 3.11, 3.12, 3.13, 3.14"),
        (["--glibc", "new"], "--glibc new: a version such as 2.34"),
        (["--model", "nowhere"], "not a model folder, config.json is missing"),
    ],
)
def test_a_slip_is_told_before_anything_is_fetched(tmp_path: Path, words: list[str], said: str):
    answer = run("pack", tmp_path / "out", *words)
    assert answer.exit_code == 1
    assert said in " ".join(answer.output.split())
    assert not (tmp_path / "out").exists()


def test_what_was_packed_is_told_and_the_next_step(tmp_path: Path, monkeypatch):
    asked = []

    def make(request, report):
        asked.append(request)
        report("wheels", "1 of 2", 0.5)
        return PackedBundle(request.out, 3, 5_000_000, 2, "ab" * 32)

    monkeypatch.setattr(enginepack, "make", make)
    answer = run("pack", tmp_path / "out", "--flavour", "cuda", "--python", "3.12")
    assert answer.exit_code == 0, answer.output
    assert "3 files, 5.0 MB in 2 parts" in answer.output
    assert "sh install.sh --to FOLDER" in answer.output
    assert (asked[0].flavour, asked[0].target.python) == ("cuda", "3.12")
    told = json.loads(run("pack", tmp_path / "out", "--flavour", "cpu", "--json").stdout)
    assert told["parts"] == 2


def test_a_stopped_packing_says_how_it_goes_on(tmp_path: Path, monkeypatch):
    def stopped(*_: object):
        raise KeyboardInterrupt

    monkeypatch.setattr(enginepack, "make", stopped)
    answer = run("pack", tmp_path / "out", "--flavour", "cpu")
    assert answer.exit_code == 1
    assert "what was fetched is kept, the same command goes on" in answer.output


def test_a_bundle_that_is_none_is_told(tmp_path: Path):
    answer = run("unpack", tmp_path, "--to", tmp_path / "there")
    assert answer.exit_code == 1
    assert "packing was interrupted, or the file was not copied" in " ".join(answer.output.split())


def test_a_bundle_for_another_python_is_told(tmp_path: Path):
    (tmp_path / "f").write_text("x")
    facts = {"python": "3.9", "machine": "x86_64", "glibc": "2.5", "driver": None}
    write_bundle(tmp_path / "out", [("f", tmp_path / "f")], facts, LEAST_PART, lambda *_: None)
    answer = run("unpack", tmp_path / "out", "--to", tmp_path / "there")
    assert answer.exit_code == 1
    assert "it was packed for Python 3.9" in " ".join(answer.output.split())
    assert not (tmp_path / "there").exists()
