"""Rows of one engine on one GPU: decode steps by kernel, shared prefixes, 32 users, saturation.

`make bench-gpurows` where vLLM can be imported (a GPU host: `PYTHONPATH=site python3
tests/bench/bench_gpurows.py`). Models have real shapes and dummy weights. Stages run in the order
of `STAGES`, each only if its time is left (`--seconds`); what is done is kept in `--state`, so that
the same command goes on. The client is `engine bench`'s. `--shape tiny` tries it on a processor.
"""

import argparse
import asyncio
import json
import random
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gpuarms
import gpufork
import gpumodel

from backends.engine import benchload
from backends.engine.benchclient import BenchClient, BenchTarget
from backends.engine.benchfigures import (
    BenchSlo,
    RequestSample,
    RunSummary,
    cost_pusd_per_million,
    point,
)
from backends.engine.benchload import LoadProfile, PromptShape
from backends.http import HttpClient, PoolLimits
from backends.openai import OpenAIBackend

USD_PER_HOUR = Decimal("3.50")
PROMISE = BenchSlo(ttft_s=0.5, tpot_s=0.05)
USERS = 32
MIX = PromptShape(512, 256)
SHARED = PromptShape(512, 8, 400)
SHORT = PromptShape(512, 128)
NONE = {"compilation_config": {"mode": 0, "cudagraph_mode": "FULL_DECODE_ONLY",
                               "cudagraph_capture_sizes": [1, 2, 4, 8]}}  # fmt: skip
COMPILED = {"compilation_config": {"cudagraph_capture_sizes": [1, 2, 4, 8]}}
MARLIN8 = {"VLLM_TEST_FORCE_FP8_MARLIN": "1"}
MARLIN_A8 = {"VLLM_MARLIN_INPUT_DTYPE": "int8"}
# What vLLM does not fuse by itself: rotation with the cache's write, attention with the scaling.
FUSED = {"compilation_config": {
    "cudagraph_capture_sizes": [1, 2, 4, 8], "use_inductor_graph_partition": True,
    "pass_config": {"fuse_attn_quant": True, "fuse_rope_kvcache": True}}}  # fmt: skip
# name: (weights, engine options, environment)
ARMS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "fp8 cutlass": ("fp8", NONE, {}),
    "fp8 marlin": ("fp8", NONE, MARLIN8),
    "fp8 torch": ("fp8", NONE | {"linear_backend": "torch"}, {}),
    "awq machete": ("awq", NONE, {}),
    "awq marlin": ("awq", NONE | {"linear_backend": "marlin"}, {}),
    "gptq marlin": ("gptq", NONE | {"linear_backend": "marlin"}, {}),
    "gptq exllama": ("gptq", NONE | {"linear_backend": "exllama"}, {}),
    "gptq triton": ("gptq", NONE | {"linear_backend": "triton"}, {}),
    "awq marlin atomic": (
        "awq", NONE | {"linear_backend": "marlin"}, {"VLLM_MARLIN_USE_ATOMIC_ADD": "1"}
    ),
    "fp8 cutlass compiled": ("fp8", COMPILED, {}),
    "fp8 marlin compiled": ("fp8", COMPILED, MARLIN8),
    "awq marlin compiled": ("awq", COMPILED | {"linear_backend": "marlin"}, {}),
    "gptq machete": ("gptq", NONE, {}),
    "gptq humming": ("gptq", NONE | {"linear_backend": "humming"}, {}),
    "awq humming": ("awq", NONE | {"linear_backend": "humming"}, {}),
    "gptq humming compiled": ("gptq", COMPILED | {"linear_backend": "humming"}, {}),
    "gptq exllama compiled": ("gptq", COMPILED | {"linear_backend": "exllama"}, {}),
    "fp8 humming": ("fp8", NONE | {"linear_backend": "humming"}, {}),
    "gptq marlin, 8-bit activations": ("gptq", NONE | {"linear_backend": "marlin"}, MARLIN_A8),
    "fp8-static fused compiled": ("fp8-static", FUSED, {}),
    "fp8-static fused, Triton attention, compiled": (
        "fp8-static", FUSED | {"attention_backend": "TRITON_ATTN"}, {},
    ),
    "w4a8 cutlass": ("w4a8", NONE, {}),
    "fp8-static cutlass compiled": ("fp8-static", COMPILED, {}),
    "fp8-static, Triton attention, compiled": (
        "fp8-static", COMPILED | {"attention_backend": "TRITON_ATTN"}, {},
    ),
    "fp8 cutlass, fp8 KV": ("fp8", NONE | {"kv_cache_dtype": "fp8"}, {}),
    "fp8 cutlass, Triton attention": ("fp8", NONE | {"attention_backend": "TRITON_ATTN"}, {}),
}  # fmt: skip
EAGLE = {"method": "eagle", "num_speculative_tokens": 5, "rejection_sample_method": "synthetic",
         "synthetic_acceptance_rates": [0.8, 0.64, 0.512, 0.4096, 0.32768]}  # fmt: skip
