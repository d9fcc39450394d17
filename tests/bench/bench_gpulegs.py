"""Prefill and decode apart on real engines: does each promise hold when things go wrong?

`make bench-gpulegs ARGS="--engine FOLDER"` on a host with a GPU, which both engines share: it shows
that it works, not what two GPUs bring; `--shape tiny --cpu` on a processor, `--simulated` without
an engine. `breakeven serve` starts an engine that reads and one that answers. Then, one by one:
`apart` (what moved, as vLLM's counters tell it), `straight` (two answers of one prompt do not
move), `hangups` (both KV caches are empty before any lease ends), `decoder` and `prefiller` (killed
under load), `ledger` (`ledger verify`, and how legs ended). Each is kept in `--out` as it ends.
"""

import argparse
import asyncio
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import children
import gpumodel
import httpx
from gpuserve import Serve, metrics_page
from ours import ROOT

from backends.engine.environment import Environment, vllm_version
from backends.engine.gpus import gpu_ids
from backends.engine.profiles import hardware

SIMULATED = "h200-llama-3.1-8b-fp8"
MODEL = "long"
LEASE_S = 60
CHEAP, DEAR = "0.000001", "0.01"
SETTLED_S = 10.0  # after a death: requests before it have ended
PROMPT = {"8b": 4000, "1b": 2000, "tiny": 600}  # tokens of a long prompt
CONTEXT = {"8b": 8192, "1b": 4096, "tiny": 2048}
GPU_FLAGS = ("--compilation-config", '{"mode":0,"cudagraph_mode":"FULL_DECODE_ONLY"}')
SHARED = ["--gpu-memory-utilization", "0.42"]  # of both engines on one GPU
MOVED = ("xfer_time_seconds", "post_time_seconds", "bytes_transferred", "num_descriptors")
STEPS = ("apart", "straight", "hangups", "decoder", "prefiller", "again", "ledger")
LEGS = (
    "SELECT role, outcome, count(*) AS n, avg(busy_us) AS busy_us, avg(kv_tokens) AS kv_tokens,"
    " avg(transfer_us) AS transfer_us, min(transfer_us) AS least_us, max(transfer_us) AS most_us"
    " FROM attempt_legs GROUP BY role, outcome ORDER BY role, outcome"
)
ROWS = "SELECT status, engine, count(*) AS n FROM attempts GROUP BY status, engine ORDER BY 1, 2"


