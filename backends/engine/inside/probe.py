"""Measurements of this machine's GPU by torch, or of its CPU, as one JSON document.

Parts: copy bandwidth, matrix products by number format, launches, attention of prompts and of
decode steps, all-reduce (with more than one GPU), and reads of another process's memory through
NIXL (where installed). Each figure is the median of repeats, with the lowest and the highest.
Inputs are random, because zeros run faster than data. A part that a device cannot do is listed
with the reason, and the other parts go on.

Runs as a standalone script: `python probe.py [--only attention] [--small]`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import torch

FORMAT = 1
PARTS = ("bandwidth", "flops", "launch", "attention", "all_reduce", "kv_transfer")
NUMBERS = ("bf16", "fp16", "fp8", "int8")
TOKENS = (512, 1024, 2048, 4096, 8192, 16384, 32768)
# Query heads, key and value heads, width of a head: a layer of Llama 3 8B.
HEADS, KV_HEADS, HEAD = 32, 8, 128
MESSAGES = (64 << 10, 256 << 20)  # all-reduce bytes of a decode step and of a long prompt
SPREAD_S = 0.2  # total time of one figure's repeats, once warm
REPEATS = 7


class KernelTimer:
    """Timer of one call in seconds, by CUDA events on a GPU, else by the CPU's clock."""

    def __init__(self, *, gpu: bool) -> None:
        self._gpu = gpu

    def time(self, work: Callable[[], object], calls: int) -> float:
        if not self._gpu:
            began = time.perf_counter()
            for _ in range(calls):
                work()
            return (time.perf_counter() - began) / calls
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(calls):
            work()
        last.record()
        torch.cuda.synchronize()
        return float(first.elapsed_time(last)) / 1e3 / calls

    def measure(self, work: Callable[[], object]) -> dict[str, float]:
        """Return the median, lowest and highest of the repeats, in seconds."""
        once = min(self.time(work, 1) for _ in range(2))
        calls = max(1, round(SPREAD_S / REPEATS / max(once, 1e-7)))
        calls = min(calls, 2000)
        found = [self.time(work, calls) for _ in range(REPEATS)]
        return {"value": statistics.median(found), "low": min(found), "high": max(found)}


