"""Clients by the thousand that want nothing but to be there: `make soak FULL=1` has all of them.

Slow senders, idle connections, and names without end in everything a client may choose. Whoever
asks for something meanwhile is served; nothing that was held for the others stays.
"""

import asyncio
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from gateway.config.schema_server import TimeoutsSection

FULL = os.environ.get("SOAK_FULL", "0") == "1"
TRICKLING = 2_000 if FULL else 200
IDLE = 10_000 if FULL else 1_000
NAMES = 20_000 if FULL else 1_000
RECEIVE_S = TimeoutsSection().receive_s
CLOSED_S = 10.0
KIB_EACH = 40.0
SLOWER = 1.5  # those who ask, while others only take room
NOISE_S = 0.05  # of a machine that is not alone with this
WARM_S = 1.0
METRICS_BYTES = 1024 * 1024
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n"
PACE_S = 1.0  # between two bytes of a slow sender
AT_ONCE = 200  # connections that are being opened

pytestmark = pytest.mark.long


# One ordinary client, all the time, until its input ends. A process: a thread would wait for the
# crowd that this one makes.
ASKS = """
import json, sys, threading, time, httpx
url, token = sys.argv[1:]
body = {"model": "own", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
    while not over.wait(0.02):
        begun_s = time.monotonic()
        answer = client.post(url, json=body, headers={"authorization": f"Bearer {token}"})
        print(json.dumps([begun_s, time.monotonic() - begun_s, answer.status_code]))
"""


class Asker:
    """`p99_s(since)` is told when it has ended."""

    def __init__(self, host) -> None:
        words = [sys.executable, "-c", ASKS, f"{host.url}/v1/chat/completions", host.token]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers: list[list[float]] = []

    def end(self) -> None:
        if not self.answers:
            out, _ = self._process.communicate(timeout=60)
            self.answers = [json.loads(line) for line in out.splitlines()]

    def p99_s(self, start_s: float, end_s: float) -> float:
        found = sorted(took for begun_s, took, _ in self.answers if start_s <= begun_s < end_s)
        return found[int(len(found) * 0.99)]

    def compared(self, since_s: float) -> tuple[float, float]:
        """Before that moment (a warm second less), and since."""
        now_s = time.monotonic()
        self.end()
        assert {status for *_, status in self.answers} == {200}
        first_s = self.answers[0][0] + WARM_S
        return self.p99_s(first_s, since_s), self.p99_s(since_s, now_s)


@pytest.fixture
def host(make_host):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    made = make_host(server={"port": 0, "workers": 2, "timeouts": {"drain_s": 2}})
    made.start()
    yield made
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def asking(host):
    """Starts calm: its first figure is what the others are compared with."""
    found = Asker(host)
    time.sleep(WARM_S + 4.0)
    yield found
    found.end()


def resident_kib(host) -> float:
    pids = host.pids("gateway.worker")
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4.0 for pid in pids)


async def opened(host, count: int) -> list:
    """So many connections, opened some at a time."""
    name, port = host.url.removeprefix("http://").split(":")
    gate = asyncio.Semaphore(AT_ONCE)

    async def one():
        async with gate:
            return await asyncio.open_connection(name, int(port))

    return list(await asyncio.gather(*(one() for _ in range(count))))


async def trickle(host, count: int) -> list[float]:
    """Seconds until each slow sender was closed: heads and bodies, a byte a second."""

    async def send(number: int, reader, writer) -> float:
        begun_s = time.monotonic()
        if number % 2:
            writer.write(CHAT + b"authorization: Bearer %s\r\n" % host.token.encode())
            writer.write(b"content-length: 999\r\n\r\n{")
        else:
            writer.write(CHAT + b"x: y")
        closed = asyncio.create_task(reader.read())  # an answer, and the end
        while not closed.done():
            writer.write(b" " if number % 2 else b"y")
            await asyncio.wait({closed}, timeout=PACE_S)
        await asyncio.gather(closed, return_exceptions=True)
        writer.close()
        return time.monotonic() - begun_s

    pairs = await opened(host, count)
    sending = (send(number, *pair) for number, pair in enumerate(pairs))
    return list(await asyncio.gather(*sending))


