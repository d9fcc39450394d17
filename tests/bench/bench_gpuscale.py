"""One large shape over two GPUs, by tensors and by layers, beside one; bursts under two budgets.

`make bench-gpuscale` where vLLM can be imported and two GPUs are (a GPU host: `PYTHONPATH=site
python3 tests/bench/bench_gpuscale.py`). Every row has the same flags but for how the model is
spread; weights are dummies of a real shape. Stages begin only if their time is left (`--seconds`);
what is done is kept in `--state`, so that the same command goes on. `--shape tiny` tries it on a
processor.
"""

import argparse
import random
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import bench_gpurows as engine_rows
import children
import gpufork
from bench_gpurows import GRAPHS, MIX, Rows, Setup, asked, brief, serve

from backends.engine import benchload
from backends.engine.benchfigures import BenchSlo, RequestSample
from backends.engine.benchload import BenchRequest, LoadProfile, PromptShape

FLAGS = ("--max-model-len", "4096", "--max-num-seqs", "256")
NCCL = "--disable-custom-all-reduce"
# Multicast between GPUs can put a shared host out of service: no kernel that uses it.
ENVIRON = {"VLLM_ALLREDUCE_USE_SYMM_MEM": "0"}
SPREAD = {
    "fp8 on 1": ("fp8", ()),
    "fp8 on 2, tensors": ("fp8", ("--tensor-parallel-size", "2")),
    "fp8 on 2, layers": ("fp8", ("--pipeline-parallel-size", "2")),
    "bf16 on 2, tensors": (None, ("--tensor-parallel-size", "2")),
    "bf16 on 2, layers": (None, ("--pipeline-parallel-size", "2")),
}  # fmt: skip
TIMES = 1.5  # requests of a closed loop, in times of how many are at once
# Steady streams, and prompts that come all at once while they are written.
STREAMS, STREAM = 32, (256, 500)
BURST, BURST_PROMPT, BURST_AT_S = 24, 2000, 2.0
# Short answers to prompts that come faster than they are read: rate and seconds of each run.
CROWDED, RATES = PromptShape(1000, 64), ((30.0, 8.0), (110.0, 10.0))
KEPT = BenchSlo(tpot_s=0.05)  # for the share of such a run: TTFT is lost to the queue anyway


async def loads(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """Closed loops up to what is written at once at most; each is kept as it ends."""
    for count in rows.options.at_once:
        if rows.left() < 25:
            return
        warm = benchload.closed_load(count, count, benchload.PromptShape(MIX.prompt, 4))
        run = benchload.closed_load(count, round(TIMES * count), MIX, spread_s=count / 32)
        found = await asked(server, [warm, run])
        rows.keep(stage, f"at once {count}", brief(found[1]))


async def burst(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """The streams' time of each token, and its slowest, with many prompts coming between."""
    prompt, output = STREAM
    steady = [BenchRequest(0.02 * number, prompt, output) for number in range(STREAMS)]
    crowd = [BenchRequest(BURST_AT_S, BURST_PROMPT, 8)] * BURST
    calm = LoadProfile(tuple(steady))
    for name, loop in (("calm", calm), ("burst", LoadProfile((*steady, *crowd))), ("again", calm),
                       ("burst again", LoadProfile((*steady, *crowd)))):  # fmt: skip
        samples = (await asked(server, [loop]))[0]
        rows.keep(stage, name, of_streams(samples))


def of_streams(samples: list[RequestSample]) -> dict[str, Any]:
    streams = [
        sample for sample in samples if sample.input_tokens < BURST_PROMPT // 2 and not sample.error
    ]
    crowd = [
        sample
        for sample in samples
        if sample.input_tokens >= BURST_PROMPT // 2 and not sample.error
    ]
    tpot = sorted(stream.tpot_s for stream in streams)
    gaps = sorted(gap for stream in streams for gap in stream.gaps_s)
    cuts = quantiles(tpot, n=100, method="inclusive")
    return {
        "streams": len(streams), "crowd": len(crowd), "failed": sum(bool(x.error) for x in samples),
        "tpot_ms_p50": round(1e3 * cuts[49], 2), "tpot_ms_p99": round(1e3 * cuts[98], 2),
        "gap_ms_p99": round(1e3 * quantiles(gaps, n=100, method="inclusive")[98], 2),
        "gap_ms_most": round(1e3 * gaps[-1], 2),
        "crowd_ttft_ms_most": round(1e3 * max((x.ttft_s for x in crowd), default=0.0), 1),
    }  # fmt: skip


async def overload(rows: Rows, stage: str, server: gpufork.ServedEngine) -> None:
    """Open loops: what the engine keeps up with, and about three times that."""
    for rate, seconds in RATES:
        if rows.left() < 4 * seconds:
            return
        run = benchload.poisson_load(rate, round(rate * seconds), CROWDED, random.Random(0))
        before = server.counted("num_preemptions")
        found = brief((await asked(server, [run]))[0], KEPT)
        found["preemptions"] = server.counted("num_preemptions") - before
        rows.keep(stage, f"{rate:g} a second", found)


def spread(rows: Rows, name: str) -> None:
    """Again without vLLM's own all-reduce where the GPUs cannot reach each other's memory."""
    weights, how = SPREAD[name]
    flags = (*FLAGS, "--compilation-config", GRAPHS, *how)
    plain = Setup(rows.options.shape, weights, flags, ENVIRON, ("decode", "loads"), 120, 60)
    served = "nccl" not in rows.found
    if served:
        serve(rows, name, plain)
        served = "failed" not in rows.found.get(name, {})
    if not served and "tensors" in name:
        rows.keep("nccl", name, "vLLM's own all-reduce did not serve")
        other = Setup(**{**asdict(plain), "flags": (*flags, NCCL)})
        serve(rows, f"{name}, NCCL alone", other)
    elif not served:
        serve(rows, name, plain)


def bursts(rows: Rows, budget: int) -> None:
    said = ("--max-num-batched-tokens", str(budget)) if budget else ()
    flags = (*FLAGS, *said, "--no-enable-prefix-caching")
    setup = Setup(rows.options.small, None, flags, {}, tuple(rows.options.measures), 130, 60)
    serve(rows, f"budget {budget or 'default'}", setup)


engine_rows.MEASURES.update(loads=loads, burst=burst, overload=overload)


def stages(rows: Rows) -> dict[str, Callable[[], None]]:
    made = {name: partial(spread, rows, name) for name in SPREAD}
    budgets = {f"budget {budget or 'default'}": budget for budget in rows.options.budgets}
    return made | {name: partial(bursts, rows, budget) for name, budget in budgets.items()}


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
    parser.add_argument("--small", default="8b", help="of the bursts")
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--only", nargs="*", help="names of stages; default: all")
    parser.add_argument("--at-once", nargs="*", type=int, default=[32, 128, 256])
    parser.add_argument(
        "--budgets", nargs="*", type=int, default=[0, 2048, 960], help="0: vLLM's own"
    )
    parser.add_argument(
        "--measures", nargs="*", default=["burst", "overload"], help="what each budget is asked"
    )
    parser.add_argument("--port", type=int, default=8321)
    parser.add_argument("--flags", type=shlex.split, default=[], help="of every server")
    parser.add_argument("--folder", type=Path, default=build / "gpuscale")
    parser.add_argument("--state", type=Path, default=build / "gpuscale" / "state.json")
    parser.add_argument("--out", type=Path, default=build / "bench-gpuscale.json")
    return parser.parse_args()


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