GRAPHS = '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}'
BATCHES = ("--max-num-batched-tokens", "512", "--max-num-seqs", "256", "--max-model-len", "4096")
SMALL = ["--max-model-len", "4096", "--max-num-seqs", "64"]


@dataclass(frozen=True)
class Setup:
    """A server: which model, how it is started, which figures are wanted of it."""

    shape: str
    weights: str | None
    flags: tuple[str, ...]
    environ: dict[str, str]
    rows: tuple[str, ...]
    start_limit_s: float
    needs_s: float  # with its rows


class Rows:
    """The stages' common things: options, results so far, the time that is left."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.began = time.monotonic()
        self.found: dict[str, Any] = {}
        if options.state.exists():
            self.found = json.loads(options.state.read_text())

    def left(self) -> float:
        return float(self.options.seconds - (time.monotonic() - self.began))

    def keep(self, stage: str, name: str, value: Any) -> None:
        self.found.setdefault(stage, {})[name] = value
        text = json.dumps(self.found, indent=1) + "\n"
        for path in (self.options.state, self.options.out):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        shown = json.dumps(value)
        print(f"[{time.monotonic() - self.began:5.0f} s] {stage}/{name}: {shown[:420]}", flush=True)

    def model(self, shape: str, weights: str | None, layers: int | None = None) -> Path:
        name = "-".join([shape, weights or "plain", *([str(layers)] if layers else [])])
        return gpumodel.make(self.options.folder / name, shape, weights, layers)

    def log(self, name: str) -> Path:
        return (
            Path(self.options.folder) / "logs" / (name.replace(" ", "-").replace(",", "") + ".log")
        )


def arms(rows: Rows) -> None:
    """Every kernel on a few layers of the 70B shape; one that is done is not run again."""
    for name, (weights, options, environ) in ARMS.items():
        if name in rows.found.get("arms", {}) or name not in (rows.options.arms or ARMS):
            continue
        if rows.left() < rows.options.arm_limit:
            return
        model = rows.model(rows.options.shape, weights, rows.options.layers)
        told = {"VLLM_ENABLE_V1_MULTIPROCESSING": "0", **environ}
        work = partial(gpuarms.decode, model, options)
        rows.keep(
            "arms", name, gpufork.answered(work, rows.log(name), told, rows.options.arm_limit)
        )


def best_arm(rows: Rows, *formats: str) -> str:
    """The shortest step of these formats, by the time of its kernels."""
    done = {
        name: arm["kernels_us"]
        for name, arm in rows.found.get("arms", {}).items()
        if "kernels_us" in arm and name.split()[0] in formats and "compiled" not in name
    }
    return min(done, key=lambda name: done[name]) if done else f"{formats[0]} marlin"


def of_arm(name: str) -> tuple[str, list[str], dict[str, str]]:
    """An arm as a server: its weights, flags and environment."""
    weights, options, environ = ARMS[name]
    flags: list[str] = []
    for key in ("linear_backend", "kv_cache_dtype", "attention_backend"):
        if key in options:
            flags += [f"--{key.replace('_', '-')}", options[key]]
    return weights, flags, environ


def serve(rows: Rows, stage: str, setup: Setup) -> None:
    if rows.found.get(stage, {}).get("done") or rows.left() < setup.needs_s:
        return
    model = rows.model(setup.shape, setup.weights)
    flags = [*setup.flags, *rows.options.flags]
    log = rows.log(stage)
    rows.keep(stage, "setup", {"flags": flags, "environ": setup.environ, "weights": setup.weights,
                               "shape": setup.shape})  # fmt: skip
    server = gpufork.ServedEngine(model, rows.options.port, flags, log, setup.environ)
    try:
        if not server.up(min(setup.start_limit_s, rows.left() - 10)):
            rows.keep(stage, "failed", server.tail())
            return
        rows.keep(stage, "start_s", server.seconds)
        rows.keep(stage, "log", server.said("KV cache size", "Selected", "Using ", "Asynchronous"))
        for row in setup.rows:
            if rows.left() < 15:
                break
            try:
                asyncio.run(asyncio.wait_for(MEASURES[row](rows, stage, server), rows.left() - 8))
            except TimeoutError:
                rows.keep(stage, row, "no time was left")
        rows.keep(stage, "done", True)
    finally:
        server.end()


async def asked(
    server: gpufork.ServedEngine, loops: list[LoadProfile], shared: int = 0
) -> list[list[RequestSample]]:
    http = HttpClient(PoolLimits(connections=2048))
    backend = OpenAIBackend(server.base_url, client=http)
    client = BenchClient(backend, BenchTarget("m", chat=False))
    prompts = benchload.BenchPrompts(shared, random.Random(5), per_word=1.0, around=0.0)
    try:
        return [await client.run(loop, prompts) for loop in loops]
    finally:
        await http.aclose()


def brief(samples: list[RequestSample], promise: BenchSlo = PROMISE) -> dict[str, Any]:
    """A point's figures in ms, and cost at the rate of this bench on both bases."""
    made = point(samples, promise)
    if made is None:
        return {"failed": samples[0].error if samples else "nothing was asked"}
    return figures(made)


