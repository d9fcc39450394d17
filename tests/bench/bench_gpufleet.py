"""The gateway in front of two real engines: what it costs, what affinity brings, who sees a cache.

`make bench-gpufleet ARGS="--engine FOLDER"` on a host with two GPUs, where FOLDER is an engine
environment (`breakeven engine install`); on one GPU `--gpus 0 0 --gpu-memory-utilization 0.42`;
`--endpoints URL URL` takes engines that already run. One of either is enough for `ttft` and
`rate`, and the cleaner: no placement between two decides what either side gets.

* `ttft`: one user, 512 tokens, straight and through the gateway in turn.
* `rate`: as many at once as keep both engines busy, three ways in turn (`gpurate.py`).
* `affinity`: conversations whose every turn begins with all before it: taken in turns by the
  client, and placed by the gateway. vLLM counts the hits.
* `teams`: is another team's prompt told by its TTFT? AUC of a team's prompt that another team sent
  before, against one that nobody sent; the control is the team's own repeat.

Writes `build/bench-gpufleet.json` (`--out`) as it goes. The model is a dummy of a real shape.
"""

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
from gpurate import measure
from gpuserve import MODEL, Engines, Serve, counters
from ours import ROOT

from backends.engine.benchclient import BenchClient, BenchTarget
from backends.engine.benchfigures import RequestSample
from backends.engine.profiles import hardware
from backends.http import HttpClient, PoolLimits
from backends.openai import Credentials, OpenAIBackend
from backends.secret import Secret

STAGES = ("ttft", "rate", "affinity", "teams")
TTFT_MS, TPOT_MS = 1000, 50  # promised, which is what a prefix that is found is weighed against
PAIRS, PAIR = 150, (512, 8)
ALONE = ("ttft", "rate")  # what one engine is enough for
TALKS, TURNS, TURN, ANSWER = 64, 6, 320, 16
AT_ONCE, ROUNDS = 8, 2
TRIALS, SECRET = 60, 1536
RESAMPLES = 1000


class Bench:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.model = gpumodel.make(folder / "model", options.shape)
        self.results: dict[str, Any] = {}
        self.began_s = time.monotonic()

    def keep(self, part: str, **found: Any) -> None:
        self.results.setdefault(part, {}).update(found)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        at_s = time.monotonic() - self.began_s
        print(f"[{at_s:5.0f} s] {part}: {json.dumps(found)[:600]}", flush=True)

    def document(self, urls: list[str]) -> dict[str, Any]:
        gpu = {"type": self.options.gpu, "billing": "on_demand", "usd_per_hour": 3.5,
               "source": "bench"}  # fmt: skip
        engine = {"kind": "vllm", "served_name": "m", "max_num_seqs": 256,
                  "prefill_budget_tokens": 2048}  # fmt: skip
        return {
            "server": {"port": 0, "workers": self.options.workers, "timeouts": {"drain_s": 5}},
            "models": {MODEL: {"targets": ["pool:own"], "compare_with": ["openai/gpt-4o-mini"]}},
            "pools": {"own": {"engine": {**engine, "endpoints": urls}, "gpu": gpu}},
            "policies": [
                {
                    "name": "bench",
                    "slo": {"ttft_ms": TTFT_MS, "tpot_ms": TPOT_MS},
                    "otherwise": "best_effort",  # straight to the engines nothing is refused, too
                }
            ],
        }


class Sides:
    """The two ways to the engines: straight, and through the gateway with a team's key."""

    def __init__(self, urls: list[str], serve: Serve) -> None:
        self.urls, self.serve = urls, serve
        self._http = HttpClient(PoolLimits(connections=512))

    def straight(self, place: int) -> BenchClient:
        url = self.urls[place % len(self.urls)]
        return BenchClient(OpenAIBackend(url, client=self._http), BenchTarget("m", chat=False))

    def through(self, team: str = "bench") -> BenchClient:
        key = Credentials(Secret(self.serve.keys[team]))
        backend = OpenAIBackend(self.serve.base_url, credentials=key, client=self._http)
        return BenchClient(backend, BenchTarget(MODEL, chat=False))

    async def close(self) -> None:
        await self._http.aclose()


async def ask(client: BenchClient, prompt: str, tokens: int) -> RequestSample:
    found = await client.send_request(prompt, tokens, began=time.monotonic())
    assert found.error is None, found.error
    return found


