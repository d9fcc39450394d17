"""Where the CPU of one request goes: microseconds by process and by stage, under full load.

The gateway as `bench_gateway` starts it, 32 clients that ask again as soon as they are answered.
CPU is the kernel's own count for each process; py-spy samples their stacks meanwhile, and a
sample belongs to the innermost of its functions that `STAGES` knows. What the event loop does
outside of any Python function (sockets, polling) is a stage of its own. Start it with
`make bench-account`; writes `build/bench-account.json`.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bench_gateway
import peers
import report
import scenes
import wire
from measure import by_label, cpu_s
from ours import ROOT, Ours

SAMPLER = "py-spy"
PER_S = 200
WAITING = ("_worker (concurrent/", "select (selectors.py", "wait (threading.py")
STAGES: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "worker": (
        ("prompt's marks", ("fleet/prefix_index.py",)),
        ("engines seen", ("fleet/target_views.py", "fleet/shared_load.py")),
        ("candidates, the rest", ("freeze (gateway/fleet/candidates.py",)),
        ("decided", ("decide (router/decide.py", "degraded_decider.py")),
        ("decision packed", ("_packed (gateway/request/plan.py",)),
        ("exact inputs", ("inputs (gateway/request/plan.py", "gateway/control/decisions/")),
        ("plan, the rest", ("gateway/request/plan.py", "gateway/policies/")),
        ("open record", ("opening (gateway/request/metering.py",)),
        ("journal: flush", ("journals/flusher.py", "journals/aio.py", "_round (ledger/journals")),
        ("journal: write", ("ledger/journals/",)),
        ("charge", ("gateway/request/charging.py",)),
        (
            "learned, counted",
            ("_learn (", "_count (", "gateway/telemetry/metrics/", "demand_counter.py"),
        ),
        ("settle, the rest", ("gateway/request/metering.py",)),
        ("holds", ("gateway/request/admission.py", "ledger/budgets/")),
        ("promises on the board", ("gateway/request/load_tracker.py", "attempt.py")),
        ("upstream", ("backends/",)),
        (
            "answer",
            (
                "gateway/request/response_writer.py",
                "gateway/request/client_response.py",
                "gateway/kinds/relay.py",
            ),
        ),
        ("key", ("gateway/auth.py", "ledger/identity/")),
        (
            "body read",
            ("gateway/request/request_parser.py", "http/body.py", "_asked (", "_understood ("),
        ),
        ("dispatch", ("gateway/request/dispatch.py", "silent_engine.py", "retry_budget.py")),
        ("request's frame", ("gateway/request/inference_api.py", "gateway/worker/app.py")),
        ("HTTP server", ("gateway/http/", "uvicorn/protocols", "gateway/ids.py")),
        ("event loop, sockets", ("asyncio/", "gateway/worker/__main__.py", "<module>")),
    ),
    "writer": (
        ("seals", ("ledger/seals/",)),
        ("sums", ("ledger/sums/",)),
        ("journals read", ("ledger/journals/",)),
        ("rows made", ("writing/fold.py", "writing/rows.py", "ledger/accounts.py")),
        ("rows written", ("writing/statements.py",)),
        ("commit", ("do_commit (",)),
        ("applying, the rest", ("ledger/writing/",)),
        ("news, budget desk", ("_look (", "_news (", "ledger/budgets/")),
        ("event loop, threads", ("asyncio/", "concurrent/", "<module>")),
    ),
    "telemetry": (("by the clock", ("",)),),
    "other": (("by the clock", ("",)),),
}


def stage_of(label: str, stack: str) -> str:
    """Whose sample it is: from the innermost function outwards, the first that is known."""
    for frame in reversed(stack.split(";")):
        for stage, marks in STAGES[label]:
            if any(mark in frame for mark in marks):
                return stage
    return "else"


def counted(label: str, raw: Path) -> Counter[str]:
    """Samples of a process by stage, from what py-spy wrote."""
    found: Counter[str] = Counter()
    for line in raw.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        if not any(mark in stack.rpartition(";")[2] for mark in WAITING):
            found[stage_of(label, stack)] += int(count)
    return found


def sampler() -> Path:
    """py-spy as its lock file has it, in an environment of its own."""
    return peers.install(SAMPLER, bench_gateway.FOLDER).parent / SAMPLER


def measured(target: Ours, stage: scenes.Stage, seconds: float) -> dict[str, dict[str, float]]:
    """By process and stage: CPU microseconds a request; a process's `all` is the kernel's."""
    spy, labels = sampler(), by_label(target.process.pid)
    stage.load.run(**stage.asking(target, clients=32), seconds=1.0)
    target.settle()
    asked, before = target.rows()[0], {}
    raws = {(label, pid): stage.folder / f"{pid}.raw" for label in labels for pid in labels[label]}
    before = {pid: cpu_s([pid]) for _, pid in raws}
    watching = [
        subprocess.Popen(
            [spy, "record", "--pid", str(pid), "--format", "raw", "--function",
             "--rate", str(PER_S), "--duration", "3600", "--output", str(raw)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        for (_, pid), raw in raws.items()
    ]  # fmt: skip
    stage.load.run(**stage.asking(target, clients=32), seconds=seconds)
    target.settle()
    for item in watching:
        item.send_signal(signal.SIGINT)
        item.wait()
    requests = target.rows()[0] - asked
    found: dict[str, dict[str, float]] = {}
    for (label, pid), raw in raws.items():
        spent = 1e6 * (cpu_s([pid]) - before[pid]) / requests
        samples = counted(label, raw) if raw.exists() else Counter()
        here = found.setdefault(label, {"all": 0.0})
        here["all"] += spent
        for name, count in samples.items():
            here[name] = here.get(name, 0.0) + spent * count / samples.total()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    given = parser.parse_args()
    wire.build(bench_gateway.FOLDER)
    cores = sorted(os.sched_getaffinity(0))
    state = bench_gateway.FOLDER / "account"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    with (
        bench_gateway.upstream_of({cores[-1]}) as upstream,
        bench_gateway.targets_of(upstream, state, {}, {cores[0]}) as running,
    ):
        target = running[report.OURS]
        assert isinstance(target, Ours)
        stage = scenes.Stage(wire.Load(bench_gateway.FOLDER, {cores[-1]}), upstream, state,
                             scenes.FULL)  # fmt: skip
        found = measured(target, stage, given.seconds)
    for label, stages in sorted(found.items(), key=lambda item: -item[1]["all"]):
        for name, spent in sorted(stages.items(), key=lambda item: -item[1]):
            print(f"{label:<10} {name:<24} {spent:8.1f} us a request")
    (ROOT / "build" / "bench-account.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