def figures(made: RunSummary) -> dict[str, Any]:
    steady = made.rates
    found: dict[str, Any] = {
        "requests": made.requests, "failed": made.failed,
        "in_flight": round(made.in_flight, 1), "steady_s": round(steady.seconds, 1),
        "requests_per_s": round(steady.requests, 3),
        "input_tokens_per_s": round(steady.input_tokens, 1),
        "output_tokens_per_s": round(steady.output_tokens, 1),
        "attainment": round(made.attainment, 4),
    }  # fmt: skip
    for name in ("ttft", "tpot", "itl"):
        for item in getattr(made, name):
            found[f"{name}_ms_p{item.percent}"] = [
                round(1e3 * value, 2) for value in (item.value_s, item.low_s, item.high_s)
            ]
    both = steady.input_tokens + steady.output_tokens
    for basis, rate in (("input+output", both), ("output", steady.output_tokens)):
        pusd = cost_pusd_per_million(USD_PER_HOUR, rate)
        found[f"usd_per_million_{basis}"] = None if pusd is None else round(pusd / 1e12, 4)
    return found


async def decode(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    warm, run = benchload.closed_load(1, 2, SHORT), benchload.closed_load(1, 6, SHORT)
    found = await asked(server, [warm, run])
    rows.keep(stage, "decode", brief(found[1]))


async def shared(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    warm, run = benchload.closed_load(1, 3, SHARED), benchload.closed_load(1, 40, SHARED)
    found = await asked(server, [LoadProfile(warm.asks + run.asks, at_once=1)], SHARED.shared)
    rows.keep(stage, "shared", brief(found[0][3:]))


async def users(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """Arrivals at one distance, at the rate that a closed loop of 32 has, then once corrected."""
    rate = rows.options.rate
    if rate is None:
        loop = benchload.closed_load(USERS, 3 * USERS, MIX, spread_s=6.0)
        closed = brief((await asked(server, [benchload.closed_load(8, 8, MIX), loop]))[1])
        rows.keep(stage, "users closed", closed)
        rate = closed["requests_per_s"]
    for name in ("users paced", "users paced again"):
        paced = brief((await asked(server, [benchload.even_load(rate, round(rate * 36), MIX)]))[0])
        rows.keep(stage, name, {"rate": round(rate, 3), **paced})
        latency_s = (paced["ttft_ms_p50"][0] + 255 * paced["tpot_ms_p50"][0]) / 1e3
        steady = rate * latency_s  # in flight once it has filled, by Little's law
        if abs(steady - USERS) < 2:
            return
        rate *= (USERS / steady) ** 0.6


async def batches(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    for count in (1, 4, 8, 16, 32, 64):
        loop = benchload.closed_load(count, 2 * count if count > 1 else 4, SHORT)
        rows.keep(stage, f"batch {count}", brief((await asked(server, [loop]))[0]))


async def saturation(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """Closed loops, begun one after the other, until TPOT p99 is over the promise."""
    for count in rows.options.at_once:
        loop = benchload.closed_load(count, round(2.5 * count), MIX, spread_s=10.0)
        if rows.left() < 45:
            return
        found = brief((await asked(server, [loop]))[0])
        rows.keep(stage, f"at once {count}", found)
        if found["tpot_ms_p99"][0] > 1e3 * (PROMISE.tpot_s or 0):
            return


MEASURES: dict[str, Callable[..., Any]] = {
    "decode": decode, "shared": shared, "users": users, "batches": batches,
    "saturation": saturation,
}  # fmt: skip


def stages(rows: Rows) -> dict[str, Callable[[], None]]:
    """In order of worth; each says itself when there is no time for it."""
    big = rows.options.shape

    def four_bit() -> None:
        best = rows.options.four_bit or best_arm(rows, "awq", "gptq", "w4a8")
        if best in rows.options.known:
            return
        weights, flags, environ = of_arm(best)
        flags = [*SMALL, "--compilation-config", GRAPHS, *flags]
        serve(rows, "4-bit best", Setup(big, weights, tuple(flags), environ, ("decode", "shared"),
                                        110, 85))  # fmt: skip

    def fp8() -> None:
        weights, flags, environ = of_arm(best_arm(rows, "fp8"))
        flags = [*SMALL, "--compilation-config", GRAPHS, *flags]
        wanted = ("decode", "shared", "batches")
        serve(rows, "fp8 best", Setup(big, weights, tuple(flags), environ, wanted, 110, 110))

    def drafted() -> None:
        weights, flags, environ = of_arm(best_arm(rows, "fp8"))
        head = rows.model(big, None, 1)
        spec = json.dumps(EAGLE | {"model": str(head)})
        flags = [*SMALL, "--compilation-config", GRAPHS, "--speculative-config", spec, *flags]
        wanted = ("decode", "batches")
        serve(rows, "fp8 drafted", Setup(big, weights, tuple(flags), environ, wanted, 110, 110))

    def default70() -> None:
        wanted = ("decode", "shared", "users", "saturation")
        serve(rows, "fp8 default", Setup(big, "fp8", (), {}, wanted, 260, 430))

    def tuned70() -> None:
        # Chunks of 512 tokens, decodes included, are whole tiles of the GEMM and are captured.
        wanted = ("decode", "shared", "users")
        serve(rows, "fp8 tuned", Setup(big, "fp8-static", BATCHES, {}, wanted, 200, 210))

    def users4() -> None:
        weights, flags, environ = of_arm(rows.options.four_bit or best_arm(rows, "awq", "gptq"))
        flags = [*BATCHES, *flags]
        serve(rows, "4-bit users", Setup(big, weights, tuple(flags), environ, ("users",), 130, 160))

    def default8() -> None:
        wanted = ("shared", "decode", "eight")
        serve(rows, "8b default", Setup(rows.options.small, None, (), {}, wanted, 130, 150))

    def tuned8() -> None:
        flags = ("--quantization", "fp8", "--kv-cache-dtype", "fp8", "--max-num-seqs", "1024",
                 "--max-num-batched-tokens", "2048")  # fmt: skip
        wanted = ("shared", "decode", "eight")
        serve(rows, "8b tuned", Setup(rows.options.small, None, flags, {}, wanted, 130, 150))

    return {
        "arms": partial(arms, rows), "fp8": fp8, "four_bit": four_bit, "drafted": drafted,
        "default70": default70, "tuned70": tuned70, "users4": users4, "default8": default8,
        "tuned8": tuned8,
    }  # fmt: skip


async def eight(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """Saturation of the small shape, whose steps are so short that more come at once."""
    for count in rows.options.at_once_small:
        if rows.left() < 30:
            return
        loop = benchload.closed_load(count, 2 * count, MIX, spread_s=8.0)
        found = brief((await asked(server, [loop]))[0])
        rows.keep(stage, f"at once {count}", found)
        if found["tpot_ms_p99"][0] > 1e3 * (PROMISE.tpot_s or 0):
            return


MEASURES["eight"] = eight


def main() -> int:
    options = _options()
    rows = Rows(options)
    rows.keep("about", "preload_s", round(gpufork.preload(), 1))
    made = stages(rows)
    for name in options.only or made:
        made[name]()
    print(f"{rows.left():.0f} s left", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    build = Path(__file__).resolve().parents[2] / "build"
    parser.add_argument("--shape", default="70b")
    parser.add_argument("--small", default="8b")
    parser.add_argument("--layers", type=int, default=16, help="of the arms' models")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--arms", nargs="*", help="names of `ARMS`; default: all")
    parser.add_argument("--arm-limit", type=float, default=75.0, help="seconds of one arm")
    parser.add_argument("--four-bit", help="the arm of 4 bits that is served; default: the best")
    parser.add_argument("--known", nargs="*", default=[], help="arms that need no server again")
    parser.add_argument("--rate", type=float, help="paced arrivals to begin with, requests/s")
    parser.add_argument("--port", type=int, default=8311)
    parser.add_argument("--flags", type=shlex.split, default=[], help="of every server")
    parser.add_argument("--at-once", nargs="*", type=int, default=[96, 128, 160, 192])
    parser.add_argument("--at-once-small", nargs="*", type=int, default=[448, 576, 704])
    parser.add_argument("--folder", type=Path, default=build / "gpurows")
    parser.add_argument("--state", type=Path, default=build / "gpurows" / "state.json")
    parser.add_argument("--out", type=Path, default=build / "bench-gpurows.json")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
