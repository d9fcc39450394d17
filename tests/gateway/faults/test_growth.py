"""Hours of traffic, nothing is killed, and nothing may grow: `make soak STRIKES=0 SECONDS=7200`.

One worker of `breakeven serve`, so that it serves every request, at a steady rate: one client of
five leaves, one try of twenty fails. Of each process of the host its memory, files, threads and
tasks are read every few seconds, and the bytes on disk beside the ledger's rows; a line is laid
through what was read after the warm-up. The controls plant a leak of each kind.
"""

import asyncio
import contextlib
import json
import os
import random
import socket
import statistics
import struct
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

from ledger.database import open_readonly

SECONDS = float(os.environ.get("SOAK_SECONDS", "120"))
PER_S = float(os.environ.get("SOAK_PER_S", "33"))  # requests; 2 h of them are 237,600
SEED = int(os.environ.get("SOAK_SEED", "0")) or time.time_ns() % 10**6
CONTROL_S = 50.0
WARM = 0.25  # of a run, before anything is compared
SAMPLE_S, TOLD_EVERY = 2.0, 30  # often: what is open at one moment moves by ten
MIB = 1024 * 1024
GROWN_MIB_PER_H = 1.0
FULL_H = 1.0  # from here on the rule's figure stands alone
SETTLING_MIB = 4.0  # what caches that still fill may add in a run that is shorter
FILES, THREADS, TASKS = 4, 2, 4  # the least of the last quarter above that of the first
JOURNAL_MIB = 2 * 64.0 + 4.0  # a segment goes when all of it is applied; and its reserve
OTHER_DISK_MIB = 1.0  # counters, logs
LEAVES, FAILS = 0.20, 0.05
ENGINE = "h200-llama-3.1-8b-fp8"
KEPT = 64  # accounts of the proxies: what they saw is not asked here
RESET = struct.pack("ii", 1, 0)
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}

# Runs in each process of the host: what only the process itself can count. `leak` plants one.
INSIDE = """
import json, os, sys, threading, time
from pathlib import Path

FOLDER, KEPT = Path(__file__).parent, []

def unfinished():
    tasks = sys.modules["asyncio"].tasks._all_tasks if "asyncio" in sys.modules else ()
    for _ in range(100):
        try:
            return sum(not task.done() for task in list(tasks))
        except RuntimeError:  # it changed meanwhile
            time.sleep(0.001)
    return -1

def one_more(kind):
    if kind == "memory":
        KEPT.append(bytearray(os.urandom(64)) * 256)
    elif kind == "files":
        KEPT.append(os.open(os.devnull, os.O_RDONLY))
    elif kind == "tasks":
        asyncio = sys.modules["asyncio"]
        KEPT.append(asyncio.get_running_loop().create_task(asyncio.sleep(10**6)))
    elif kind == "threads" and os.urandom(1) < b"\\x10":
        threading.Thread(target=time.sleep, args=(10**6,), daemon=True).start()

def plant(kind):
    while not hasattr(sys.modules.get("gateway.ids"), "RequestIds"):
        time.sleep(0.5)
    ids = sys.modules["gateway.ids"].RequestIds
    original = ids.__call__
    def leaking(self):
        one_more(kind)
        return original(self)
    ids.__call__ = leaking

def watch():
    while True:
        counted = {"tasks": unfinished(), "blocks": sys.getallocatedblocks()}
        path = FOLDER / f"{os.getpid()}.json"
        path.with_suffix(".new").write_text(json.dumps(counted))
        path.with_suffix(".new").rename(path)
        time.sleep(2.0)

if "-m" in sys.orig_argv or "serve" in sys.orig_argv:
    leak = (FOLDER / "leak").read_text()
    if leak and "gateway.worker" in sys.orig_argv:
        threading.Thread(target=plant, args=(leak,), daemon=True).start()
    threading.Thread(target=watch, daemon=True).start()
"""


@dataclass(slots=True)
class Sample:
    """One look: per process its figures, on disk bytes by name, and the ledger's rows."""

    at_s: float
    processes: dict[str, dict[str, float]]
    disk: dict[str, int]
    rows: int


@dataclass(slots=True)
class Tally:
    asked: int = 0
    said: Counter[str] = field(default_factory=Counter)
    finished: dict[str, int] = field(default_factory=dict)  # output tokens


def trouble(rng: random.Random, rule, answers):
    """Of one try: one of twenty fails, in a way of its own."""
    if rng.random() >= FAILS:
        return rule()
    dice = rng.random()
    if dice < 0.4:
        status = rng.choice(("500 Oh", "502 Bad", "503 Full", "404 No"))
        return rule(answer=answers.whole(b"{}", f"HTTP/1.1 {status}\r\n".encode()))
    if dice < 0.5:
        return rule(answer=answers.whole(b"<html>"))
    ending = rng.choice(("reset", "fin", "half", "hole"))
    return rule(after_bytes=rng.randrange(4000), ending=ending)


