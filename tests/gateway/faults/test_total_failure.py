"""Every target fails, for as long as an outage lasts: `make soak FULL=1` has five minutes of it.

Refusals, silence and broken connections from an engine and from two APIs. Tries stay near requests,
the circuits open after a few failures, and whoever asks meanwhile is answered at once. Errors of
one key alone open no circuit, so there the account of further tries holds them down: the control.
"""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gateway.fleet.circuit_breaker import CIRCUIT_FAILURES
from gateway.request.retry_budget import RESERVE, SHARE

FULL = os.environ.get("SOAK_FULL", "0") == "1"
SECONDS = 300.0 if FULL else 20.0
CLIENTS = 4  # requests under way, at most
PER_S = 100.0  # every other one of them `/healthz`
SILENCE_S = 3.0  # between two tries of a target: its circuit was open
OPENED_S = 2.0
ANSWERED_S = 0.05  # p99 of those who are refused without a try, beyond that of `/healthz`
HEAD_S = 0.4
ENGINE = "h200-llama-3.1-8b-fp8"
MODELS = ("own", "api", "all")
WORKER = "gateway.worker"

pytestmark = pytest.mark.long

# A process: threads of this one would wait for the proxies. Every other one asks for `/healthz`;
# each goes at its time on a connection that is idle, unless so many requests are under way.
ASKS = """
import asyncio, json, sys, time
port, seconds, per_s, clients, *tokens = sys.argv[1:]
found, idle, lines = [], [], []
room = asyncio.Semaphore(int(clients))
def said(number):
    if number % 2:
        return b"GET /healthz HTTP/1.1\\r\\nhost: g\\r\\n\\r\\n"
    number //= 2
    body = json.dumps({"model": ("own", "api", "all")[number % 3], "stream": number % 2 == 0,
        "max_tokens": 3, "messages": [{"role": "user", "content": "hi"}]})
    return ("POST /v1/chat/completions HTTP/1.1\\r\\nhost: g\\r\\n"
        f"authorization: Bearer {tokens[number % len(tokens)]}\\r\\n"
        f"content-length: {len(body)}\\r\\n\\r\\n{body}").encode()
async def one(number):
    if number % 2:
        await asked(number)
    else:
        async with room:
            await asked(number)
async def asked(number):
    line = lines.pop(0) if lines else await asyncio.open_connection("127.0.0.1", port)
    reader, writer = line
    text, begun_s = said(number), time.monotonic()
    writer.write(text)
    head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().lower()
    headers = dict(line.split(": ", 1) for line in head.split("\\r\\n")[1:-2])
    await reader.readexactly(int(headers["content-length"]))
    took_s = time.monotonic() - begun_s
    if headers.get("connection") != "close":
        lines.append(line)
    if number % 2:
        idle.append(took_s)
    else:
        name = headers["x-request-id"]
        found.append([name, int(head[9:12]), took_s, headers.get("retry-after")])
async def all_of_them():
    lines.extend([await asyncio.open_connection("127.0.0.1", port) for _ in range(8)])
    start_s, running = time.monotonic(), []
    for number in range(int(float(seconds) * float(per_s))):
        await asyncio.sleep(max(0.0, start_s + number / float(per_s) - time.monotonic()))
        running.append(asyncio.create_task(one(number)))
    await asyncio.gather_facts(*running)
asyncio.run(all_of_them())
print(json.dumps([found, idle]))
"""


@pytest.fixture
def failing(make_host, make_proxy, targets, rule, answers, patiently):
    """(host, its proxies): all that is asked of a model fails."""
    dice, lock = random.Random(8), threading.Lock()
    refusal = answers.whole(b"{}", b"HTTP/1.1 500 Oh\r\n")
    error, full = rule(answer=refusal), rule(answer=refusal.replace(b"500 Oh", b"503 Full"))
    broken = [rule(after_bytes=0, ending=ending) for ending in ("reset", "fin", "hole")]

    def choose():
        with lock:
            return dice.choice([error, error, error, full, *broken])

    engine, provider = targets.ports
    proxies = {"own": make_proxy(engine), "p": make_proxy(provider), "q": make_proxy(provider)}
    addresses = {name: f"http://127.0.0.1:{proxy.port}/v1" for name, proxy in proxies.items()}
    told = {"simulated": True, "prices_as": "openai/gpt-4o-mini"}
    timeouts = {"head_s": HEAD_S, "whole_s": HEAD_S, "connect_s": HEAD_S, "drain_s": 2}
    host = make_host(
        server={"port": 0, "workers": 1, "timeouts": timeouts},
        models={
            name: {"targets": names, "compare_with": ["openai/gpt-4o-mini"]}
            for name, names in {
                "own": ["pool:main"], "api": ["p/m", "q/m"], "all": ["pool:main", "p/m", "q/m"],
            }.items()
        },
        pools={"main": {
            "engine": {"kind": "simulated", "model": ENGINE, "served_name": "llama",
                       "endpoints": [addresses["own"]]},
            "gpu": {"type": "H200", "usd_per_hour": "3.50"}}},
        providers={name: {"base_url": addresses[name], **told} for name in ("p", "q")},
    )  # fmt: skip
    host.start()
    patiently(lambda: host.rows("settled_us IS NOT NULL"), 60)
    for proxy in proxies.values():
        proxy.choose, proxy.rule = choose, error
        proxy.seen.clear()
    return host, proxies


