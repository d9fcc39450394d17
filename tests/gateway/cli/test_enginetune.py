"""`breakeven engine tune`: the profile that it writes, what it says, mistakes in one line."""

import fcntl
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from backends.engine import tuned, tunerun
from backends.engine.tunerun import TuneResult
from gateway.cli.app import app


def tune(*words: object):
    return CliRunner().invoke(app, ["engine", "tune", *(str(word) for word in words)])


@pytest.fixture
def words(tmp_path: Path) -> tuple[object, ...]:
    python = tmp_path / "engine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    model = tmp_path / "tiny"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").touch()
    return (model, "--engine", tmp_path / "engine", "--log", tmp_path / "log.jsonl",
            "--objective", "throughput")  # fmt: skip


@pytest.fixture
def ends_with(monkeypatch):
    """The search, as if it had been made."""

    def put(outcome: TuneResult) -> None:
        async def searched(*_: object, **__: object) -> TuneResult:
            return outcome

        monkeypatch.setattr(tunerun, "tune", searched)

    return put


BEST = ("fp8", "default", "512", "default")


def test_a_profile_says_by_how_much_and_what_for(words, ends_with, tmp_path):
    ends_with(TuneResult(BEST, True, 12, (100.0, 140.0, 110.0, 150.0), 1.381))
    answer = tune(*words, "--flags", "--max-model-len 2048")
    assert answer.exit_code == 0, answer.output
    for said in ("100, then 140; 110, then 150 output tokens/s", "1.381 times better",
                 "changes the model's numbers", "budget"):  # fmt: skip
        assert said in answer.stdout, said
    made = tuned.read(tmp_path / "log.profile.json")
    assert made.flags == (
        "--max-model-len", "2048", "--kv-cache-dtype", "fp8", "--max-num-batched-tokens", "512",
    )  # fmt: skip
    assert made.config_sha256 == tuned.digest(words[0])
    assert made.about["gain"] == 1.381
    assert made.about["slo"]["tpot_s"] == 0.05


def test_what_is_no_better_in_the_end_is_not_put_into_a_profile(words, ends_with, tmp_path):
    ends_with(TuneResult(BEST, True, 12, (100.0, 99.0, 100.0, 98.0), 0.985))
    assert tune(*words).exit_code == 0
    assert tuned.read(tmp_path / "log.profile.json").flags == ()


def test_a_turn_that_was_lost_makes_no_profile_and_no_claim(words, ends_with, tmp_path):
    finals = (100.0, 90.0, 100.0, 130.0)
    ends_with(TuneResult(BEST, True, 12, finals, 1.1, turns=(0.9, 1.3)))
    answer = tune(*words)
    assert answer.exit_code == 0
    assert "100, then 90; 100, then 130 output tokens/s" in answer.stdout
    assert "does not beat vLLM's defaults in every turn" in answer.stdout
    assert "times better" not in answer.stdout
    made = tuned.read(tmp_path / "log.profile.json")
    assert made.flags == ()
    assert (made.about["turns"], made.about["wins"]) == ([0.9, 1.3], False)


def test_what_dollars_were_asked_for_is_not_mixed_with_other_dollars(words, ends_with):
    """A search that went on at another rate took figures of both for one."""
    ends_with(TuneResult(BEST, False, 3))
    cost = (*words, "--objective", "cost", "--usd-per-hour")
    for _ in range(2):
        assert "has not ended" in tune(*cost, "3.5").stdout
    answer = tune(*cost, "7")
    assert answer.exit_code == 1
    assert "belongs to other work (usd_per_hour differ)" in answer.stderr


def test_a_model_that_was_changed_in_its_place_is_another(words, ends_with):
    ends_with(TuneResult(BEST, False, 3))
    assert "has not ended" in tune(*words).stdout
    (words[0] / "config.json").write_text('{"quantization_config": {}}')
    assert "belongs to other work (config_sha256" in tune(*words).stderr


def test_a_second_search_beside_the_first_is_refused(words, ends_with, tmp_path):
    """It ended the first one's engine, which it took for a killed search's."""
    ends_with(TuneResult(BEST, False, 3))
    with (tmp_path / "log.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        answer = tune(*words)
        assert answer.exit_code == 1
        assert "log.jsonl: another process works on it" in answer.stderr
    assert "has not ended" in tune(*words).stdout


def test_a_profile_that_cannot_be_written_is_told(words, ends_with):
    ends_with(TuneResult(BEST, True, 12, (100.0, 140.0, 110.0, 150.0), 1.381))
    answer = tune(*words, "--out", "/dev/full")
    assert answer.exit_code == 1
    assert "/dev/full cannot be written: No space left on device; the same" in answer.stderr


def test_named_choices_are_compared_without_a_search(words, monkeypatch):
    asked = []

    async def searched(*_: object, arm, **__: object) -> TuneResult:
        asked.append(arm)
        return TuneResult(arm or ("fp8", "default"), True, 0, (100.0, 150.0, 100.0, 150.0), 1.5)

    monkeypatch.setattr(tunerun, "tune", searched)
    only = ("--only", "kv,budget")
    answer = tune(*words, *only, "--compare", "kv=fp8, budget=512")
    assert answer.exit_code == 0, answer.output
    assert tune(*words, *only).exit_code == 0
    assert asked == [("fp8", "512"), None]
    assert "1.500 times better" in answer.stdout


def test_a_search_that_has_not_ended_writes_none(words, ends_with, tmp_path):
    ends_with(TuneResult(BEST, False, 3))
    answer = tune(*words)
    assert answer.exit_code == 1
    assert "the same command goes on" in answer.stdout
    assert not (tmp_path / "log.profile.json").exists()
    document = json.loads(tune(*words, "--json").stdout)
    assert (document["ended"], document["trials"]) == (False, 3)


def test_a_comparison_that_failed_says_why_and_writes_none(words, ends_with, tmp_path):
    ends_with(TuneResult(BEST, False, 12, (100.0,), failed="final 1: [no] memory left"))
    answer = tune(*words)
    assert answer.exit_code == 1
    assert "tries it again\nfinal 1: [no] memory left" in answer.stdout
    assert "has not ended" not in answer.stdout
    assert not (tmp_path / "log.profile.json").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--objective", "joy"), "no objective is named joy; there are ttft, tpot"),
        (("--objective", "cost"), "--usd-per-hour 3.50"),
        (("--only", "colour"), "unknown dimension colour"),
        (("--compare", "colour=red"), "--compare: unknown dimension colour; known are"),
        (("--compare", "kv=red"), "--compare: kv must be one of default, fp8; got red"),
        (("--compare", "kv"), "--compare: kv must be one of default, fp8; got "),
        (("--compare", "kv=default"), "--compare: these are vLLM's defaults"),
        (("--engine", "nowhere"), "breakeven engine install"),
        (
            ("--out", "/none/profile.json"),
            "cannot write /none/profile.json: its folder does not exist",
        ),
        (("--flags", "--max-model-len '4096"), "--flags: No closing quotation"),
    ],
)
def test_mistakes_are_told(words, more, said):
    answer = tune(*words, *more)
    assert answer.exit_code == 1
    assert said in answer.stderr


def test_defaults_that_do_not_serve_are_told(words):
    """The interpreter of this environment is an empty file: nothing of it starts."""
    answer = tune(*words)
    assert answer.exit_code == 1
    assert "defaults could not be measured: " in answer.stderr
    assert "Permission denied" in answer.stderr