async def ttft(bench: Bench, sides: Sides) -> None:
    """Pairs, the order of each turned round: the engines and the host are the same for both."""
    through = sides.through()
    pairs: list[tuple[float, float]] = []
    for number in range(PAIRS + 10):
        straight = sides.straight(number)
        both = (straight, through) if number % 2 else (through, straight)
        took = [(await ask(side, gpumodel.prompt(PAIR[0]), PAIR[1])).ttft_s for side in both]
        pairs.append((took[0], took[1]) if number % 2 else (took[1], took[0]))
    kept = pairs[10:]
    rng = random.Random(1)
    gaps = sorted(_gap([kept[rng.randrange(len(kept))] for _ in kept]) for _ in range(RESAMPLES))
    bench.keep(
        "ttft", pairs=len(kept),
        straight_ms_p50=round(1e3 * median(item for item, _ in kept), 3),
        gateway_ms_p50=round(1e3 * median(two for _, two in kept), 3),
        added_ms_p50=round(1e3 * _gap(kept), 3),
        added_ms_95=[round(1e3 * gaps[round(x * RESAMPLES)], 3) for x in (0.025, 0.975)],
    )  # fmt: skip


def _gap(pairs: list[tuple[float, float]]) -> float:
    return median(two for _, two in pairs) - median(item for item, _ in pairs)


