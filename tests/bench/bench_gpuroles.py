"""Two engines whole, of unlike steps, or apart: the share of requests inside both their promises.

`make bench-gpuroles ARGS="--engine FOLDER"` on a host with two GPUs, FOLDER being an engine
environment; `--simulated` starts simulated engines, `--virtual` plays in virtual time.
Layouts, each started as a person starts it (`breakeven serve`):

* `whole 512`, `whole 2048`, `whole 8192`: two replicas that read in steps of so many tokens;
* `unlike`: one of 512, one of 8192;
* `apart`: one reads, one answers, always (the time of who answers is dear);
* `chosen`: the same two engines, and the router chooses for each request;
* `shared`: who reads may answer as well (`roles.prefill_answers`, steps of 2,048 tokens).

Mixes are of two classes, `soon` (first token in 0.5 s, then 30 ms) and `steady` (2 s, 12 ms), in
Poisson arrivals at `--rate`. A run is a line of `--log`, from which the same command goes on.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
from gpuclients import Answer, Clients
from gpuserve import START_LIMIT_S, Serve
from ours import ROOT
from roleplay import figures as virtual_figures
from roleplay import play as play_virtually

from backends.engine.environment import Environment, vllm_version
from backends.engine.profiles import hardware
from backends.engine.worklog import WorkLog, open_log
from gateway.config.settings import Settings

CLASSES = {"soon": (500, 30), "steady": (2000, 12)}  # ms to the first token, ms for each other
MIXES = {"50:50": 0.5, "80:20": 0.8}  # share of `soon`
SIMULATED = "h200-llama-3.1-8b-fp8"
PROMPT, ANSWER = (7.6, 0.7, 64, 7000), (5.0, 0.6, 16, 600)  # lognormal: mu, sigma, least, most
DEAR, USUAL = "0.01", "0.000001"
CONTEXT = 8192
FLAGS = ("--load-format", "dummy", "--no-enable-prefix-caching", "--max-model-len", str(CONTEXT),
         "--compilation-config", '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}')  # fmt: skip


def pools_of(layout: str, engine: Mapping[str, Any]) -> dict[str, Any]:
    """The pools of a layout, two engines in all."""
    gpu = {"type": "H200" if "H200" in hardware() else "H100", "usd_per_hour": "2.50",
           "source": "bench"}  # fmt: skip
    kind, _, size = layout.partition(" ")
    if kind == "whole":
        said = {**engine, "replicas": 2, "prefill_budget_tokens": int(size)}
        return {"a": {"engine": said, "gpu": gpu}}
    if kind == "unlike":
        return {
            name: {
                "engine": {**engine, "replicas": 1, "port": port, "prefill_budget_tokens": tokens},
                "gpu": gpu,
            }
            for name, port, tokens in (("a", 8100, 512), ("b", 8110, 8192))
        }
    price = DEAR if kind == "apart" else USUAL
    roles: dict[str, Any] = {
        "prefill": {"replicas": 1, "bid_price_usd_per_s": USUAL},
        "decode": {"replicas": 1, "prefill_budget_tokens": 2048, "bid_price_usd_per_s": price},
    }
    if kind == "shared":
        roles |= {"prefill_answers": True}
        roles["prefill"] |= {"prefill_budget_tokens": 2048}
        roles["decode"] |= {"prefill_budget_tokens": 512}
    return {"a": {"engine": dict(engine), "gpu": gpu, "roles": roles}}


LAYOUTS = ("whole 512", "whole 2048", "whole 8192", "unlike", "apart", "chosen", "shared")


def document(layout: str, engine: Mapping[str, Any]) -> dict[str, Any]:
    """A model for each class: what is promised follows from what is asked for."""
    pools = pools_of(layout, engine)
    targets = [f"pool:{name}" for name in pools]
    compared = ["openai/gpt-4o-mini"]
    return {
        "server": {"port": 0},
        "dashboard": {"enabled": False},
        "models": {name: {"targets": targets, "compare_with": compared} for name in CLASSES},
        "pools": pools,
        "policies": [
            {"name": name, "match": {"models": [name]}, "otherwise": "best_effort",
             "slo": {"ttft_ms": ttft, "tpot_ms": tpot}}
            for name, (ttft, tpot) in CLASSES.items()
        ],
    }  # fmt: skip


def measure_virtually(options: argparse.Namespace, engine: Mapping[str, Any], log: WorkLog) -> None:
    """Play every layout that is not in the log yet."""
    for layout in options.layouts:
        for mix in options.mixes:
            for run in range(options.runs):
                if f"{layout}/{mix}/{run}" in log.done:
                    continue
                settings = Settings.model_validate(document(layout, engine))
                outcomes = play_virtually(
                    settings, draw_of(MIXES[mix]), options.rate, options.seconds, 11 + run
                )
                told = virtual_figures(outcomes, CLASSES)
                print(layout, mix, run, log.add(f"{layout}/{mix}/{run}", told), flush=True)


def draw_of(share: float) -> Callable[[random.Random], tuple[str, int, int]]:
    """What draws the class of a request, and its tokens in and out."""

    def draw(rng: random.Random) -> tuple[str, int, int]:
        name = "soon" if rng.random() < share else "steady"
        return name, _length(rng, PROMPT), _length(rng, ANSWER)

    return draw


def _length(rng: random.Random, shape: tuple[float, float, int, int]) -> int:
    mu, sigma, least, most = shape
    return int(min(most, max(least, rng.lognormvariate(mu, sigma))))


async def play(serve: Serve, share: float, rate: float, seconds: float, seed: int) -> list[Any]:
    """Every request of a run, with its class; a failure is an answer that is not whole."""
    rng = random.Random(seed)
    clients = {name: Clients(serve.base_url, name, serve.keys["bench"]) for name in CLASSES}
    found: list[tuple[str, Answer | None]] = []

    async def send(name: str, prompt: str, tokens: int) -> None:
        try:
            found.append((name, await clients[name].ask(prompt, tokens)))
        except (OSError, EOFError, asyncio.IncompleteReadError):
            found.append((name, None))

    due, draw = time.monotonic(), draw_of(share)
    end = due + seconds
    async with asyncio.TaskGroup() as group:
        while (due := due + rng.expovariate(rate)) < end:
            name, words, tokens = draw(rng)
            prompt = gpumodel.prompt(words)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            group.create_task(send(name, prompt, tokens))
    return found


def figures(found: list[tuple[str, Answer | None]]) -> dict[str, Any]:
    """Shares of requests that were whole and inside both promises, of all and of each class."""
    kept: dict[str, list[bool]] = {name: [] for name in CLASSES}
    for name, answer in found:
        ttft, tpot = CLASSES[name]
        kept[name].append(
            answer is not None
            and answer.ok
            and 1e3 * answer.ttft_s <= ttft
            and 1e3 * answer.tpot_s <= tpot
        )
    every = [is_kept for values in kept.values() for is_kept in values]
    whole = [(name, answer) for name, answer in found if answer is not None and answer.ok]
    times = {
        f"{name}_{what}_ms": _spread(
            [1e3 * getattr(answer, f"{what}_s") for other, answer in whole if other == name]
        )
        for name in CLASSES
        for what in ("ttft", "tpot")
    }
    return {
        "requests": len(every),
        "failed": sum(answer is None or not answer.ok for _, answer in found),
        "goodput": round(mean(every), 4) if every else None,
        **{name: round(mean(values), 4) if values else None for name, values in kept.items()},
        **times,
    }


def _spread(values: list[float]) -> list[float]:
    """The median, the 95th and 99th percentile; nothing of nothing."""
    values.sort()
    return [round(values[int(share * len(values))], 1) for share in (0.5, 0.95, 0.99) if values]


WAYS = "SELECT engine, count(*) AS attempts FROM attempts GROUP BY engine ORDER BY engine"
LEGS = (
    "SELECT (SELECT count(*) FROM attempt_legs WHERE role = 'prefill' AND"
    " outcome = 'done') AS apart, (SELECT count(*) FROM attempt_legs WHERE outcome = 'failed') AS"
    " failed_legs, (SELECT avg(transfer_us) FROM attempt_legs) AS transfer_us"
)


def measure(options: argparse.Namespace, engine: Mapping[str, Any], log: WorkLog) -> None:
    for layout in options.layouts:
        wanted = [
            (mix, run)
            for mix in options.mixes
            for run in range(options.runs)
            if f"{layout}/{mix}/{run}" not in log.done
        ]
        if not wanted:
            continue
        folder = Path(tempfile.mkdtemp(prefix="gpuroles-"))
        serve = Serve(folder / "serve", document(layout, engine))
        try:
            warm = Clients(serve.base_url, "soon", serve.keys["probe"])
            serve.served(lambda warm=warm: asyncio.run(warm.ask(gpumodel.prompt(256), 8)))
            serve.until("all engines", serve.all_ready, START_LIMIT_S)
            asyncio.run(play(serve, 0.5, options.rate / 2, min(10.0, options.seconds), 0))
            for mix, run in wanted:
                found = asyncio.run(
                    play(serve, MIXES[mix], options.rate, options.seconds, 11 + run)
                )
                serve.settle()
                (legs,) = serve.rows(LEGS)
                ways = {row["engine"]: row["attempts"] for row in serve.rows(WAYS)}
                told = {**figures(found), "engines_so_far": ways, "legs_so_far": legs}
                entry = log.add(f"{layout}/{mix}/{run}", told)
                print(layout, mix, run, entry, flush=True)
            print(serve.verify(), flush=True)
        except SystemExit as error:  # the next layout is tried all the same
            print(layout, "failed:", str(error)[-3000:], flush=True)
        finally:
            serve.interrupt()
            if options.books:
                options.books.mkdir(parents=True, exist_ok=True)
                shutil.copy(serve.state / "ledger.db", options.books / f"{layout}.db")
            shutil.rmtree(folder, ignore_errors=True)


def table(log: WorkLog) -> list[str]:
    """Means of the runs, and the least and the most."""
    lines = [f"{'layout':12} {'mix':6} {'goodput':>8} {'least':>7} {'most':>7} runs"]
    for layout in LAYOUTS:
        for mix in MIXES:
            found = [
                entry["goodput"]
                for key, entry in log.done.items()
                if key.startswith(f"{layout}/{mix}/") and entry["goodput"] is not None
            ]
            if found:
                spread = f"{min(found):7.3f} {max(found):7.3f} {len(found)}"
                lines.append(f"{layout:12} {mix:6} {mean(found):8.3f} {spread}")
    return lines


def main() -> int:
    options = _options()
    if options.simulated or options.virtual:
        engine: dict[str, Any] = {"kind": "simulated", "model": SIMULATED}
        version = "virtual" if options.virtual else "simulated"
    else:
        place = Environment(options.engine.resolve())
        model = gpumodel.make(ROOT / "build" / "gpuroles-model", options.shape)
        engine = {"kind": "vllm", "environment": str(options.engine.resolve()),
                  "model": str(model), "flags": [*FLAGS, *options.flags]}  # fmt: skip
        version = str(vllm_version(place))
    about = {"roles": 1, "engine": version, "hardware": hardware(), "rate": options.rate,
             "seconds": options.seconds, "shape": options.shape,
             "flags": options.flags}  # fmt: skip
    with open_log(options.log):
        log = WorkLog(options.log, about)
        (measure_virtually if options.virtual else measure)(options, engine, log)
        print("\n".join(table(log)))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--simulated", action="store_true", help="no GPU: to try this")
    parser.add_argument("--virtual", action="store_true", help="no GPU and no time")
    parser.add_argument("--shape", choices=sorted(gpumodel.SHAPES), default="8b")
    parser.add_argument("--flags", action="append", default=[], help="one of every engine's")
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of one run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=LAYOUTS)
    parser.add_argument("--mixes", nargs="+", choices=sorted(MIXES), default=sorted(MIXES))
    parser.add_argument("--books", type=Path, help="a folder that keeps each layout's ledger")
    parser.add_argument("--log", type=Path, default=ROOT / "build" / "bench-gpuroles.jsonl")
    return parser.parse_args()


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