def asked(host, seconds: float, tokens: list[str]) -> tuple[list[list], list[float]]:
    """[request, status, seconds it took, `retry-after`] of each answer; seconds of `/healthz`."""
    port = host.url.rpartition(":")[2]
    words = [sys.executable, "-c", ASKS, port, str(seconds), str(PER_S), str(CLIENTS), *tokens]
    done = subprocess.run(words, check=True, capture_output=True, timeout=seconds + 120)
    return tuple(json.loads(done.stdout))


def tried(host, proxies, known: set[str], patiently) -> list[dict]:
    """Every try that targets heard of is a row, and settled."""
    count = sum(len(proxy.seen) for proxy in proxies.values())

    def look() -> list[dict]:
        rows = [row for row in host.rows() if row["attempt_id"] not in known]
        return rows if len(rows) >= count and all(row["settled_us"] for row in rows) else []

    rows = patiently(look, 60)
    assert len(rows) == count
    return rows


def spent(pid: int) -> tuple[float, float]:
    """Seconds that a process' first thread ran, and that it waited for a core to run on."""
    run_ns, waited_ns, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(run_ns) / 1e9, int(waited_ns) / 1e9


def late(seconds: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile."""
    ordered = sorted(seconds)
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]


def test_an_outage_is_neither_multiplied_nor_waited_for(failing, rule, patiently) -> None:
    host, proxies = failing
    known = {row["attempt_id"] for row in host.rows()}
    keys, (worker,) = [host.key(f"outage-{number}") for number in range(12)], host.pids(WORKER)
    begun = spent(worker)
    answers, idle = asked(host, SECONDS, keys)
    run_s, waited_s = (now - before for now, before in zip(spent(worker), begun, strict=True))
    rows = tried(host, proxies, known, patiently)
    share = len(rows) / len(answers)
    found = {row["request_id"] for row in rows}
    refused = [took for name, _, took, _ in answers if name not in found]
    (p50, p99), (usual_p50, usual) = late(refused), late(idle)
    print(f"\n{SECONDS:.0f} s: {len(answers)} requests, {len(rows)} tries ({share:.3f} each);")
    print(f"{len(refused)} refused without a try, after {p50:.4f} s (p50), {p99:.4f} (p99);")
    print(f"`/healthz` beside them: {usual_p50:.4f} (p50), {usual:.4f} (p99);")
    print(f"the worker ran for {run_s:.2f} s, and waited {waited_s:.2f} s for a core")
    for name, proxy in proxies.items():
        times = [event.at_s for event in proxy.seen]
        most = next(
            (at for at in range(1, len(times)) if times[at] - times[at - 1] > SILENCE_S), len(times)
        )
        print(f"{name}: {len(times)} tries, {most} in {times[most - 1] - times[0]:.2f} s at first")
        assert most <= CIRCUIT_FAILURES + CLIENTS, "those on their way come on top"
        assert times[most - 1] - times[0] <= OPENED_S
    assert {status for _, status, _, _ in answers} <= {502, 503, 504}
    assert all(after for name, status, _, after in answers if status == 503)
    assert len(rows) <= (1 + SHARE) * len(answers) + RESERVE
    assert p99 <= ANSWERED_S + usual
    for each_proxy in proxies.values():
        each_proxy.choose, each_proxy.rule = None, rule()
    for model in MODELS:  # each is asked again when its silence is over
        patiently(lambda name=model: host.ask(name).status_code == 200, 120)
    assert host.terminate() == 0


def test_of_one_key_every_request_is_tried_once(failing, patiently) -> None:
    """The control: no circuit opens, each target is asked on and on, few ask a second."""
    host, proxies = failing
    known = {row["attempt_id"] for row in host.rows()}
    begun_s = time.monotonic()
    for proxy in proxies.values():
        proxy.choose = None
    answers, _ = asked(host, SECONDS / 5, [host.key("outage")])
    rows = tried(host, proxies, known, patiently)
    print(f"\n{time.monotonic() - begun_s:.0f} s: {len(answers)} requests, {len(rows)} tries")
    assert {row["request_id"] for row in rows} == {name for name, *_ in answers}
    assert len(answers) < len(rows) <= (1 + SHARE) * len(answers) + RESERVE
    assert host.terminate() == 0
