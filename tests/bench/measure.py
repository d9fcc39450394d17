"""What processes cost: CPU seconds and resident memory of whole trees, from /proc.

`schedstat` counts nanoseconds on a CPU per thread, so a few milliseconds of work are seen. CPU time
is the figure that survives neighbours on a shared machine; wall-clock latencies do not.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

PROC = Path("/proc")
_MEMORY = {"Rss": "rss_mb", "Pss": "pss_mb", "Private_Clean": "uss_mb", "Private_Dirty": "uss_mb"}
LABELS = (
    ("gateway.worker", "worker"),
    ("ledger.writer", "writer"),
    ("gateway.host.telemetry", "telemetry"),
)


def tree(root: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue  # it ended between the listing and the reading
            parent = int(stat.rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_s(pids: Iterable[int]) -> float:
    return sum(_schedstat(pids, 0)) / 1e9


def waited_s(pids: Iterable[int]) -> float:
    """How long their threads could have run and had no core: what neighbours took from them."""
    return sum(_schedstat(pids, 1)) / 1e9


def rss_mb(pids: Iterable[int]) -> float:
    return memory_mb(pids)["rss_mb"]


def memory_mb(pids: Iterable[int]) -> dict[str, float]:
    """Resident, its share where others map the same pages, and what is a process's alone.

    From the page tables: the counters in `statm` lag behind by some pages per core.
    """
    kilobytes = dict.fromkeys(("rss_mb", "pss_mb", "uss_mb"), 0)
    for pid in pids:
        try:
            lines = (PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # a process that ended
        for line in lines:
            figure = _MEMORY.get(line.partition(":")[0])
            if figure is not None:
                kilobytes[figure] += int(line.split()[1])
    return {figure: kilobyte * 1024 / 1e6 for figure, kilobyte in kilobytes.items()}


def by_label(root: int) -> dict[str, list[int]]:
    """Process ids of a tree by what they are: worker, writer, telemetry, other."""
    found: dict[str, list[int]] = {}
    for pid in tree(root):
        try:
            line = (PROC / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        label = next((name for module, name in LABELS if module in line), "other")
        found.setdefault(label, []).append(pid)
    return found


def pin(root: int, cores: set[int]) -> None:
    """Every thread of every process of the tree."""
    for pid in tree(root):
        for task in _tasks(pid):
            try:
                os.sched_setaffinity(int(task.name), cores)
            except OSError:
                continue


def fsync_ms(folder: Path, *, times: int = 50) -> float:
    """The median time of making 300 appended bytes durable: what any ledger must wait for."""
    path = folder / "fsync-probe"
    took = []
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        for _ in range(times):
            os.write(file, b"x" * 300)
            began = time.perf_counter()
            os.fdatasync(file)
            took.append((time.perf_counter() - began) * 1e3)
    finally:
        os.close(file)
        path.unlink()
    return statistics.median(took)


def until(what: str, check: Callable[[], bool], *, limit_s: float, pause_s: float = 0.1) -> None:
    """Wait for it, or end the bench with what did not come."""
    deadline = time.monotonic() + limit_s
    while not check():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench-gateway: {what} did not happen within {limit_s:.0f} s")
        time.sleep(pause_s)


def _schedstat(pids: Iterable[int], place: int) -> Iterator[int]:
    for pid in pids:
        for task in _tasks(pid):
            try:
                yield int((task / "schedstat").read_text().split()[place])
            except OSError:
                continue  # a thread that ended


def _tasks(pid: int) -> list[Path]:
    try:
        return list((PROC / str(pid) / "task").iterdir())
    except OSError:
        return []
