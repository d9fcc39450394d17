"""A search over servers: a real client, simulated engines that obey their flags."""

import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from backends.engine import tinymodel
from backends.engine.benchfigures import BenchRates, BenchSlo, Percentile, RunSummary
from backends.engine.benchload import LoadProfile, PromptShape
from backends.engine.environment import Environment
from backends.engine.trial import TrialMeter
from backends.engine.tune import BaselineFailed, FlagDimension, FlagValue, TuneEffort
from backends.engine.tunerun import TuneGoal, TuneRun, tune
from backends.engine.worklog import WorkLog

# The engine's Python: a simulated engine with the batch limits that it was told; the last counts.
PYTHON = """
import os, sys
words = sys.argv[1:]
if "--help=all" in words:
    for flag in ("--model M", "--served-model-name N", "--port P", "--max-num-seqs N", "--crash"):
        print("  " + flag)
    sys.exit()
last = lambda name: words[len(words) - words[::-1].index(name)]
open({starts!r}, "a").write(last("--max-num-seqs") + "\\n")
if "--crash" in words:
    sys.exit("RuntimeError: this kernel is not for this GPU")
os.execv({python!r}, [{python!r}, "-m", "backends.simulator.server", "--profile",
    "h200-llama-3.1-8b-fp8", "--model", last("--served-model-name"), "--port", last("--port"),
    "--max-num-seqs", last("--max-num-seqs")])
"""
SPACE = (
    FlagDimension(
        "sequences",
        (
            FlagValue("default"),
            FlagValue("8", ("--max-num-seqs", "8")),
            FlagValue("crash", ("--crash",)),
        ),
    ),
)
THROUGHPUT = TuneGoal("throughput", BenchSlo(tpot_s=60.0))


@pytest.fixture
def tuning(tmp_path: Path) -> TuneRun:
    environment = Environment(tmp_path / "engine")
    environment.python.parent.mkdir(parents=True)
    body = PYTHON.format(python=sys.executable, starts=str(tmp_path / "starts"))
    environment.python.write_text(f"#!{sys.executable}\n{body}")
    environment.python.chmod(environment.python.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "tiny").mkdir()
    return TuneRun(
        tmp_path / "tiny",
        environment,
        "cpu",
        PromptShape(32, 6),
        THROUGHPUT,
        6,
        tmp_path / "logs",
        SPACE,
        TuneEffort(levels=1, rounds=1),
        base=("--max-num-seqs", "1"),
        start_limit_s=60.0,
    )


