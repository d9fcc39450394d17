"""Jobs of a host with two GPUs: none overtakes another, and what ended is not run again."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bench_gpuhost import Job, RunningTask, jobs, next_of, run

from backends.engine.worklog import WorkLog


def job(name: str, *gpus: int, least_s: float = 0.0, code: str = "") -> Job:
    return Job(name, gpus, 60.0, least_s, (sys.executable, "-c", code))


BOTH, ZERO, ONE, LATER = job("both", 0, 1), job("zero", 0), job("one", 1), job("later", 0, 1)


@pytest.mark.parametrize(
    ("waiting", "busy", "begun"),
    [
        ([BOTH, ZERO], (), ["both"]),
        ([ZERO, ONE, LATER], (), ["zero", "one"]),
        ([LATER, ONE], (0,), []),  # who came first waits for both, and keeps the free one
        ([ONE, LATER], (0,), ["one"]),
        ([replace(BOTH, least_s=100.0), ZERO], (), ["zero"]),  # no time for it: nobody waits
    ],
)
def test_none_overtakes_another_on_a_gpu(waiting, busy, begun) -> None:
    assert [named.name for named in next_of(waiting, busy, 50.0)] == begun


def test_what_ended_well_is_not_run_again(tmp_path, capsys) -> None:
    out = tmp_path / "seen"
    code = "import os; open({out!r}, 'a').write({name!r} + os.environ['CUDA_VISIBLE_DEVICES'])"
    works, fails = (
        job(name, 1, code=code.format(out=str(out), name=name) + more)
        for name, more in (("works", ""), ("fails", "; raise SystemExit(3)"))
    )
    for _ in range(2):
        log = WorkLog(tmp_path / "log.jsonl", {})
        run([works, fails], log, tmp_path, 60.0)
    assert out.read_text() == "works1" + "fails1" * 2
    assert {name: item["status"] for name, item in log.done.items()} == {"works": 0, "fails": 3}


def test_a_job_is_ended_by_its_own_way(tmp_path) -> None:
    """Its `finally` gives GPUs back."""
    code = (
        f"import sys, time; sys.path.insert(0, {str(Path(__file__).parent)!r}); import children\n"
        "with children.ended_by_signals():\n"
        "    try:\n        print('here', flush=True); time.sleep(600)\n"
        "    finally:\n        print('ended', flush=True)\n"
    )
    running = RunningTask(job("long", 0, code=code), tmp_path, 60.0)
    said = tmp_path / "long.log"
    deadline = time.monotonic() + 60
    while "here" not in said.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running.ended() is None
    running.end()
    assert said.read_text().split() == ["here", "ended"]
    found = running.ended()
    assert found is not None
    assert found["status"] != 0


def test_every_job_names_a_bench_that_is_there(tmp_path) -> None:
    for job in jobs(tmp_path / "engine", tmp_path):
        scripts = [word for word in job.words if word.endswith(".py")]
        assert all(Path(word).is_file() for word in scripts), json.dumps(job.words)
        assert job.least_s < job.limit_s