class Bench:
    """Options, results so far, and the gateway with its two engines."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        self.results: dict[str, Any] = {}
        self.began_s = time.monotonic()
        self.words = PROMPT[options.shape]

    def keep(self, step: str, **told: Any) -> None:
        self.results.setdefault(step, {}).update(told)
        self.options.out.parent.mkdir(parents=True, exist_ok=True)
        self.options.out.write_text(json.dumps(self.results, indent=1) + "\n", encoding="utf-8")
        at_s = time.monotonic() - self.began_s
        print(f"[{at_s:5.0f} s] {step}: {json.dumps(told)[:900]}", flush=True)

    def document(self) -> dict[str, Any]:
        options = self.options
        engine: dict[str, Any] = {"kind": "simulated", "model": SIMULATED}
        if not options.simulated:
            model = gpumodel.make(self.folder / "model", options.shape)
            flags = ["--load-format", "dummy", "--max-model-len", str(CONTEXT[options.shape])]
            flags += [] if options.cpu else list(GPU_FLAGS)
            flags += SHARED if len(gpu_ids()) == 1 else []
            engine = {"kind": "vllm", "environment": str(options.engine), "model": str(model),
                      "flags": [*flags, *options.flags]}  # fmt: skip
        gpu = {"type": "CPU", "billing": "owned"} if options.cpu else {"type": "H200"}
        roles = {
            "prefill": {"replicas": 1, "bid_price_usd_per_s": CHEAP},
            "decode": {"replicas": 1, "prefill_budget_tokens": 2048, "bid_price_usd_per_s": DEAR},
            "lease_s": LEASE_S,
        }
        return {
            "server": {"port": 0, "workers": options.workers, "timeouts": {"drain_s": 5}},
            "dashboard": {"enabled": False},
            "models": {MODEL: {"targets": ["pool:a"], "compare_with": ["openai/gpt-4o-mini"]}},
            "pools": {"a": {"engine": engine, "roles": roles,
                            "gpu": {**gpu, "usd_per_hour": "3.50", "source": "bench"}}},
            "policies": [{"name": "bench", "otherwise": "best_effort",
                          "slo": {"ttft_ms": 30_000}}],
        }  # fmt: skip


class Engines:
    """The two engines that `serve` started, by role."""

    def __init__(self, serve: Serve) -> None:
        runtime = json.loads((serve.state / "run" / "runtime.json").read_text())
        self.url = {str(seat["role"]): str(seat["base_url"]) for seat in runtime["engines"]}

    def port(self, role: str) -> int:
        return int(self.url[role].rpartition(":")[2].partition("/")[0])

    def used(self, role: str) -> tuple[float, float]:
        """Share of the KV cache in use, and requests under way."""
        page = metrics_page(self.url[role])
        return _sum(page, "kv_cache_usage_perc"), _sum(page, "num_requests_running")

    def moved(self) -> dict[str, float]:
        """What the engine that answers fetched so far: sums, and how many transfers."""
        page = metrics_page(self.url["decode"])
        told = {name: _sum(page, f"nixl_{name}_sum") for name in MOVED}
        return told | {"transfers": _sum(page, "nixl_bytes_transferred_count")}

    def failures(self) -> dict[str, dict[str, float]]:
        names = r"^vllm:(nixl_num_\w+?)(?:_total)?\{[^}]*\} (\S+)$"
        kept: dict[str, dict[str, float]] = {}
        for role, url in self.url.items():
            counted = re.findall(names, metrics_page(url), re.MULTILINE)
            kept[role] = {
                name: float(value)
                for name, value in counted
                if "descriptors" not in name and not name.endswith("_created")
            }
        return kept

    def kill(self, role: str) -> int:
        """The whole process tree of an engine, at once; returns how many processes."""
        pids = _tree(_listener(self.port(role)))
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)


def _sum(page: str, name: str) -> float:
    return sum(
        float(x) for x in re.findall(rf"^vllm:{name}(?:\{{[^}}]*\}})? (\S+)$", page, re.MULTILINE)
    )


def _listener(port: int) -> int:
    """The process whose command says this port. Raises `LookupError`."""
    for place in Path("/proc").glob("[0-9]*"):
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        said = [b"--port", str(port).encode()]
        if any(words[at : at + 2] == said for at in range(len(words))):
            return int(place.name)
    raise LookupError(f"no process serves port {port}")


def _tree(pid: int) -> list[int]:
    kept = [pid]
    for parent in kept:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            kept += [int(word) for word in task.read_text().split()]
    return kept


class LegClients:
    """Clients of the gateway that tell what came."""

    def __init__(self, serve: Serve, words: int) -> None:
        self._words = words
        headers = {"authorization": f"Bearer {serve.keys['bench']}"}
        self.client = httpx.AsyncClient(base_url=serve.base_url, headers=headers, timeout=120,
                                        trust_env=False, limits=httpx.Limits())  # fmt: skip

    def body(self, tokens: int, **members: Any) -> dict[str, Any]:
        message = {"role": "user", "content": gpumodel.prompt(self._words)}
        return {"model": MODEL, "messages": [message], "max_tokens": tokens,
                "ignore_eos": True, **members}  # fmt: skip

    async def whole(self, tokens: int, **members: Any) -> dict[str, Any]:
        """One request to its end: status, decision, seconds, whether words came, how it ended."""
        began_s, first_s, ended = time.monotonic(), None, "whole"
        body = self.body(tokens, **members)
        try:
            async with self.client.stream("POST", "chat/completions", json=body) as reply:
                text = b""
                async for chunk in reply.aiter_raw():
                    text += chunk
                    if first_s is None and b"content" in text:
                        first_s = time.monotonic() - began_s
        except httpx.HTTPError as error:
            return {"status": 0, "decision": "", "ended": repr(error), "words": first_s is not None}
        if (
            reply.status_code != 200
            or (body.get("stream") and b"[DONE]" not in text)
            or b'"error"' in text[-600:]
        ):
            ended = text[-300:].decode("utf-8", "replace")
        return {"status": reply.status_code, "ended": ended, "words": first_s is not None,
                "decision": reply.headers.get("x-breakeven-decision", ""),
                "ttft_s": first_s, "seconds": time.monotonic() - began_s}  # fmt: skip

    async def leave(self, after_s: float, tokens: int) -> bool:
        """Hang up after so long; returns whether a word had come."""
        words = False

        async def read() -> None:
            nonlocal words
            body = self.body(tokens, stream=True)
            async with self.client.stream("POST", "chat/completions", json=body) as reply:
                async for _ in reply.aiter_raw():
                    words = True

        try:
            await asyncio.wait_for(read(), after_s)
        except (TimeoutError, httpx.HTTPError):
            return words
        return words


def _told(answers: list[dict[str, Any]]) -> dict[str, Any]:
    ttft = sorted(x["ttft_s"] for x in answers if x.get("ttft_s") is not None)
    bad = [x for x in answers if x["status"] != 200 or x["ended"] != "whole"]
    return {
        "requests": len(answers),
        "whole": len(answers) - len(bad),
        "apart": sum("prefill=" in x["decision"] for x in answers),
        "lost_without_a_word": sum(not x["words"] for x in bad),
        "broken_after_words": sum(x["words"] for x in bad),
        "ttft_s": [round(ttft[0], 3), round(ttft[len(ttft) // 2], 3), round(ttft[-1], 3)]
        if ttft else None,
        "first_bad": [{**x, "ended": str(x["ended"])[:300]} for x in bad[:3]],
        "decision": answers[-1]["decision"] if answers else "",
    }  # fmt: skip


async def apart(bench: Bench, serve: Serve, engines: Engines, clients: LegClients) -> None:
    before = {} if bench.options.simulated else engines.moved()
    answers = [await clients.whole(16, stream=number % 2 == 0) for number in range(10)]
    answers += await asyncio.gather(*(clients.whole(64, stream=True) for _ in range(16)))
    bench.keep("apart", **_told(answers))
    if not bench.options.simulated:
        await asyncio.sleep(12)  # vLLM publishes its transfers with its next statistics
        after = engines.moved()
        moved = {name: after[name] - before[name] for name in after}
        count = moved["transfers"] or 1
        bench.keep("apart", moved={name: value / count for name, value in moved.items()
                                   if name != "transfers"} | {"transfers": moved["transfers"],
                   "gb_per_s": moved["bytes_transferred"] / 1e9
                   / (moved["xfer_time_seconds"] or float("nan"))})  # fmt: skip
    serve.settle()
    bench.keep("apart", legs=serve.rows(LEGS))


async def straight(bench: Bench, _serve: Serve, _engines: Engines, clients: LegClients) -> None:
    answers = [await clients.whole(16, n=2) for _ in range(6)]
    bench.keep("straight", **_told(answers))


async def hangups(bench: Bench, serve: Serve, engines: Engines, clients: LegClients) -> None:
    calm = [await clients.whole(64, stream=True) for _ in range(4)]
    whole_s = sum(x["seconds"] for x in calm) / len(calm)
    rng = random.Random(5)
    words = await asyncio.gather(
        *(
            clients.leave(rng.uniform(0.005, 1.2 * whole_s), 64)
            for _ in range(bench.options.hangups)
        )
    )
    began_s = time.monotonic()
    bench.keep("hangups", left=len(words), after_words=sum(words), calm_s=round(whole_s, 3))
    if bench.options.simulated:
        return
    while time.monotonic() - began_s < LEASE_S + 15:
        used = {role: engines.used(role) for role in engines.url}
        if not any(value for pair in used.values() for value in pair):
            break
        await asyncio.sleep(0.25)
    bench.keep("hangups", empty_after_s=round(time.monotonic() - began_s, 2), used=used,
               lease_s=LEASE_S, failures=engines.failures())  # fmt: skip
    serve.settle()
    bench.keep("hangups", rows=serve.rows(ROWS))


async def killed(
    bench: Bench, serve: Serve, role: str, engines: Engines, clients: LegClients
) -> None:
    """Clients ask all the while; the engine is killed, and is back when requests go apart."""
    await both_serve(bench, serve, clients)
    answers: list[dict[str, Any]] = []
    stop = asyncio.Event()

    async def client() -> None:
        while not stop.is_set():
            answers.append(await clients.whole(24, stream=True))

    tasks = [asyncio.create_task(client()) for _ in range(bench.options.clients)]
    try:
        await asyncio.sleep(3)
        before, at_s = len(answers), time.monotonic()
        processes = engines.kill("decode" if role == "decoder" else "prefill")
        back_s = None
        while time.monotonic() - at_s < bench.options.back_s and back_s is None:
            await asyncio.sleep(0.5)
            recent = answers[-bench.options.clients :]
            ago_s = time.monotonic() - at_s
            are_apart = all("prefill=" in x["decision"] and x["status"] == 200 for x in recent)
            back_s = round(ago_s, 1) if ago_s > SETTLED_S and are_apart else None
    finally:
        stop.set()
        await asyncio.gather(*tasks)
    bench.keep(role, processes=processes, answered_before=before, apart_again_s=back_s,
               **_told(answers))  # fmt: skip


async def decoder(bench: Bench, serve: Serve, engines: Engines, clients: LegClients) -> None:
    await killed(bench, serve, "decoder", engines, clients)


async def prefiller(bench: Bench, serve: Serve, engines: Engines, clients: LegClients) -> None:
    await killed(bench, serve, "prefiller", engines, clients)


async def again(bench: Bench, _serve: Serve, engines: Engines, clients: LegClients) -> None:
    """After both deaths: requests go apart, and nothing stays held."""
    answers = [await clients.whole(16, stream=True) for _ in range(6)]
    bench.keep("again", **_told(answers))
    if not bench.options.simulated:
        await asyncio.sleep(3)
        bench.keep("again", used={role: engines.used(role) for role in engines.url},
                   failures=engines.failures())  # fmt: skip


async def ledger(bench: Bench, serve: Serve, _engines: Engines, _clients: LegClients) -> None:
    serve.settle()
    bench.keep("ledger", verify=serve.verify().splitlines()[-3:], legs=serve.rows(LEGS),
               rows=serve.rows(ROWS))  # fmt: skip


STEP = {"apart": apart, "straight": straight, "hangups": hangups, "decoder": decoder,
        "prefiller": prefiller, "again": again, "ledger": ledger}  # fmt: skip


async def both_serve(bench: Bench, serve: Serve, clients: LegClients) -> None:
    """Until requests go apart: the engine that reads serves alone before the other one does."""
    began_s = time.monotonic()
    for words in (256, 512, 1024):  # lengths are learned: a word of these is one token, not two
        if words < bench.words:
            await LegClients(serve, words).whole(4)
    answer: dict[str, Any] = {"decision": ""}
    while "prefill=" not in answer["decision"]:
        if time.monotonic() - began_s > bench.options.start_limit:
            raise SystemExit(f"the second engine did not come: {answer}\n{serve.logs()}")
        await asyncio.sleep(1)
        answer = await clients.whole(4)
    bench.keep("start", apart_after_s=round(time.monotonic() - serve.began_s, 1))


async def steps(bench: Bench, serve: Serve) -> None:
    engines, clients = Engines(serve), LegClients(serve, bench.words)
    await both_serve(bench, serve, clients)
    for name in bench.options.only:
        left_s = bench.options.limit - (time.monotonic() - bench.began_s)
        if left_s < 5 and name != "ledger":
            bench.keep(name, skipped=f"{left_s:.0f} s were left")
            continue
        try:
            await asyncio.wait_for(STEP[name](bench, serve, engines, clients), max(20.0, left_s))
        except (Exception, SystemExit) as error:  # noqa: BLE001  (the next step is tried all the same)
            traceback.print_exc()
            bench.keep(name, failed=repr(error)[:600])
    await clients.client.aclose()


def main() -> int:
    options = _options()
    folder = Path(tempfile.mkdtemp(prefix="bench-gpulegs-"))
    bench = Bench(options, folder)
    version = None if options.simulated else vllm_version(Environment(options.engine))
    bench.keep("about", engine=version, hardware=hardware(), shape=options.shape,
               prompt_tokens=bench.words, flags=options.flags)  # fmt: skip
    serve = Serve(folder / "serve", bench.document())
    try:
        clients = serve.clients("probe")
        asked = gpumodel.prompt(64)
        bench.keep("start", **serve.served(lambda: asyncio.run(clients.ask(asked, 8))))
        time.sleep(2)
        asyncio.run(steps(bench, serve))
    finally:
        bench.keep("interrupt", **serve.interrupt())
        if options.logs:
            shutil.copytree(serve.state / "logs", options.logs, dirs_exist_ok=True)
            shutil.copy(folder / "serve" / "serve.out", options.logs / "serve.out")
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--engine", type=Path, default=ROOT / ".breakeven" / "engine")
    parser.add_argument("--simulated", action="store_true", help="no engine: to try this")
    parser.add_argument("--cpu", action="store_true", help="vLLM on a processor")
    parser.add_argument("--shape", choices=sorted(PROMPT), default="8b")
    parser.add_argument("--workers", type=int, default=2, help="gateway workers")
    parser.add_argument("--hangups", type=int, default=60, help="clients that leave")
    parser.add_argument("--clients", type=int, default=6, help="while an engine is killed")
    parser.add_argument("--back-s", type=float, default=120.0, help="patience with its restart")
    parser.add_argument("--start-limit", type=float, default=200.0, help="of the second engine")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds in all")
    parser.add_argument("--only", nargs="*", default=list(STEPS), choices=STEPS)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench-gpulegs.json")
    parser.add_argument("--logs", type=Path)
    found, flags = parser.parse_known_args()
    found.flags = flags  # of every engine
    found.engine = found.engine.resolve()
    return found


if __name__ == "__main__":
    with children.ended_by_signals():
        raise SystemExit(main())
