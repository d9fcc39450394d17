"""Kernels in a torch profiler's trace: which took the time, and how often each ran.

Traces are Chrome's format, as vLLM writes them. On a GPU its kernels and copies count; without one
the processor's operations, each by its own time: what it called in turn is left out, so that the
shares add up. Annotations and waiting are no work.
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
    """The file is no trace, or holds nothing that ran."""


@dataclass(frozen=True, slots=True)
class Kernel:
    name: str
    calls: int
    total_us: float
    share: float  # of the time of all kernels


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """`device` is `gpu` or `cpu`; `span_us` from the first kernel's start to the last one's end."""

    device: str
    kernels: tuple[Kernel, ...]
    total_us: float
    span_us: float


def traces(folder: Path, since_s: float) -> list[Path]:
    """Return traces written since then, each once, largest first."""
    found = [
        path for name in NAMES for path in folder.rglob(name) if path.stat().st_mtime >= since_s
    ]
    return sorted(found, key=lambda path: path.stat().st_size, reverse=True)


def read(path: Path) -> KernelProfile:
    """Raises `ProfilerTraceError`."""
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
    """Return kernels by name, the dearest first. Raises `ProfilerTraceError` if nothing ran."""
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
    """Return an operation's time without that of the operations it called, thread by thread."""
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
