"""Own engines on a GPU, through this gateway: does what was built for them hold on real hardware?

`make bench-gpu` on a host with a GPU and an engine environment (`breakeven engine install`). The
product itself starts, measures and watches a vLLM with dummy weights of an 8B shape:

* `serve`: start, spill while it loads, chat, ledger against vLLM's counters, `engine plan` against
  what vLLM says of its memory; Ctrl-C and what is left.
* `capacity`: what the fitted step-time model promises inside a TPOT, and what the engine does.
* `spill`: little KV cache, many long requests: preemptions with and without the KV filter.

Writes `build/bench-gpu.json` (`--out`). `--shape tiny` tries all of it on a processor.
"""

import argparse
import asyncio
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import gpumodel
from gpuclients import JITTER, Answer, Clients, Shape, figures
from gpuserve import MODEL, Provider, Serve, counters, metrics_page
from ours import ROOT

from backends.engine.catalog import find_gpu
from backends.engine.modelconfig import read_model
from backends.engine.plan import plan_model
from backends.engine.planning.question import PlanRequest
from backends.engine.profiles import hardware
from backends.metrics import parse
from backends.stepmodel import FittedStepModel
from ledger.fleet.capacity import EngineLimits, TrafficSums, rate_of

TTFT_S, TPOT_S = 1.0, 0.02  # the promise of the capacity part
SPILL_TTFT_S = 2.0
MIXES = {"8b": (Shape(512, 256), Shape(4000, 400)), "tiny": (Shape(64, 32), Shape(500, 50))}
AROUND = (0.5, 0.75, 1.0, 1.15, 1.3)  # of the predicted sequences
POINT_S = 12.0
MAX_SEQS, BATCHED_TOKENS = 256, 2048
PROVIDER_TPOT_MS = 25.0
COUNTED = 120  # requests whose tokens are compared with vLLM's
# Long requests, blocks of KV for about forty of them, and static concurrencies tried by hand.
LONG = {"8b": Shape(1000, 1000), "tiny": Shape(150, 500)}
BLOCKS = {"8b": 5001, "tiny": 24}
CONTEXT = {"8b": 4096, "tiny": 2048}
SWEEP = {"8b": (40, 46, 49, 52), "tiny": (2, 3, 4, 5)}
CLIENTS = {"8b": 200, "tiny": 36}


class Bench:
    """What the stages share: options, the model, the results so far."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.shape: str = options.shape
        self.model = gpumodel.make(folder / "models" / f"dummy-{self.shape}", self.shape)
        self.results: dict[str, Any] = {}

    def keep(self, part: str, **found: Any) -> None:
        """Results are written at once: a stage that fails later loses nothing."""
        self.results.setdefault(part, {}).update(found)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        print(f"{part}: {json.dumps(found)}", flush=True)

    def document(
        self, provider: Provider, engine: dict[str, Any], policy: dict[str, Any]
    ) -> dict[str, Any]:
        return {
            "server": {"port": 0, "workers": self.options.workers, "timeouts": {"drain_s": 5}},
            "models": {
                MODEL: {
                    "targets": ["pool:own", "standin/long"],
                    "compare_with": ["openai/gpt-4o-mini"],
                }
            },
            "pools": {
                "own": {
                    "engine": {"kind": "vllm", "served_name": MODEL, **engine},
                    "gpu": {
                        "type": self.options.gpu, "billing": "on_demand", "usd_per_hour": 3.5,
                        "source": "bench",
                    },
                }
            },
            "providers": {
                "standin": {
                    "simulated": True,
                    "base_url": provider.base_url,
                    "prices_as": "openai/gpt-4o-mini",
                }
            },
            "policies": [{"name": "bench", **policy}],
        }  # fmt: skip

    def managed(self, *flags: str) -> dict[str, Any]:
        """The pool's engine section for a replica that `serve` starts."""
        return {
            "model": str(self.model),
            "replicas": 1,
            "environment": str(self.options.environment),
            "flags": ["--load-format", "dummy", *flags],
            "max_num_seqs": MAX_SEQS,
            "prefill_budget_tokens": BATCHED_TOKENS,
        }

    def profile(self) -> dict[str, Any]:
        """The latest that the product measured and kept."""
        files = sorted(
            self.folder.glob("*/state/profiles/*.json"), key=lambda path: path.stat().st_mtime
        )
        found: dict[str, Any] = json.loads(files[-1].read_text())["profile"]
        return found


