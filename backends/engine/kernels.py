"""Kernels in a torch profiler's trace: total time and number of calls of each.

Traces are in Chrome's format, as vLLM writes them. With a GPU, its kernels and copies count.
Without one, the CPU operations count, each without the time of the operations that it called, so
that shares add up to 1. Annotations and waiting are left out.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GPU = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
CPU = "cpu_op"
NAMES = ("*.pt.trace.json", "*.pt.trace.json.gz")


class ProfilerTraceError(Exception):
    """A file is not a profiler trace, or the trace has no kernel and no operation."""


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    calls: int
    total_us: float
    share: float  # of the total time of all kernels


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """Time by kernel of one trace. `device` is `gpu` or `cpu`.

    `span_us` is the time from the start of the first kernel to the end of the last one.
    """

    device: str
    kernels: tuple[Kernel, ...]
    total_us: float
    span_us: float


def traces(folder: Path, since_s: float) -> list[Path]:
    """Return trace files modified since `since_s` (Unix time), largest first."""
    found = [
        path for name in NAMES for path in folder.rglob(name) if path.stat().st_mtime >= since_s
    ]
    return sorted(found, key=lambda path: path.stat().st_size, reverse=True)


def read(path: Path) -> KernelProfile:
    """Read a trace file, plain or gzip. Raises `ProfilerTraceError`."""
    try:
        raw = path.read_bytes()
        document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
        events = document["traceEvents"]
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise ProfilerTraceError(
            f"{path.name} is not a trace: {type(error).__name__} {error}"
        ) from error
    return summary(events)


def summary(events: Iterable[Mapping[str, Any]]) -> KernelProfile:
    """Return kernels by name, longest total first. Raises `ProfilerTraceError`."""
    whole = [event for event in events if event.get("ph") == "X" and "dur" in event]
    ran = [part for part in whole if part.get("cat") in GPU]
    device = "gpu" if ran else "cpu"
    if not ran:
        ran = [part for part in whole if part.get("cat") == CPU]
    if not ran:
        raise ProfilerTraceError("the trace holds neither kernels nor operations")
    own = {id(entry): float(entry["dur"]) for entry in ran} if device == "gpu" else _own_us(ran)
    calls: defaultdict[str, int] = defaultdict(int)
    times: defaultdict[str, float] = defaultdict(float)
    for entry in ran:
        calls[entry["name"]] += 1
        times[entry["name"]] += own[id(entry)]
    total = sum(times.values())
    kernels = [
        Kernel(name, calls[name], spent, spent / total if total else 0.0)
        for name, spent in times.items()
    ]
    first = min(float(entry["ts"]) for entry in ran)
    last = max(float(entry["ts"]) + float(entry["dur"]) for entry in ran)
    ordered = sorted(kernels, key=lambda kernel: kernel.total_us, reverse=True)
    return KernelProfile(device, tuple(ordered), total, last - first)


def _own_us(ran: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Return each operation's time in us without its callees, by `id` of the event."""
    own = {id(entry): float(entry["dur"]) for entry in ran}
    threads: defaultdict[tuple[Any, Any], list[Mapping[str, Any]]] = defaultdict(list)
    for entry in ran:
        threads[entry.get("pid"), entry.get("tid")].append(entry)
    for thread in threads.values():
        stack: list[Mapping[str, Any]] = []
        for entry in sorted(thread, key=lambda event: (float(event["ts"]), -float(event["dur"]))):
            while stack and float(stack[-1]["ts"]) + float(stack[-1]["dur"]) <= float(entry["ts"]):
                stack.pop()
            if stack:
                own[id(stack[-1])] -= float(entry["dur"])
            stack.append(entry)
    return {key: max(0.0, value) for key, value in own.items()}
