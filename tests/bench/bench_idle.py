"""What a host costs while nobody asks it anything: start, idle hours, commands. CPU, not time.

`breakeven serve` as `bench-gateway` configures it, before the same four engines in C. Printed: CPU
seconds of all its processes until it is ready, at the first start on a ledger (which reads the
bundled prices) and at the next; the share of a core that they take while idle, and by process its
wake-ups (a thread that gave its core up of its own accord); CPU of commands that ask the ledger.
Bytecode is written first, whatever the environment says. Writes `build/bench-idle.json`.

    make bench-idle ARGS="--seconds 60"
"""

import argparse
import http.client
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import bench_gateway  # noqa: E402  (the path is set above)
import children  # noqa: E402  (as above)
import wire  # noqa: E402  (as above)
from measure import PROC, by_label, cpu_s, tree, until  # noqa: E402  (as above)
from ours import COMMAND, Ours, start, wait_fitted  # noqa: E402  (as above)

COMMANDS = (
    ("keys", "list"), ("ledger", "verify"),
)  # fmt: skip


COMPILED = (
    "from gateway.host.shared_work import do_shared_work; do_shared_work();"
    "import gateway.cli.app, gateway.cli.serve, gateway.cli.ledger, gateway.cli.keys"
)


def write_bytecode() -> None:
    """Compile what is started here: without bytecode a start takes twice as much."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run([sys.executable, "-c", COMPILED], cwd=ROOT, check=True)


def restart_s(target: Ours, config: Path, cores: set[int]) -> float:
    """CPU seconds until a host that was ended is ready again."""
    with target.log.open("ab") as out:
        target.process = children.start(
            [*COMMAND, "serve", "--config", str(config)],
            cores=cores, orphaned=signal.SIGTERM, cwd=ROOT, stdout=out, stderr=out,
        )  # fmt: skip
    until("being ready again", lambda: is_ready(target), limit_s=120, pause_s=0.02)
    return cpu_s(tree(target.process.pid))


def is_ready(target: Ours) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wake_ups(pid: int) -> int:
    """How often threads of a process gave up a core of their own accord."""
    count = 0
    for task in (PROC / str(pid) / "task").iterdir():
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches:"):
                count += int(line.split()[1])
    return count


def idle(target: Ours, seconds: float) -> dict[str, dict[str, float]]:
    """By process: the share of a core, and wake-ups a second."""
    pids = {
        (label, pid) for label, listed in by_label(target.process.pid).items() for pid in listed
    }
    before = {pid: (cpu_s([pid]), wake_ups(pid)) for _, pid in pids}
    since = time.monotonic()
    time.sleep(seconds)
    took_s = time.monotonic() - since
    figures: dict[str, dict[str, float]] = {}
    for label, pid in sorted(pids):
        spent, woken = cpu_s([pid]) - before[pid][0], wake_ups(pid) - before[pid][1]
        figures[f"{label} {pid}"] = {
            "% of a core": 100 * spent / took_s, "wake-ups a second": woken / took_s,
        }  # fmt: skip
    figures["all"] = {
        name: sum(item[name] for item in figures.values())
        for name in ("% of a core", "wake-ups a second")
    }
    return figures


def command_s(words: tuple[str, ...], config: Path) -> float:
    """CPU seconds of a command and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [*COMMAND, *words, "--config", str(config)], cwd=ROOT, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(folder: Path, given: argparse.Namespace, ports: list[int]) -> dict[str, Any]:
    cores = os.sched_getaffinity(0)
    target = start(folder, ports, workers=given.workers, cores=cores)
    try:
        until("being ready", lambda: is_ready(target), limit_s=120, pause_s=0.02)
        figures: dict[str, Any] = {"ready, CPU s": cpu_s(tree(target.process.pid))}
        wait_fitted(target)
        time.sleep(given.settle)
        figures["idle"] = idle(target, given.seconds)
        config = folder / "ours" / "bench.yaml"
        for words in COMMANDS:
            figures[f"`{' '.join(words)}`, CPU s"] = min(command_s(words, config) for _ in range(2))
        children.end(target.process, grace_s=60)
        figures["ready again, CPU s"] = restart_s(target, config, cores)
    finally:
        children.end(target.process, grace_s=60)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of idleness that are measured")
    parser.add_argument("--settle", type=float, default=10.0, help="of them before")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    write_bytecode()
    wire.build(bench_gateway.FOLDER)
    with (
        children.ended_by_signals(),
        bench_gateway.upstream_of(os.sched_getaffinity(0)) as upstream,
        tempfile.TemporaryDirectory() as folder,
    ):
        figures = measured(Path(folder), given, upstream.ports)
    for name, value in figures.items():
        if name != "idle":
            print(f"{name:<40} {value:10.2f}")
    for name, values in figures["idle"].items():
        print(
            f"idle: {name:<34} " + "  ".join(f"{key} {each:7.2f}" for key, each in values.items())
        )
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build" / "bench-idle.json").write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
