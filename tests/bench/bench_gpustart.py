"""An engine set, started as it is installed: seconds to its first answer, and a few rates.

`make bench-gpustart ARGS="--engine FOLDER"` on a host with a GPU: `breakeven serve` starts one
engine of a real shape with dummy weights and vLLM's own defaults; where it does not come up, once
more without compilation, so that one is told from the other. Then a chat completion, one user
(`alone`: time to the first token and for each other), `gateway` (one prompt straight, through a
relay of bytes and through the gateway, in turn: what each adds to the first token), and closed
loops of 512 in and 256 out straight at the engine. All is kept in `--out` as it comes.
`--shape tiny --cpu` tries it.
"""

import argparse
import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
import gpuserve
import httpx
from gpuclients import Clients, Shape, figures
from gpuserve import MODEL, Serve, counters
from ours import ROOT

from backends.engine.environment import Environment, vllm_version
from backends.engine.profiles import hardware

WITHOUT = ("--compilation-config", '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}')
MIX = {"8b": Shape(512, 256), "70b": Shape(512, 256), "1b": Shape(512, 256), "tiny": Shape(64, 32)}
CONTEXT = {"8b": 8192, "70b": 4096, "1b": 4096, "tiny": 1024}


class StartResults:
    """Results, written as they come."""

    def __init__(self, path: Path) -> None:
        self._path, self.results, self._began_s = path, {}, time.monotonic()

    def __call__(self, step: str, **told: Any) -> None:
        self.results.setdefault(step, {}).update(told)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        print(f"[{time.monotonic() - self._began_s:5.0f} s] {step}: {json.dumps(told)[:900]}",
              flush=True)  # fmt: skip


def document(options: argparse.Namespace, model: Path, flags: tuple[str, ...]) -> dict[str, Any]:
    gpu = {"type": "CPU", "billing": "owned"} if options.cpu else {"type": "H200"}
    shape = ["--load-format", "dummy", "--max-model-len", str(CONTEXT[options.shape])]
    engine = {
        "kind": "vllm",
        "environment": str(options.engine),
        "model": str(model),
        "served_name": MODEL,
        "replicas": 1,
        "flags": [*shape, *flags, *options.flags],
    }
    return {
        "server": {"port": 0, "workers": 2, "timeouts": {"drain_s": 5}},
        "dashboard": {"enabled": False},
        "models": {MODEL: {"targets": ["pool:own"], "compare_with": ["openai/gpt-4o-mini"]}},
        "pools": {"own": {"engine": engine,
                          "gpu": {**gpu, "usd_per_hour": "3.50", "source": "bench"}}},
        "policies": [{"name": "bench", "otherwise": "best_effort", "slo": {"ttft_ms": 5000}}],
    }  # fmt: skip


def rates(keep: StartResults, serve: Serve, options: argparse.Namespace) -> None:
    mix, direct = MIX[options.shape], Clients(serve.engine_url, MODEL)
    asyncio.run(direct.ask(gpumodel.prompt(mix.prompt), mix.output))  # the first of its size
    alone = [asyncio.run(direct.ask(gpumodel.prompt(mix.prompt), mix.output)) for _ in range(5)]
    ttft = sorted(1e3 * answer.ttft_s for answer in alone)
    tpot = sorted(1e3 * answer.tpot_s for answer in alone)
    keep("alone", ttft_ms_p50=round(ttft[2], 2), tpot_ms_p50=round(tpot[2], 3),
         failed=sum(not answer.ok for answer in alone))  # fmt: skip
    # Both ask for usage with every chunk, as the gateway asks its engines.
    straight = Clients(serve.engine_url, MODEL, each=True)
    with gpuserve.Relay(serve.engine_url) as relay:
        passed = Clients(relay.base_url, MODEL, each=True)
        for run in range(4):
            ways = {"direct": straight, "relay": passed, "ours": serve.clients("bench")}
            keep("gateway", **{f"ttft_ms_{run}": asyncio.run(first_tokens_ms(ways))})
    for count in options.at_once:
        began_s = time.monotonic()
        loop = direct.closed_loop(count, options.seconds + 3, mix, spread_s=2.0)
        answers = asyncio.run(loop)
        end_s = began_s + 3 + options.seconds
        keep("loops", **{str(count): figures(answers, began_s + 3, end_s)})
    keep("engine", counters=counters(serve.engine_url))