@contextmanager
def serving(bench: Bench, name: str, document: dict[str, Any]) -> Iterator[Serve]:
    """A gateway that is ended with Ctrl-C, and what that left."""
    serve = Serve(bench.folder / name, document)
    try:
        yield serve
    finally:
        bench.keep("interrupts", **{name: serve.interrupt()})
        if bench.options.logs:
            shutil.copytree(serve.state / "logs", bench.options.logs / name, dirs_exist_ok=True)


def settled(serve: Serve) -> dict[str, Any]:
    """Asks until the engine serves."""

    def ask() -> Answer:
        return asyncio.run(serve.clients("probe").ask(gpumodel.prompt(60), 8))

    return serve.served(ask)


def first(bench: Bench, provider: Provider) -> None:
    """One engine for the parts `serve` and `capacity`."""
    context = gpumodel.SHAPES[bench.shape][5]
    flags = ("--max-model-len", str(context))
    if bench.options.gpu != "CPU":
        flags += ("--gpu-memory-utilization", "0.9")
    promise = {"slo": {"ttft_ms": 1e3 * TTFT_S, "tpot_ms": 1e3 * TPOT_S}}
    document = bench.document(provider, bench.managed(*flags), promise)
    with serving(bench, "first", document) as serve:
        bench.keep("serve", **settled(serve))
        bench.keep("profile", **bench.profile())
        if bench.options.gpu != "CPU":
            planned(bench, serve, context)
        counted(bench, serve)
        for mix in MIXES[bench.shape]:
            capacity(bench, serve, mix)
        feedback = serve.rows(
            "SELECT at_us, step_feedback_ppm, running FROM engine_samples ORDER BY at_us"
        )
        bench.keep("capacity", step_feedback_ppm=[item["step_feedback_ppm"] for item in feedback])
        bench.keep("serve", capacity_rows=serve.rows("SELECT * FROM capacity"))
        serve.settle()
        bench.keep("serve", verify=serve.verify().splitlines()[-1])


def planned(bench: Bench, serve: Serve, context: int) -> None:
    """`engine plan` beside what vLLM says of its cache."""
    sample = parse(metrics_page(serve.engine_url))
    question = PlanRequest(context_tokens=context, batched_tokens=BATCHED_TOKENS)
    made = plan_model(read_model(bench.model), (find_gpu(bench.options.gpu),), question)
    tokens = sample.kv_capacity_tokens or 0
    bench.keep(
        "plan",
        kv_tokens_planned=made["kv_tokens"],
        kv_tokens_engine=tokens,
        error_percent=round(100 * (made["kv_tokens"] / tokens - 1), 2) if tokens else None,
        decode_floor_ms=round(1e3 * made["decode_floor_s"], 3),
        prefill_floor_ms=round(1e3 * made["prefill_floor_s"], 3),
    )