def request(rng: random.Random, token: str) -> tuple[str, bool, bytes]:
    """(its dialect, whether it is a stream, its bytes)."""
    dialect = rng.choices(tuple(PATHS), (8, 1, 1))[0]
    stream, words = rng.random() < 0.6, "word " * rng.randrange(1, 200)
    tokens = rng.randrange(1, 60)
    body: dict[str, Any] = {"model": rng.choice(("own", "api", "both")), "stream": stream}
    if dialect == "responses":
        body |= {"input": words, "max_output_tokens": tokens + 15}
    else:
        body |= {"messages": [{"role": "user", "content": words}], "max_tokens": tokens}
    if dialect == "chat":
        body["ignore_eos"] = True
        if stream:
            body["stream_options"] = {"include_usage": True}
    if rng.random() < 0.01:
        body["model"] = f"unknown-{rng.randrange(10**9)}"
    said = json.dumps(body).encode()
    again = f"idempotency-key: {rng.randrange(10**12)}\r\n" if rng.random() < 0.02 else ""
    if rng.random() < 0.01:
        token = f"{token[:-8]}{rng.randrange(10**8):08}"
    head = (
        f"POST {PATHS[dialect]} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\n{again}content-length: {len(said)}\r\n\r\n"
    )
    return dialect, stream, head.encode() + said