class DeviceProbe:
    """Measurements of one device; `small` takes sizes that suit a CPU."""

    def __init__(self, *, gpu: bool, small: bool, tokens: tuple[int, ...]) -> None:
        self.gpu, self.small = gpu, small
        self.tokens = tokens
        self.device = "cuda" if gpu else "cpu"
        self.clock = KernelTimer(gpu=gpu)
        self.unavailable: dict[str, str] = {}

    def random(self, *shape: int, dtype: Any = None) -> Any:
        return torch.randn(*shape, device=self.device, dtype=dtype or torch.bfloat16)

    def bandwidth(self) -> dict[str, float]:
        """Return bytes per second, read and written, of a copy larger than any cache."""
        size = (32 << 20) if self.small else (4 << 30)
        source = self.random(size // 2)
        target = torch.empty_like(source)
        return _rate(2.0 * size, self.clock.measure(lambda: target.copy_(source)))

    def flops(self) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        side = 512 if self.small else 8192
        for number in NUMBERS:
            try:
                seconds = self.clock.measure(self.product(number, side))
            except (RuntimeError, AttributeError, ValueError) as error:
                self.unavailable[number] = _line(error)
                continue
            found[number] = _rate(2.0 * side**3, seconds)
        return found

    def product(self, number: str, side: int) -> Callable[[], object]:
        """Return a call that multiplies random square matrices, the second stored by columns."""
        left, right = self.random(side, side), self.random(side, side).t()
        if number == "fp8":
            item = torch.ones((), device=self.device)
            a, b = (each.to(torch.float8_e4m3fn) for each in (left, right))
            return lambda: torch._scaled_mm(  # noqa: SLF001  (torch has no other name for it)
                a, b, scale_a=item, scale_b=item, out_dtype=torch.bfloat16
            )
        if number == "int8":
            a, b = ((each * 30).clamp(-127, 127).to(torch.int8) for each in (left, right))
            return lambda: torch._int_mm(a, b)  # noqa: SLF001  (nor for this one)
        if number == "fp16":
            left, right = left.half(), right.half()
        return lambda: left @ right

    def launch(self) -> dict[str, Any]:
        """Measure the seconds of one operation on one number, launched alone and from a graph."""
        many, number = 200, self.random(1)

        def launches() -> None:
            for _ in range(many):
                number.add_(1.0)

        found: dict[str, Any] = {"each_s": _share(self.clock.measure(launches), many)}
        if self.gpu:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                launches()
            found["each_in_graph_s"] = _share(self.clock.measure(graph.replay), many)
        return found

    def attention(self) -> list[dict[str, Any]]:
        """Measure prompts and decode steps of one layer, with plain and with fused kernels."""
        found: list[dict[str, Any]] = []
        for tokens in self.tokens:
            for phase, queries in (("prefill", tokens), ("decode", 1)):
                for kernel, attend in (("plain", plain), ("fused", fused)):
                    row: dict[str, Any] = {"tokens": tokens, "phase": phase, "kernel": kernel}
                    found.append(row | self.attended(attend, queries, tokens))
        return found

    def attended(self, attend: Callable[..., Any], queries: int, tokens: int) -> dict[str, Any]:
        """Return the time and the peak bytes besides the inputs, or why attention fails."""
        scores = HEADS * queries * tokens * 2
        if not self.gpu and attend is plain and scores >= (1 << 30):
            return {"failed": f"its scores alone are {scores / 2**30:.0f} GiB"}
        try:
            query = self.random(1, HEADS, queries, HEAD)
            key, value = (self.random(1, KV_HEADS, tokens, HEAD) for _ in range(2))
            if self.gpu:
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            attend(query, key, value)
            peak = torch.cuda.max_memory_allocated() - before if self.gpu else None
            seconds = self.clock.measure(lambda: attend(query, key, value))
        except RuntimeError as error:  # torch's out-of-memory error is a subclass
            return {"failed": "out of memory" if "memory" in str(error) else _line(error)}
        finally:
            if self.gpu:
                torch.cuda.empty_cache()
        return {"seconds": seconds, "peak_bytes": peak}


def plain(query: Any, key: Any, value: Any) -> Any:
    """Compute attention with all scores in memory, as early implementations did."""
    many = HEADS // KV_HEADS
    key, value = key.repeat_interleave(many, dim=1), value.repeat_interleave(many, dim=1)
    scores = query @ key.transpose(-1, -2) / HEAD**0.5
    queries, tokens = scores.shape[-2:]
    if queries > 1:
        ahead = torch.ones(queries, tokens, dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value


def fused(query: Any, key: Any, value: Any) -> Any:
    causal = query.shape[-2] > 1
    return torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=causal, enable_gqa=True
    )


def all_reduce(ranks: int, *, gpu: bool, small: bool) -> list[dict[str, Any]]:
    """Measure all-reduce with one process per rank; the slowest rank's time counts.

    Raises `RuntimeError` if a rank ends early.
    """
    place = Path(mkdtemp()) / "ranks"
    context = torch.multiprocessing.get_context("spawn")
    answers = context.SimpleQueue()
    processes = [
        context.Process(target=_rank, args=(rank, ranks, gpu, small, f"file://{place}", answers))
        for rank in range(ranks)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise RuntimeError("a rank of the all-reduce ended early")
    per_rank = [answers.get() for _ in processes]
    found = []
    for size, times in ((size, [item[size] for item in per_rank]) for size in per_rank[0]):
        slowest = max(times, key=lambda timing: timing["value"])
        moved = 2 * (ranks - 1) / ranks * size  # bytes that a ring sends and receives
        row = {"ranks": ranks, "bytes": size, "seconds": slowest}
        found.append(row | {"bus_bytes_s": moved / slowest["value"]})
    return found


def _rank(rank: int, ranks: int, gpu: bool, small: bool, place: str, answers: Any) -> None:
    if gpu:
        torch.cuda.set_device(rank)
    torch.distributed.init_process_group(
        "nccl" if gpu else "gloo", init_method=place, rank=rank, world_size=ranks
    )
    clock, found = KernelTimer(gpu=gpu), {}
    for size in MESSAGES[:1] if small else MESSAGES:
        message = torch.randn(size // 2, device="cuda" if gpu else "cpu").bfloat16()
        # Every rank makes the same number of calls; otherwise one would wait forever.
        times = []
        reduce = partial(torch.distributed.all_reduce, message)
        for _ in range(REPEATS + 1):
            torch.distributed.barrier()
            times.append(clock.time(reduce, 20))
        times = times[1:]
        middle = statistics.median(times)
        found[size] = {"value": middle, "low": min(times), "high": max(times)}
    answers.put(found)
    torch.distributed.destroy_process_group()


def kv_transfer(*, small: bool) -> dict[str, Any]:
    """Return bytes per second between two processes, and UCX's report of how it moves them.

    Raises `RuntimeError` if the measurement fails.
    """
    script = Path(__file__).with_name("kv_transfer.py")
    done = subprocess.run(  # noqa: S603  (a script of ours, by this interpreter)
        [sys.executable, "-P", str(script), "--mib", "32" if small else "1024"],
        env={**os.environ, "UCX_PROTO_INFO": "y"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    found = next((line for line in reversed(lines) if line.startswith('{"breakeven_kv"')), None)
    if found is None:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it said nothing"])[-1])
    table = [line.partition("|")[2].strip(" |") for line in lines if "|" in line]
    return {**json.loads(found), "ucx": table}


def device(*, gpu: bool) -> dict[str, Any]:
    about: dict[str, Any] = {"kind": "gpu" if gpu else "cpu", "torch": torch.__version__}
    if gpu:
        seen = torch.cuda.get_device_properties(0)
        about |= {"name": seen.name, "count": torch.cuda.device_count(), "cuda": torch.version.cuda}
        about["memory_bytes"] = seen.total_memory
        return about
    threads = torch.get_num_threads()
    return about | {"name": f"{torch.backends.cpu.get_cpu_capability()}", "count": threads}


def _rate(amount: float, seconds: dict[str, float]) -> dict[str, float]:
    """Return `amount` per second. The longest time gives the lowest rate."""
    return {
        "value": amount / seconds["value"],
        "low": amount / seconds["high"],
        "high": amount / seconds["low"],
    }


def _share(seconds: dict[str, float], parts: int) -> dict[str, float]:
    return {name: value / parts for name, value in seconds.items()}


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--small", action="store_true", help="sizes for a processor")
    parser.add_argument("--tokens", nargs="*", type=int, default=list(TOKENS))
    parser.add_argument("--ranks", type=int, help="of the all-reduce; default: the GPUs")
    given = parser.parse_args(arguments)
    gpu = torch.cuda.is_available()
    small = given.small or not gpu
    probe = DeviceProbe(gpu=gpu, small=small, tokens=tuple(given.tokens))
    made: dict[str, Any] = {
        "breakeven_probe": FORMAT,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device(gpu=gpu),
    }
    ranks = given.ranks or (made["device"]["count"] if gpu else 1)
    for part in (each for each in PARTS if each in given.only):
        sys.stderr.write(f"{part}\n")
        if part not in ("all_reduce", "kv_transfer"):
            made[part] = getattr(probe, part)()
            continue
        try:
            if part == "kv_transfer":
                made[part] = kv_transfer(small=small)
            elif ranks > 1:
                made[part] = all_reduce(ranks, gpu=gpu, small=small)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            probe.unavailable[part] = _line(error)
    made["unavailable"] = probe.unavailable
    sys.stdout.write(json.dumps(made) + "\n")
    return 0


if __name__ == "__main__":
    # NVLink multicast can hang a host that other programs share.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    sys.exit(main(sys.argv[1:]))
