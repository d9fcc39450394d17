"""The same policy in real processes and in virtual time: do a what-if's figures come true?

`breakeven serve` with two workers, four simulated engines and two simulated APIs, everything
slowed alike (engines, APIs and promises), so that this machine is never what is waited for. Chat as
recorded comes at twice what the engines can do inside their promise, each request over HTTP and
streamed, its first token timed by its client. Then the same arrivals, with the tokens that were
counted, go through `policy simulate`'s replay under the same configuration. A run on a busy machine
does not count.

    make bench-processes                          # ten minutes, and a minute of virtual time
    make bench-processes ARGS="--seconds 60"
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402  (after the checkout's packages)
import yaml  # noqa: E402  (after the checkout's packages)
from cells import H100  # noqa: E402  (as above)
from measure import until  # noqa: E402  (as above)
from ours import COMMAND  # noqa: E402  (as above)
from traces import Load, Traces  # noqa: E402  (as above)
from wire import free_ports  # noqa: E402  (as above)

from backends.simulator.latency import Latency  # noqa: E402  (as above)
from backends.simulator.shape import EngineShape  # noqa: E402  (as above)
from backends.simulator.shapefile import save  # noqa: E402  (as above)
from backends.simulator.words import TOKEN_BYTES  # noqa: E402  (as above)
from gateway.config.settings import load  # noqa: E402  (as above)
from gateway.whatif.replay_fleet import ApiLatencySource, EngineModelSource, ReplayFleet  # noqa: E402  (as above)
from gateway.whatif.traffic import Arrival  # noqa: E402  (as above)
from gateway.whatif.whatif_run import run_whatif  # noqa: E402  (as above)
from ledger.database import make_engine  # noqa: E402  (as above)
from ledger.prices.stored import load_price_book  # noqa: E402  (as above)

ENGINES, APIS, WORKERS = 4, ("near", "far"), 2
CAPACITY_RPS = 14.1  # of one engine inside 500 and 50 ms, chat (`bench_routing.py --capacity`)
TTFT_MS, TPOT_MS = 500.0, 50.0
LONGEST = 400  # tokens of an answer, so that the last one ends soon after the last request
IDLE_LEAST, OFF_MOST = 0.20, 0.05
SEEDS = 5  # of the APIs' latencies in virtual time
FIGURES = ("own share", "own kept", "all kept", "avoided of value")


@dataclass
class ClientRecord:
    """What one client saw; times in seconds of the wall."""

    at_s: float
    backend: str = ""
    ttft_s: float = 0.0
    tpot_s: float = 0.0
    prompt: int = 0
    output: int = 0


def slowed(shape: EngineShape, slow: float) -> EngineShape:
    step = shape.step
    slower = {name: slow * getattr(step, name) for name in ("a_s", "b_s", "c_s", "d_s", "t0_s")}
    return replace(shape, step=replace(step, **slower), prefix_caching=False)


def configuration(folder: Path, ports: list[int], engine: Path, slow: float) -> dict[str, Any]:
    gateway, *apis = ports
    targets = ["pool:main", *(f"{name}/m" for name in APIS)]
    prices = {"near/m": {"input": 0.15, "output": 0.6}, "far/m": {"input": 0.18, "output": 0.72}}
    book = folder / "prices.yaml"
    book.write_text(
        yaml.safe_dump(
            {"source": "bench", "prices": {n: {"usd_per_million": p} for n, p in prices.items()}}
        )
    )
    slo = {"ttft_ms": slow * TTFT_MS, "tpot_ms": slow * TPOT_MS, "attainment": 0.99}
    return {
        "state_dir": str(folder / "state"),
        "server": {
            "port": gateway, "workers": WORKERS,
            "timeouts": {"head_s": 600, "idle_s": 600, "total_s": 3600},
        },
        "models": {"chat": {"targets": targets, "compare_with": ["near/m"]}},
        "pools": {
            "main": {
                "engine": {"kind": "simulated", "model": str(engine), "served_name": "m",
                           "replicas": ENGINES, "port": 0},
                "gpu": {"type": "H100", "usd_per_hour": 2.5, "source": "bench"},
            }
        },
        "providers": {
            name: {"base_url": f"http://127.0.0.1:{port}/v1", "simulated": True}
            for name, port in zip(APIS, apis, strict=True)
        },
        "policies": [{"name": "chat", "slo": slo, "kv_headroom_floor": 0.05}],
        "prices": [str(book)],
        "dashboard": {"enabled": False},
    }  # fmt: skip


async def ask(port: int, token: str, arrival: Arrival, number: int, began_s: float) -> ClientRecord:
    """One request at its time; its prompt is text of its own, so that none is in a cache."""
    await asyncio.sleep(max(0.0, began_s + arrival.at_s - time.monotonic()))
    text = f"{number:07d} " + "word" * max(0, arrival.prompt_tokens - 2 - 8)
    body = json.dumps(
        {"model": "chat", "max_tokens": LONGEST,
         "stream": True, "stream_options": {"include_usage": True},
         "messages": [{"role": "user", "content": text[: TOKEN_BYTES * arrival.prompt_tokens]}]}
    ).encode()  # fmt: skip
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {token}\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode()
    sent_s = time.monotonic()
    found, came, first_s, last_s = ClientRecord(sent_s - began_s), b"", 0.0, sent_s
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    try:
        writer.write(head + body)
        while part := await reader.read(65_536):
            last_s = time.monotonic()
            came = came[-2000:] + part if first_s else came + part
            if not first_s and b'"content":"' in came:
                first_s = last_s
                found.backend = _header(came, b"x-breakeven-backend")
    finally:
        writer.close()
    told = came[came.rindex(b'"usage":{') + len(b'"usage":') :].decode()
    usage, _ = json.JSONDecoder().raw_decode(told)
    found.prompt, found.output = usage["prompt_tokens"], usage["completion_tokens"]
    found.ttft_s = first_s - sent_s
    found.tpot_s = (last_s - first_s) / max(1, found.output - 1)
    return found


def is_ready(port: int) -> bool:
    try:
        answer = httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def _header(came: bytes, name: bytes) -> str:
    place = came.lower().index(b"\r\n" + name + b":") + len(name) + 3
    return came[place:].partition(b"\r\n")[0].strip().decode()


def figures(answers: list[ClientRecord], slow: float) -> dict[str, float]:
    def kept(answered: ClientRecord) -> bool:
        return 1e3 * answered.ttft_s <= slow * TTFT_MS and 1e3 * answered.tpot_s <= slow * TPOT_MS

    own = [answer for answer in answers if answer.backend.startswith("pool:")]
    return {
        "own share": len(own) / len(answers),
        "own kept": sum(map(kept, own)) / max(1, len(own)),
        "all kept": sum(map(kept, answers)) / len(answers),
        "avoided of value": sum(map(_worth, own)) / sum(map(_worth, answers)),
    }


def _worth(answered: ClientRecord) -> int:
    """At the nearer API, in pico-USD."""
    return 150_000 * answered.prompt + 600_000 * answered.output


def virtual(
    config: Path, shape: EngineShape, answers: list[ClientRecord], slow: float
) -> dict[str, float]:
    """The replay under the same configuration, of the tokens that were counted; mean of seeds."""
    settings, latency = load(config), Latency()
    latency = replace(latency, ttft_s=slow * latency.ttft_s, tpot_s=slow * latency.tpot_s)
    books = make_engine(f"sqlite:///{settings.state_dir}/ledger.db")
    seen = {f"{name}/m": ApiLatencySource(latency, "bench") for name in APIS}
    house = ReplayFleet(
        settings, load_price_book(books), {"main": EngineModelSource(shape, "bench")}, seen,
        time.time_ns() // 1000,
    )  # fmt: skip
    books.dispose()
    arrivals = [
        Arrival(answer.at_s, answer.prompt, answer.output, "chat", "bench", LONGEST)
        for answer in answers
    ]
    means = dict.fromkeys(FIGURES, 0.0)
    for seed in range(SEEDS):
        document = run_whatif(house, [("as configured", settings)], arrivals, seed, lambda *_: None)
        (found,) = document["results"]
        (rule,), spill = found["classes"], found["spill"]
        item = (
            1.0 - spill["share_by_count"], rule["attainment_own"], rule["attainment"],
            1.0 - spill["share_by_value"],
        )  # fmt: skip
        for name, share in zip(FIGURES, item, strict=True):
            means[name] += share / SEEDS
    return means


def idle_s() -> tuple[float, float]:
    """(idle, all) seconds of every core since boot."""
    fields = [float(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return fields[3] + fields[4], sum(fields[:8])


async def drive(port: int, token: str, arrivals: list[Arrival]) -> list[ClientRecord]:
    began_s = time.monotonic() + 1.0
    tasks = [
        asyncio.create_task(ask(port, token, arrival, number, began_s))
        for number, arrival in enumerate(arrivals)
    ]
    told = asyncio.create_task(_tell(tasks))
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        told.cancel()


async def _tell(tasks: "list[asyncio.Task[ClientRecord]]") -> None:
    while True:
        await asyncio.sleep(30)
        print(f"  {sum(task.done() for task in tasks)} of {len(tasks)} answered", flush=True)


def measured(
    folder: Path, given: argparse.Namespace
) -> tuple[list[ClientRecord], float, Path, EngineShape]:
    """The run in real processes: answers, how idle the machine was, and what it ran with."""
    shape, slow = slowed(H100, given.slow), given.slow
    engine, config = folder / "engine.json", folder / "breakeven.yaml"
    save(engine, shape)
    ports = free_ports(1 + len(APIS))
    config.write_text(yaml.safe_dump(configuration(folder, ports, engine, slow)))
    rate = given.times * CAPACITY_RPS * ENGINES / slow
    traces = Traces()
    load_ = Load((("conv", (("chat", 1.0),)),), rate, given.seconds, 100_000)
    arrivals = traces.arrivals(load_, given.seed)
    print(f"{len(arrivals)} requests in {given.seconds:g} s, everything {slow:g} times slower")
    if traces.stand_in:
        print("NO RECORDED TRACES: drawn stand-ins, whose figures compare with nothing")
    named = [word for n, p in zip(APIS, ports[1:], strict=True) for word in
             ("--name", n, "--port", str(p))]  # fmt: skip
    providers = [sys.executable, "-m", "backends.simulator.provider", *named,
                 "--speed", str(1.0 / slow), "--seed", str(given.seed)]  # fmt: skip
    log = (folder / "log").open("wb")
    started = [subprocess.Popen(providers, cwd=ROOT, stdout=log, stderr=log)]
    try:
        serve = [*COMMAND, "serve", "--config", str(config)]
        started.append(subprocess.Popen(serve, cwd=ROOT, stdout=log, stderr=log))
        until("readiness", lambda: is_ready(ports[0]), limit_s=90, pause_s=0.5)
        made = subprocess.run(
            [*COMMAND, "keys", "create", "--name", "bench", "--team", "bench",
             "--config", str(config), "--json"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )  # fmt: skip
        token = json.loads(made.stdout)["token"]
        time.sleep(5.0)  # every engine is met
        before = idle_s()
        answers = asyncio.run(drive(ports[0], token, arrivals))
        after = idle_s()
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait(60)
        log.close()
    return answers, (after[0] - before[0]) / (after[1] - before[1]), config, shape


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--times", type=float, default=2.0, help="of the engines' capacity")
    parser.add_argument("--slow", type=float, default=10.0, help="how much slower everything is")
    parser.add_argument("--seed", type=int, default=random.Random().randrange(1000))
    given = parser.parse_args()
    folder = ROOT / "build" / f"processes-{os.getpid()}"
    folder.mkdir(parents=True)
    answers, idle, config, shape = measured(folder, given)
    real, played = figures(answers, given.slow), virtual(config, shape, answers, given.slow)
    off = {name: real[name] / played[name] - 1.0 for name in FIGURES}
    print(f"seed {given.seed}, idle {idle:.1%}\n{'':18}processes  virtual time  off")
    for name in FIGURES:
        print(f"{name:18}{real[name]:<11.3f}{played[name]:<14.3f}{off[name]:+.1%}")
    document = {"given": vars(given), "idle": idle, "processes": real, "virtual": played}
    (ROOT / "build" / "bench-processes.json").write_text(json.dumps(document, indent=1) + "\n")
    if idle < IDLE_LEAST:
        print(f"the run does not count: the machine was {idle:.0%} idle, {IDLE_LEAST:.0%} needed")
        return 1
    return 0 if all(abs(item) <= OFF_MOST for item in off.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