def counted(bench: Bench, serve: Serve) -> None:
    """Chat and plain, streamed and not: the ledger's tokens beside vLLM's own."""
    rng = random.Random(3)

    def asked(count: int) -> Iterator[tuple[str, int, bool]]:
        for number in range(count):
            yield gpumodel.prompt(rng.randint(5, 300)), rng.randint(8, 200), number % 3 != 0

    where = "FROM attempts WHERE backend = 'own' AND status = 'finished'"
    sums = f"SELECT count(*) AS n, sum(input_tokens + cached_tokens + cache_write_tokens) AS prompt, sum(output_tokens) AS output {where}"  # noqa: E501  (one query)
    serve.settle()
    before, engine = serve.rows(sums)[0], counters(serve.engine_url)
    answers: list[Answer] = []
    for chat in (True, False):
        answers += asyncio.run(serve.clients(chat=chat).each(asked(COUNTED // 2), 16))
    serve.settle()
    after, then = serve.rows(sums)[0], counters(serve.engine_url)
    own = [answer for answer in answers if answer.own]
    bench.keep(
        "counts",
        requests=len(answers),
        own=len(own),
        failed=sum(not answer.ok for answer in answers),
        ledger_rows=after["n"] - before["n"],
        ledger=[after[name] - before[name] for name in ("prompt", "output")],
        vllm=[then[name] - engine[name] for name in ("prompt_tokens", "generation_tokens")],
        clients=[sum(item.prompt_tokens for item in own), sum(item.tokens for item in own)],
    )


def capacity(bench: Bench, serve: Serve, mix: Shape) -> None:
    """Predicted at the promise, then measured at and around that many sequences."""
    step = FittedStepModel(**bench.profile()["step"])
    kv = parse(metrics_page(serve.engine_url)).kv_capacity_tokens or 0
    engine = EngineLimits(
        **asdict(step), tpot_s=TPOT_S, kv_capacity_tokens=kv, max_num_seqs=MAX_SEQS
    )
    found = rate_of(engine, traffic(mix))
    name = f"{mix.prompt}/{mix.output}"
    bench.keep("capacity", **{name: {"predicted": None if found is None else asdict(found)}})
    if found is None:
        return
    direct = Clients(serve.engine_url, MODEL)
    points = []
    for share in AROUND:
        clients = min(max(1, round(found.sequences * share)), MAX_SEQS)
        point = {"clients": clients, **load(direct, clients, mix, mix.output * TPOT_S)}
        context = point["at_once"] * (mix.prompt + mix.output / 2)
        predicted = step.step_s(
            sequences=clients,
            context_tokens=context * clients / max(point["at_once"], 1),
            prefill_tokens=clients * mix.prompt / mix.output,
        )
        points.append(point | {"tpot_ms_predicted": round(1e3 * predicted, 3)})
        print(f"  {name}: {points[-1]}", flush=True)
    through = load(serve.clients(), 2 * found.sequences, mix, mix.output * TPOT_S, own=True)
    inside = [
        each_point for each_point in points if each_point.get("tpot_ms_p50", 1e9) <= 1e3 * TPOT_S
    ]
    best = max((item["output_tokens_per_s"] for item in inside), default=0.0)
    bench.keep(
        "capacity",
        **{
            name: {
                "predicted": asdict(found),
                "points": points,
                "best_inside_tokens_per_s": best,
                "predicted_to_best": round(found.output_tokens_per_s / best, 3) if best else None,
                "through_gateway_twice_the_clients": through,
            }
        },
    )


def traffic(mix: Shape) -> TrafficSums:
    """One mean request of the mix: its answers are evenly spread around their length."""
    square = mix.output**2 * (1 + JITTER**2 / 3)
    return TrafficSums(1, mix.prompt, 0, mix.output, mix.output * mix.prompt, square)


def load(
    clients: Clients, count: int, mix: Shape, spread_s: float, *, own: bool = False
) -> dict[str, float]:
    """A closed loop: its figures once everybody works, over `POINT_S`."""
    start_s = time.monotonic() + 1.3 * spread_s
    end_s = start_s + POINT_S
    answers = asyncio.run(
        clients.closed_loop(count, end_s - time.monotonic(), mix, spread_s=spread_s)
    )
    if not own:
        return figures(answers, start_s, end_s)
    kept = [answer for answer in answers if answer.own and answer.ok]
    good = [
        kept_value
        for kept_value in kept
        if kept_value.tpot_s <= TPOT_S and kept_value.ttft_s <= TTFT_S
    ]
    return figures(kept, start_s, end_s) | {
        "spilled": sum(not answer.own for answer in answers),
        "attainment": round(len(good) / len(kept), 4) if kept else 0.0,
    }


def spill(bench: Bench, provider: Provider) -> None:
    """Little KV cache: the engine alone at every concurrency, then everybody at the gateway."""
    flags = ("--num-gpu-blocks-override", str(BLOCKS[bench.shape]))
    flags += ("--max-model-len", str(CONTEXT[bench.shape]))
    shape, most = LONG[bench.shape], CLIENTS[bench.shape]
    policy = {"slo": {"ttft_ms": 1e3 * SPILL_TTFT_S}, "kv_headroom_floor": 0.10}
    document = bench.document(provider, bench.managed(*flags), policy)
    with serving(bench, "scarce", document) as serve:
        settled(serve)
        url = serve.engine_url
        alone = {}
        for count in SWEEP[bench.shape]:
            before = counters(url)["num_preemptions"]
            found = load(Clients(url, MODEL), count, shape, 3.0)
            alone[count] = found | {"preemptions": counters(url)["num_preemptions"] - before}
            print(f"  alone {count}: {alone[count]}", flush=True)
        calm = [item["output_tokens_per_s"] for item in alone.values() if not item["preemptions"]]
        best = max(calm, default=0.0)
        filtered = pressed(serve, url, shape, most)
        bench.keep("spill", alone=alone, best_alone_tokens_per_s=best, filtered=filtered)
        if best:
            bench.keep("spill", share=round(filtered["output_tokens_per_s"] / best, 3))
        reasons = serve.rows(
            "SELECT backend, spill_reason, count(*) AS n FROM attempts GROUP BY 1, 2"
        )
        bench.keep("spill", reasons=reasons)
        policy = {**policy, "kv_headroom_floor": "off"}
        attached = {"endpoints": [url], "max_num_seqs": MAX_SEQS}
        document = bench.document(provider, attached, policy)
        with serving(bench, "unfiltered", document) as other:
            settled(other)
            bench.keep("spill", unfiltered=pressed(other, url, shape, most))


def pressed(serve: Serve, url: str, shape: Shape, clients: int) -> dict[str, Any]:
    """All clients at once: who answered, how fast, and what the engine had to take back."""
    before = counters(url)["num_preemptions"]
    start_s = time.monotonic() + 6.0
    end_s = start_s + 1.5 * POINT_S
    answers = asyncio.run(
        serve.clients().closed_loop(clients, end_s - time.monotonic(), shape, spread_s=2.0)
    )
    own = [answer for answer in answers if answer.own]
    return figures(own, start_s, end_s) | {
        "requests": len(answers),
        "own": len(own),
        "failed_anywhere": sum(not answer.ok for answer in answers),
        "slowest_ttft_s": round(max(answer.ttft_s for answer in answers), 3),
        "slowest_own_ttft_s": round(max((item.ttft_s for item in own), default=0.0), 3),
        "preemptions": counters(url)["num_preemptions"] - before,
    }


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bench-gpu-"))
    bench = Bench(options, folder)
    bench.keep(
        "about",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        hardware=hardware(),
        machine=f"{platform.machine()}, kernel {platform.release()}",
        python=platform.python_version(),
        shape=options.shape,
        workers=options.workers,
    )
    provider = Provider(PROVIDER_TPOT_MS)
    try:
        if "first" in options.only:
            first(bench, provider)
        if "spill" in options.only:
            spill(bench, provider)
    finally:
        provider.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gpu", default="H200", help="name from `breakeven engine list`, or CPU")
    parser.add_argument("--environment", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--shape", choices=sorted(gpumodel.SHAPES), default="8b")
    parser.add_argument("--workers", type=int, default=2, help="gateway workers")
    parser.add_argument("--only", nargs="*", default=["first", "spill"])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench-gpu.json")
    parser.add_argument("--logs", type=Path, help="folder to keep the logs in")
    found = parser.parse_args()
    found.environment = found.environment.resolve()
    return found


if __name__ == "__main__":
    raise SystemExit(main())