@pytest.fixture
def starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The batch limit of each server that was started; from it, not from the clock, comes a rate.

    Requests are sent and answered as ever. A look lasts 0.2 s, and one pause of a busy machine in
    it makes any flag hopeless.
    """
    path, measured = tmp_path / "starts", TrialMeter.point

    async def point(trial: TrialMeter, loop: LoadProfile) -> RunSummary:
        summary = await measured(trial, loop)
        batch = min(loop.at_once, int(path.read_text().split()[-1]))
        rates = replace(summary.whole, output_tokens=40.0 * batch)
        return replace(summary, whole=rates, steady=None)

    monkeypatch.setattr(TrialMeter, "point", point)
    return path


async def test_it_finds_the_better_flag_outlives_a_crash_and_compares_in_turn(
    tuning, starts, tmp_path
):
    """One request at a time is what `base` makes of the defaults: batches are several times it."""
    path = tmp_path / "work.jsonl"
    said: list[str] = []
    tuning = replace(tuning, effort=TuneEffort(levels=2, rounds=1))
    found = await tune(tuning, WorkLog(path, {}), said.append, until_s=float("inf"))
    assert found.ended
    assert found.best == ("8",)
    assert found.finals == (40.0, 320.0, 40.0, 320.0)
    assert (found.gain, found.turns) == (8.0, (8.0, 8.0))
    assert found.is_better
    log = WorkLog(path, {})
    assert "not for this GPU" in log.done["crash @ 0"]["failed"]
    assert log.done["8 @ 0"]["flags"] == ["--max-num-seqs", "1", "--max-num-seqs", "8"]
    assert [key for key in log.done if key.startswith("final")] == [
        "final 0: default", "final 1: 8", "final 2: default", "final 3: 8",
    ]  # fmt: skip
    assert log.done["default @ 1"]["start_s"] == log.done["default @ 0"]["start_s"]
    servers = (
        starts.read_text().split()
    )  # a longer look that follows has the same, finals their own
    assert servers == ["1", "8", "1", "8", *["1", "8"] * 2]
    again = await tune(tuning, WorkLog(path, {}), said.append, until_s=0.0)
    assert again == found, "from the log alone, without time for another trial"


class ArmTable:
    """What each arm comes to, without a server; `asked` has the looks and their loads."""

    def __init__(self) -> None:
        self.entries = {name: self.entry(load) for name, load in (("default", 1), ("8", 8))}
        self.entries["crash"] = {"failed": "this kernel is not for this GPU"}
        self.asked: list[tuple[str, Sequence[int]]] = []

    @staticmethod
    def entry(load: int) -> dict[str, object]:
        return {"at_once": load, "figure": 10.0 * load, "score": 10.0 * load}

    async def try_arm(self, _, ask, __, ___, loads=()) -> dict[str, object]:
        self.asked.append((ask.key, loads))
        return self.entries[ask.arm[0]]


@pytest.fixture
def arms(monkeypatch: pytest.MonkeyPatch) -> ArmTable:
    made = ArmTable()
    monkeypatch.setattr("backends.engine.tunerun._try_arm", made.try_arm)
    return made


async def test_an_arm_is_compared_in_turn_without_a_search(tuning, arms, tmp_path):
    log = WorkLog(tmp_path / "work.jsonl", {})
    found = await tune(tuning, log, lambda _: None, until_s=float("inf"), arm=("8",))
    assert (found.best, found.trials, found.ended) == (("8",), 0, True)
    assert found.gain > 1
    looks, finals = list(log.done)[:2], list(log.done)[2:]
    assert looks == ["default @ 0", "8 @ 0"]
    assert finals == ["final 0: default", "final 1: 8", "final 2: default", "final 3: 8"]
    assert [list(loads) for _, loads in arms.asked] == [[], [], *[[1, 8]] * 4]
    none = await tune(tuning, WorkLog(tmp_path / "n", {}), lambda _: None, until_s=0.0, arm=("8",))
    assert (none.ended, none.finals) == (False, ())


async def test_at_the_end_both_are_asked_at_the_load_of_either(tuning, tmp_path):
    """A climb of the defaults that chance ended at 2 at once made any flag look better."""
    tuning = replace(tuning, base=("--max-num-seqs", "8"))  # the defaults are as good
    log = WorkLog(tmp_path / "work.jsonl", {})
    for key, load in (("default @ 0", 2), ("8 @ 0", 8)):
        log.add(key, {"at_once": load, "figure": 1.0, "score": 1.0, "seen": [[load, 1.0, True]]})
    found = await tune(tuning, log, lambda _: None, until_s=float("inf"), arm=("8",))
    assert found.ended
    for turn, name in enumerate(("default", "8", "default", "8")):
        entry = log.done[f"final {turn}: {name}"]
        assert [load for load, *_ in entry["seen"]] == [2, 8]
        most = max((figure, load) for load, figure, _ in entry["seen"])
        assert (round(entry["figure"], 2), entry["at_once"]) == most


async def test_an_arm_that_does_not_start_is_told_with_its_cause(tuning, tmp_path):
    log = WorkLog(tmp_path / "work.jsonl", {})
    found = await tune(tuning, log, lambda _: None, until_s=float("inf"), arm=("crash",))
    assert (found.ended, found.finals) == (False, ())
    assert "crash @ 0: " in found.failed
    assert "not for this GPU" in found.failed


async def test_defaults_that_failed_are_tried_again_by_the_next_call(tuning, arms, tmp_path):
    """A GPU that somebody else filled is free another time; the log is the same."""
    path = tmp_path / "work.jsonl"
    good = arms.entries["default"]
    arms.entries["default"] = {"failed": "not ready after 0 s"}
    with pytest.raises(BaselineFailed, match=r"could not be measured: not ready after 0 s"):
        await tune(tuning, WorkLog(path, {}), lambda _: None, until_s=float("inf"))
    arms.entries["default"] = good
    found = await tune(tuning, WorkLog(path, {}), lambda _: None, until_s=float("inf"))
    assert (found.best, found.ended) == (("8",), True)


async def test_without_time_it_stops_and_says_so(tuning, tmp_path):
    log = WorkLog(tmp_path / "work.jsonl", {})
    found = await tune(tuning, log, lambda _: None, until_s=time.monotonic() - 1)
    assert not found.ended
    assert not log.done


def three(value: float) -> tuple[Percentile, ...]:
    return tuple(Percentile(percent, value, value, value) for percent in (50, 90, 99))


def point(ttft_s: float, tpot_s: float, failed: int = 0) -> RunSummary:
    rates = BenchRates(10.0, 2.0, 1000.0, 500.0)
    return RunSummary(20, failed, rates, None, 4.0, three(ttft_s), (), three(tpot_s), (), 1.0, 2.0)


def test_a_goal_says_what_is_kept_and_what_counts():
    goal = TuneGoal("throughput", BenchSlo(ttft_s=0.5, tpot_s=0.05))
    assert goal.is_met(point(0.5, 0.05))
    assert not goal.is_met(point(0.5, 0.051))
    assert not goal.is_met(point(0.51, 0.05))
    assert not goal.is_met(point(0.1, 0.01, failed=1))
    assert goal.figure(point(0.1, 0.01)) == 500.0
    assert goal.gain(600, 500) == pytest.approx(1.2)
    cost = TuneGoal("cost", BenchSlo(), Decimal("5.40"))
    assert cost.figure(point(0.1, 0.01)) == pytest.approx(1.0), "1500 tokens/s at $5.40/h"
    assert cost.score(1.0) > cost.score(1.1)
    assert cost.gain(0.5, 1.0) == pytest.approx(2.0)
    assert TuneGoal("ttft", BenchSlo()).figure(point(0.1, 0.01)) == 0.1
    assert TuneGoal("tpot", BenchSlo()).figure(point(0.1, 0.01)) == 0.01


@pytest.mark.long
@pytest.mark.part("vllm")
async def test_a_real_engine_is_tuned_from_end_to_end(engine_python: Path, tmp_path: Path):
    """Batches of many against one at a time, on vLLM itself."""
    tinymodel.make(tmp_path / "tiny")
    made = TuneRun(
        tmp_path / "tiny", Environment(engine_python.parent.parent), "cpu", PromptShape(48, 24),
        THROUGHPUT, 8, tmp_path / "logs", SPACE[:1], TuneEffort(levels=1, rounds=1),
        base=("--max-model-len", "2048", "--max-num-seqs", "1"), start_limit_s=300.0,
    )  # fmt: skip
    found = await tune(made, WorkLog(tmp_path / "w.jsonl", {}), lambda _: None, until_s=1e12)
    assert found.best == ("8",)
    assert found.gain > 1.0