class Clients:
    """Open loop: as many a second as asked for, on kept connections and on new ones."""

    def __init__(self, host, rng: random.Random) -> None:
        self.tally = Tally()
        self._host, self._rng = host, rng
        self._address = host.url.removeprefix("http://").split(":")
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def ask_for(self, seconds: float) -> None:
        start_s = time.monotonic()
        for number in range(int(seconds * PER_S)):
            await asyncio.sleep(max(0.0, start_s + number / PER_S - time.monotonic()))
            task = asyncio.create_task(self._one())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if self._running:
            await asyncio.wait(self._running, timeout=60)
        assert not self._running, "a client never came to its end"
        for _, writer in self._idle:
            writer.transport.abort()
        await asyncio.sleep(0.1)  # they are closed by the loop

    async def _one(self) -> None:
        rng, said = self._rng, self.tally.said
        dialect, stream, text_ = request(rng, self._host.token)
        leaves = rng.random() < LEAVES
        self.tally.asked += 1
        line, keep = None, False
        try:
            kept = bool(self._idle) and rng.random() < 0.8
            line = self._idle.pop() if kept else await self._connected()
            line[1].write(text_)
            if leaves:
                said["left"] += 1
                await self._left(line, rng)
                return
            read, whole = await self._answer(line[0])
            keep = whole and len(self._idle) < 16 and b"connection: close" not in read[:600]
            self._note(read, dialect, stream=stream, whole=whole)
        except (OSError, asyncio.IncompleteReadError) as error:
            said[type(error).__name__] += not leaves
        finally:
            if keep:
                self._idle.append(line)
            elif line is not None:
                line[1].transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self._address)

    async def _left(self, line, rng: random.Random) -> None:
        """After some bytes, or some time; half with FIN and half with RST."""
        reader, writer = line
        with contextlib.suppress(asyncio.TimeoutError, asyncio.IncompleteReadError):
            await asyncio.wait_for(reader.readexactly(rng.randrange(3000)), rng.uniform(0, 0.3))
        if rng.random() < 0.5:
            connection = writer.get_extra_info("socket")
            if connection is not None and connection.fileno() >= 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    async def _answer(self, reader: asyncio.StreamReader) -> tuple[bytes, bool]:
        head = await reader.readuntil(b"\r\n\r\n")
        small = head.lower()
        if b"content-length: " in small:
            length = int(small.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await reader.readexactly(length), True
        body = b""
        while not body.endswith(b"0\r\n\r\n"):
            part = await reader.read(65536)
            if not part:
                return head + body, False
            body += part
        return head + body, True

    def _note(self, read: bytes, dialect: str, *, stream: bool, whole: bool) -> None:
        head, _, body = read.partition(b"\r\n\r\n")
        status = head[9:12].decode()
        if status != "200" or not whole:
            self.tally.said[status if whole else "cut"] += 1
            return
        if b'"error":{' in body:
            self.tally.said["error event"] += 1
            return
        self.tally.said["finished"] += 1
        if dialect != "chat":
            return
        if stream:
            events = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
            assert events[-1] == b"[DONE]", body
            usage = json.loads(events[-2])["usage"]
        else:
            usage = json.loads(body)["usage"]
        name = head.partition(b"x-request-id: ")[2].partition(b"\r\n")[0].decode()
        self.tally.finished[name] = usage["completion_tokens"]


def processes(host) -> dict[str, int]:
    """Each process of the host by its module, or by a number behind it."""
    found = {"serve": host.process.pid}
    for pid in sorted(host.pids()):
        words = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split(" ")
        if "-m" in words:
            name = words[len(words) - words[::-1].index("-m")]  # a program run inside another
            found[name if name not in found else f"{name} {pid}"] = pid
    return found


def figures(pid: int, inside: Path) -> dict[str, float]:
    folder = Path(f"/proc/{pid}")
    rollup = (folder / "smaps_rollup").read_text().split()
    counted = json.loads((inside / f"{pid}.json").read_text())
    return {
        "rss_mib": round(int(rollup[rollup.index("Rss:") + 1]) / 1024, 3),
        "anonymous_mib": round(int(rollup[rollup.index("Anonymous:") + 1]) / 1024, 3),
        "files": len(list((folder / "fd").iterdir())),
        "threads": len(list((folder / "task").iterdir())),
        **counted,
    }


def on_disk(state: Path) -> dict[str, int]:
    """Bytes by the first part of their path; a database with what lies beside it."""
    found: Counter[str] = Counter()
    for folder, _, names in os.walk(state):
        for name in names:
            path = Path(folder) / name
            with contextlib.suppress(OSError):  # applied and gone
                first = path.relative_to(state).parts[0]
                found[first.removesuffix("-wal").removesuffix("-shm")] += path.stat().st_size
    return dict(found)


def counted(host, query: str) -> int:
    engine = open_readonly(host.ledger)
    with engine.connect() as connection:
        number = connection.execute(text(query)).scalar()
    engine.dispose()
    return number or 0


async def watched(host, inside: Path, samples: list[Sample], *proxies) -> None:
    start_s, pids = time.monotonic(), processes(host)
    async with httpx.AsyncClient() as scraper:
        while True:
            await asyncio.sleep(SAMPLE_S)
            await scraper.get(f"{host.url}/metrics")
            sample = Sample(
                round(time.monotonic() - start_s, 1),
                {name: figures(pid, inside) for name, pid in pids.items()},
                on_disk(host.state),
                counted(host, "SELECT max(seq) FROM attempts"),
            )
            samples.append(sample)
            if len(samples) % TOLD_EVERY == 1:
                told = sample.processes["gateway.worker"]
                print(f"{sample.at_s:.0f} s, {sample.rows} rows: {told} {sample.disk}", flush=True)
            for proxy in proxies:
                del proxy.seen[:-KEPT]


def grown(samples: list[Sample]) -> list[str]:
    """What is more at the end than it was after the warm-up, in words; prints every figure."""
    late = [sample for sample in samples if sample.at_s >= samples[-1].at_s * WARM]
    hours = (late[-1].at_s - late[0].at_s) / 3600
    allowed = GROWN_MIB_PER_H + (0.0 if hours >= FULL_H else SETTLING_MIB / hours)
    quarter = max(1, len(late) // 4)
    wrong = []
    print(f"{len(late)} samples of {hours:.3f} h, after {late[0].at_s:.0f} s")
    for name in late[0].processes:
        series = {
            key: [item.processes[name][key] for item in late] for key in late[0].processes[name]
        }
        at_h = [item.at_s / 3600 for item in late]
        slopes = {
            key: statistics.linear_regression(at_h, values).slope for key, values in series.items()
        }
        ends = {
            key: (statistics.median(values[:quarter]), statistics.median(values[-quarter:]))
            for key, values in series.items()
        }
        for key, (first, last) in ends.items():
            print(f"{name:24} {key:14} {first:12.2f} {last:12.2f}   {slopes[key]:+12.3f} /h")
        if slopes["rss_mib"] > allowed:
            wrong.append(f"memory of {name}: {slopes['rss_mib']:+.2f} MiB/h, allowed {allowed:.2f}")
        for key, most in (("files", FILES), ("threads", THREADS), ("tasks", TASKS)):
            first, last = min(series[key][:quarter]), min(series[key][-quarter:])
            if last > first + most:
                wrong.append(f"{key} of {name}: {first}, then {last}")
    rows = late[-1].rows - late[0].rows
    for name, size in late[-1].disk.items():
        more = size - late[0].disk.get(name, 0)
        print(
            f"{name:24} {size:12} bytes, {more:+} with {rows} rows: {more / max(1, rows):.0f} each"
        )
        if name == "journal":
            most = max(sample.disk[name] for sample in samples)
            if most > JOURNAL_MIB * MIB:
                wrong.append(f"disk: {name} {most} bytes")
        elif name != "ledger.db" and more > OTHER_DISK_MIB * MIB:
            wrong.append(f"disk: {name} {more:+} bytes")
    return wrong


def wrong_rows(host, finished: dict[str, int]) -> list[str]:
    """Finished answers without exactly one finished row of the same tokens."""
    rows: dict[str, list[int]] = {}
    engine = open_readonly(host.ledger)
    with engine.connect() as connection:
        query = "SELECT request_id, output_tokens FROM attempts WHERE status = 'finished'"
        for request_id, tokens in connection.execute(text(query)):
            rows.setdefault(request_id, []).append(tokens)
    engine.dispose()
    return [name for name, tokens in finished.items() if rows.get(name) != [tokens]]


@dataclass(slots=True)
class Soak:
    """What a run left: its host is still up."""

    host: Any
    tally: Tally
    samples: list[Sample]


@pytest.fixture
def soak(make_host, make_proxy, targets, rule, answers, tmp_path, patiently):
    """`soak(seconds, leak)`: traffic for so long, and what was read meanwhile."""
    proxies, hosts = [make_proxy(port) for port in targets.ports], []

    def run(seconds: float, leak: str) -> Soak:
        inside = tmp_path / "inside"
        inside.mkdir()
        (inside / "sitecustomize.py").write_text(INSIDE)
        (inside / "leak").write_text(leak)
        engine, provider = proxies
        host = make_host(
            server={"port": 0, "workers": 1, "timeouts": {
                "head_s": 4, "whole_s": 4, "idle_s": 3, "total_s": 25, "client_stall_s": 5,
                "drain_s": 5}},
            models={
                "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
                "api": {"targets": ["p/m"]},
                "both": {"targets": ["pool:main", "p/m"], "compare_with": ["openai/gpt-4o-mini"]},
            },
            pools={"main": {
                "engine": {"kind": "simulated", "model": ENGINE, "served_name": "llama",
                           "endpoints": [f"http://127.0.0.1:{engine.port}/v1"]},
                "gpu": {"type": "H200", "usd_per_hour": "3.50"}}},
            providers={"p": {"base_url": f"http://127.0.0.1:{provider.port}/v1", "simulated": True,
                             "prices_as": "openai/gpt-4o-mini"}},
            budgets=[{"scope": "global", "usd": 100_000, "period": "day", "hard": True}],
        )  # fmt: skip
        hosts.append(host)
        host.environ["PYTHONPATH"] = str(inside)
        host.start()
        dice = random.Random(SEED + 1)
        engine.choose = provider.choose = lambda: trouble(dice, rule, answers)
        made = Soak(host, Tally(), [])

        async def traffic() -> None:
            clients = Clients(host, random.Random(SEED))
            made.tally = clients.tally
            watching = asyncio.create_task(watched(host, inside, made.samples, engine, provider))
            await clients.ask_for(seconds)
            assert not watching.done(), watching.exception()
            watching.cancel()

        print(f"\nseed {SEED}: {PER_S:.0f} requests/s for {seconds:.0f} s", flush=True)
        pids = processes(host)
        asyncio.run(traffic())
        engine.choose = provider.choose = None
        assert processes(host) == pids, "a process was replaced"
        print(f"{made.tally.asked} asked: {dict(made.tally.said.most_common())}")
        return made

    yield run
    for host in hosts:
        host.close()
    patiently(lambda: not any(proxy.open for proxy in proxies))


@pytest.mark.long
def test_nothing_grows_but_the_ledger(soak, targets, patiently) -> None:
    ran = soak(SECONDS, "")
    host, tally = ran.host, ran.tally
    wrong = grown(ran.samples)
    (host.state.parent / "samples.jsonl").write_text(
        "".join(
            json.dumps([sample.at_s, sample.processes, sample.disk, sample.rows]) + "\n"
            for sample in ran.samples
        )
    )
    unsettled = "SELECT count(*) FROM attempts WHERE settled_us IS NULL"
    patiently(lambda: counted(host, unsettled) == 0, 60)
    patiently(lambda: not wrong_rows(host, tally.finished), 60)
    assert wrong_rows(host, {**tally.finished, "nobody's": 1}) == ["nobody's"], "the control"
    assert tally.asked >= int(SECONDS * PER_S)
    assert tally.said["left"] >= 0.15 * tally.asked
    assert tally.said["finished"] >= 0.5 * tally.asked
    assert wrong == []
    assert host.terminate() == 0


@pytest.mark.long
@pytest.mark.parametrize("leak", ["memory", "files", "tasks", "threads"])
def test_a_planted_leak_is_seen(soak, leak: str) -> None:
    """16 KiB, a file or a task is kept of each request, a thread of one in sixteen."""
    wrong = grown(soak(CONTROL_S, leak).samples)
    print(wrong)
    assert any(item.startswith(f"{leak} of gateway.worker") for item in wrong)