def test_slow_senders_are_closed_and_harm_nobody(host, asking) -> None:
    since_s = time.monotonic()
    took = asyncio.run(trickle(host, TRICKLING))
    calm_s, p99_s = asking.compared(since_s)
    print(f"\n{TRICKLING} slow senders closed after {min(took):.1f} to {max(took):.1f} s; "
          f"who asked: p99 {calm_s * 1e3:.0f} ms, {p99_s * 1e3:.0f} ms meanwhile")  # fmt: skip
    assert len(took) == TRICKLING
    assert max(took) <= CLOSED_S
    assert min(took) >= RECEIVE_S - PACE_S, "the control: nobody was closed before"
    assert p99_s <= SLOWER * calm_s + NOISE_S


async def idle(host, count: int) -> tuple[float, float, float]:
    """(KiB resident before, with all open, seconds until the gateway closed the last)."""
    before = resident_kib(host)
    pairs = await opened(host, count)
    begun_s = time.monotonic()
    await asyncio.sleep(1.0)
    during = resident_kib(host)
    ends = await asyncio.gather(*(reader.read() for reader, _ in pairs), return_exceptions=True)
    assert {end for end in ends if isinstance(end, bytes)} <= {b""}, "nothing is said to them"
    for _, writer in pairs:
        writer.close()
    return before, during, time.monotonic() - begun_s


def test_idle_connections_cost_little_and_go(host, asking) -> None:
    since_s = time.monotonic()
    before, during, took_s = asyncio.run(idle(host, IDLE))
    calm_s, p99_s = asking.compared(since_s)
    each = (during - before) / IDLE
    print(f"\n{IDLE} idle connections: {each:.1f} KiB each, gone after {took_s:.1f} s; "
          f"who asked: p99 {calm_s * 1e3:.0f} ms, {p99_s * 1e3:.0f} ms meanwhile")  # fmt: skip
    assert 0.0 < each <= KIB_EACH
    assert took_s <= CLOSED_S
    assert p99_s <= SLOWER * calm_s + NOISE_S


def series(host) -> tuple[set[str], int, float]:
    """Names with labels, bytes, seconds of one scrape."""
    begun_s = time.monotonic()
    text = host.get("/metrics").text
    took_s = time.monotonic() - begun_s
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return {line.rpartition(" ")[0] for line in lines}, len(text), took_s


def ask_by_name(host, client: httpx.Client, number: int) -> None:
    """One request with a new name, in one of five places."""
    name = f"name-{number}"
    body = {"model": "own", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": f"Bearer {host.token}"}
    method, path = "POST", "/v1/chat/completions"
    match number % 5:
        case 0:
            body["model"] = name
        case 1:
            body["user"] = name
        case 2:
            path = f"/v1/{name}"
        case 3:
            method = f"X{number}"
        case 4:
            headers["user-agent"] = headers["x-session-id"] = name
    if number % 50 > 4:
        body["messages"] = []  # most of them are refused, which costs the test no engine
    client.request(method, host.url + path, content=json.dumps(body), headers=headers)


def test_names_without_end_make_no_series(host) -> None:
    numbers = itertools.count()
    with httpx.Client(trust_env=False, verify=False, timeout=30) as client:
        for number in itertools.islice(numbers, 300):  # every kind of answer, on both workers
            ask_by_name(host, client, number)
        time.sleep(1.0)
        before, _, _ = series(host)
        for number in itertools.islice(numbers, NAMES):
            ask_by_name(host, client, number)
        time.sleep(1.0)
        after, size, took_s = series(host)
        grown = f"{len(before)} series, then {len(after)}"
        print(f"\n{NAMES} names: {grown}; {size} bytes in {took_s:.3f} s")
    assert not [later for later in after if "name-" in later]
    assert after == before
    assert size <= METRICS_BYTES
    assert took_s <= 1.0
    assert len(before) > 20, "the control: what is counted is seen"