async def affinity(bench: Bench, sides: Sides) -> None:
    """New conversations each time, so that no round finds what an earlier one left."""
    rounds: list[dict[str, Any]] = []
    for number in range(2 * ROUNDS):
        name = ("turns", "gateway")[number % 2]
        talks = [[gpumodel.prompt(TURN) for _ in range(TURNS)] for _ in range(TALKS)]
        rng = random.Random(number // 2)  # who comes when: each turn in another order
        asked = [" ".join(talk[:turn]) for turn in range(1, TURNS + 1)
                 for talk in rng.sample(talks, TALKS)]  # fmt: skip
        before = [counters(url) for url in sides.urls]
        began_s = time.monotonic()
        samples = await _talked(sides, asked, straight=name == "turns")
        took_s = time.monotonic() - began_s
        after = [counters(url) for url in sides.urls]
        rounds.append({"side": name, **_hits(before, after, samples, took_s)})
        bench.keep("affinity", rounds=rounds)


async def _talked(sides: Sides, asked: list[str], *, straight: bool) -> list[RequestSample]:
    """So many at once, in order; straight means the engines in turns."""
    samples: list[RequestSample] = []
    places = iter(range(len(asked)))

    async def one() -> None:
        for place in places:
            client = sides.straight(place) if straight else sides.through()
            samples.append(await ask(client, asked[place], ANSWER))

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    return samples


def _hits(
    before: list[dict[str, int]],
    after: list[dict[str, int]],
    samples: list[RequestSample],
    took_s: float,
) -> dict[str, Any]:
    asked = [b["prefix_cache_queries"] - a["prefix_cache_queries"]
             for a, b in zip(before, after, strict=True)]  # fmt: skip
    hits = [b["prefix_cache_hits"] - a["prefix_cache_hits"]
            for a, b in zip(before, after, strict=True)]  # fmt: skip
    times = sorted(sample.ttft_s for sample in samples)
    return {
        "hit_rate": round(sum(hits) / max(sum(asked), 1), 4),
        "tokens_asked_of_each": asked,
        "ttft_ms_p50": round(1e3 * median(times), 2),
        "ttft_ms_p99": round(1e3 * times[int(0.99 * len(times))], 2),
        "seconds": round(took_s, 2),
    }


async def teams(bench: Bench, sides: Sides) -> None:
    """One engine, the other drained: elsewhere a prompt would be new whoever had sent it."""
    sides.serve.command("engine", "drain", "pool:own/1")
    try:
        await _told(bench, sides)
    finally:
        sides.serve.command("engine", "resume", "pool:own/1")


async def _told(bench: Bench, sides: Sides) -> None:
    """Each prompt is new, so what differs is who sent it before."""
    mine, other = (sides.through(team) for team in ("bench", "probe"))
    alone = sides.straight(0)
    found: dict[str, list[float]] = {}
    cached: dict[str, int] = {}
    for number in range(TRIALS + 3):
        secret, unsent, plain = (gpumodel.prompt(SECRET) for _ in range(3))
        # What is compared takes turns, for what was asked before it tells by some tenths of a ms.
        compared = [("new to all", other, unsent), ("another team's", other, secret)]
        for name, client, prompt in (
            ("straight, first", alone, plain),
            ("first", mine, secret),
            *(compared if number % 2 else reversed(compared)),
            ("own again", mine, secret),
            ("straight, again", alone, plain),
        ):
            first_ask = await ask(client, prompt, 2)
            if number >= 3:
                found.setdefault(name, []).append(first_ask.ttft_s)
                cached[name] = cached.get(name, 0) + first_ask.cached_tokens
    new = found["new to all"]
    bench.keep(
        "teams",
        trials=TRIALS,
        ttft_ms_p50={name: round(1e3 * median(times), 2) for name, times in found.items()},
        cached_tokens=cached,
        auc_another_teams=round(auc(found["another team's"], new), 3),
        auc_another_teams_95=_interval(found["another team's"], new),
        auc_own_again=round(auc(found["own again"], new), 3),
        auc_straight_again=round(auc(found["straight, again"], found["straight, first"]), 3),
    )


def auc(shorter: list[float], longer: list[float]) -> float:
    """How often a random one of the first is below one of the second; a half tells nothing."""
    pairs = [(item > two) - (item < two) for two in shorter for item in longer]
    return 0.5 + sum(pairs) / (2 * len(pairs))


def _interval(shorter: list[float], longer: list[float]) -> list[float]:
    """By resampling trials: where 0.5 lies within, nothing is told."""
    rng, places = random.Random(1), range(len(longer))
    found = []
    for _ in range(RESAMPLES):
        drawn = rng.choices(places, k=len(places))
        found.append(auc([shorter[x] for x in drawn], [longer[x] for x in drawn]))
    found.sort()
    return [round(found[round(x * RESAMPLES)], 3) for x in (0.025, 0.975)]


def settled(bench: Bench, serve: Serve, urls: list[str]) -> None:
    """Until it answers and every engine was measured."""

    def own() -> bool:
        return asyncio.run(serve.clients("probe").ask(gpumodel.prompt(60), 8)).own

    serve.until("an answer", own, 120)
    rows = "SELECT engine, source FROM capacity WHERE source LIKE 'measured%'"
    count = len(urls)
    serve.until("all measured", lambda: len({x["engine"] for x in serve.rows(rows)}) == count, 180)
    bench.keep("engines", capacity=serve.rows(rows))


def measured(bench: Bench, urls: list[str]) -> None:
    serve = Serve(bench.folder / "gateway", bench.document(urls))
    try:
        settled(bench, serve, urls)
        for name in bench.options.only:
            if name == "rate":
                keep = partial(bench.keep, "rate")
                measure(urls, serve.base_url, serve.keys["bench"], bench.options.at_once, keep)
                continue
            asyncio.run(_with_sides(STAGE[name], bench, urls, serve))
        serve.settle()
        bench.keep("ledger", verify=serve.verify().splitlines()[-1])
    finally:
        bench.keep("interrupt", **serve.interrupt())
        if bench.options.logs:
            shutil.copytree(serve.state / "logs", bench.options.logs / "gateway",
                            dirs_exist_ok=True)  # fmt: skip


async def _with_sides(stage: Any, bench: Bench, urls: list[str], serve: Serve) -> None:
    sides = Sides(urls, serve)
    try:
        await stage(bench, sides)
    finally:
        await sides.close()


STAGE = {"ttft": ttft, "affinity": affinity, "teams": teams}


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bench-gpufleet-"))
    bench = Bench(options, folder)
    bench.keep("about", at=datetime.now(UTC).isoformat(timespec="seconds"), hardware=hardware(),
               shape=options.shape, workers=options.workers, gpus=options.gpus,
               flags=options.flags)  # fmt: skip
    flags = ("--max-num-seqs", "256", "--max-num-batched-tokens", "2048", *options.flags)
    engines = (
        None if options.endpoints
        else Engines(options.engine, bench.model, options.gpus, options.logs, flags)
    )  # fmt: skip
    try:
        if engines is not None:
            bench.keep("engines", **engines.said)
        urls = options.endpoints or engines.urls
        measured(bench, urls)
    finally:
        if engines is not None:
            engines.end()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--endpoints", nargs="+", help="engines that run, which answer to `m`")
    parser.add_argument("--gpus", type=int, nargs="+", default=[0, 1], help="of each engine")
    parser.add_argument("--gpu", default="H200", help="name from `breakeven engine list`, or CPU")
    parser.add_argument("--shape", choices=sorted(gpumodel.SHAPES), default="8b")
    parser.add_argument("--workers", type=int, default=4, help="gateway workers")
    parser.add_argument("--at-once", type=int, default=96)
    parser.add_argument("--only", nargs="*", default=list(STAGES), choices=STAGES)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench-gpufleet.json")
    parser.add_argument("--logs", type=Path, default=ROOT / "build" / "gpufleet-logs")
    found, flags = parser.parse_known_args()
    found.flags = flags  # of every engine
    if len(found.endpoints or found.gpus) == 1:
        found.only = [name for name in found.only if name in ALONE]
    found.engine, found.logs = found.engine.resolve(), found.logs.resolve()
    return found


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