async def first_tokens_ms(ways: dict[str, Clients], rounds: int = 60) -> dict[str, float]:
    """Time to the first token by each way in turn, ms; what the later ways add to the first's."""
    prompt = gpumodel.prompt(60)
    ttft: dict[str, list[float]] = {name: [] for name in ways}
    names = list(ways)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            ttft[name].append(1e3 * (await ways[name].ask(prompt, 4)).ttft_s)
    at = {name: statistics.quantiles(times, n=100) for name, times in ttft.items()}
    told = {f"{name}_p{q}": round(at[name][q - 1], 3) for name in names for q in (50, 95)}
    first = names[0]
    return told | {f"{name}_added_p50": round(at[name][49] - at[first][49], 3)
                   for name in names[1:]}  # fmt: skip


def started(
    keep: StartResults, options: argparse.Namespace, name: str, flags: tuple[str, ...]
) -> bool:
    """Whether it came up; its rates and its end are kept as well."""
    folder = Path(tempfile.mkdtemp(prefix="bench-gpustart-"))
    model = gpumodel.make(folder / "model", options.shape)
    serve = Serve(folder / "serve", document(options, model, flags))
    is_up = False
    try:
        probe = serve.clients("probe")
        keep(name, **serve.served(lambda: asyncio.run(probe.ask(gpumodel.prompt(60), 8))))
        is_up = True
        body = {"model": MODEL, "max_tokens": 12,
                "messages": [{"role": "user", "content": gpumodel.prompt(20)}]}  # fmt: skip
        reply = httpx.post(serve.base_url + "/chat/completions", json=body, timeout=60,
                           headers={"authorization": f"Bearer {serve.keys['bench']}"},
                           trust_env=False)  # fmt: skip
        keep("chat", status=reply.status_code, backend=reply.headers.get("x-breakeven-backend"),
             cost=reply.headers.get("x-breakeven-cost-usd"), body=reply.json())  # fmt: skip
        rates(keep, serve, options)
        serve.settle()
        keep(name, verify=serve.verify().splitlines()[-1])
    except (Exception, SystemExit) as error:  # noqa: BLE001  (kept, and the other way is tried)
        keep(name, failed=str(error)[-3000:])
    finally:
        keep(name, interrupt=serve.interrupt())
        if options.logs:
            shutil.copytree(serve.state / "logs", options.logs / name, dirs_exist_ok=True)
            shutil.copy(folder / "serve" / "serve.out", options.logs / name / "serve.out")
        shutil.rmtree(folder, ignore_errors=True)
    return is_up


def main() -> int:
    options = _options()
    gpuserve.START_LIMIT_S = options.start_limit
    keep = StartResults(options.out)
    keep("about", engine=vllm_version(Environment(options.engine)), hardware=hardware(),
         shape=options.shape, flags=options.flags)  # fmt: skip
    is_up = started(keep, options, "defaults", ())
    return 0 if is_up or started(keep, options, "uncompiled", WITHOUT) else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--cpu", action="store_true", help="vLLM on a processor")
    parser.add_argument("--shape", choices=sorted(MIX), default="8b")
    parser.add_argument("--at-once", nargs="*", type=int, default=[1, 8, 32, 96])
    parser.add_argument("--seconds", type=float, default=8.0, help="of each loop's window")
    parser.add_argument("--start-limit", type=float, default=300.0, help="seconds of a start")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench-gpustart.json")
    parser.add_argument("--logs", type=Path)
    found, flags = parser.parse_known_args()
    found.flags = flags  # of the engine
    found.engine = found.engine.resolve()
    return found


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
