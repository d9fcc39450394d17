"""The loads that are measured, one function each: it returns named figures of one run.

CPU is that of the target's whole process tree, with what it does after the answers (our ledger)
included; `worker` figures are of the serving process alone. Latencies are the load generator's.
"""

import json
import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import disk_writer
from measure import by_label, cpu_s, fsync_ms, memory_mb, pin, rss_mb, until, waited_s
from ours import Ours
from peers import Target
from wire import Load, Upstream

Figures = dict[str, float]
STREAMS = 1000
RATE = 100
DISK_MB_PER_S = 200
HEARTBEATS = 1000  # a second
PROMPTS = 20  # a second, beside the heartbeats
SILENT = 20
STALLED, STALLED_MB, STALLED_PAD, STALLED_S = 4, 100, 50_000, 6.0
STALLED_CHUNKS = STALLED_MB * 1_000_000 // STALLED_PAD
AT_ONCE_CHUNKS = 20
GROWTH_PARTS = 3
OPENING_LIMIT_S = 20.0
SECOND_NS = 1_000_000_000
PROMPT_BYTES = {"2 KB": 2_048, "16 KB": 16_384, "128 KB": 131_072, "400 KB": 409_600}
CONVERSATION = {"400 KB": 60}  # messages; other prompts are one
LONG = 5  # conversations a second, beside small requests
WORD = "tokens "


@dataclass(frozen=True)
class Lengths:
    """Seconds, and what scales with them."""

    closed_s: float
    open_s: float
    dense_s: float
    sparse_ramp_s: float
    sparse_chunks: int
    growth_warm: int
    growth_requests: int
    beats_s: float


QUICK = Lengths(1.5, 2.0, 2.0, 4.0, 22, 500, 1500, 1.5)
FULL = Lengths(5.0, 8.0, 6.0, 5.0, 60, 20_000, 200_000, 8.0)


@dataclass(frozen=True)
class Stage:
    """What every scene works with."""

    load: Load
    upstream: Upstream
    folder: Path
    lengths: Lengths

    def body(self, size: str, *, stream: bool = False) -> Path:
        """A chat request of about that many bytes, written once."""
        path = self.folder / f"body-{size.replace(' ', '')}-{stream}.json"
        if not path.exists():
            count = CONVERSATION.get(size, 1)
            text = WORD * ((PROMPT_BYTES[size] - 180) // len(WORD) // count)
            document: dict[str, Any] = {
                "model": "mock",
                "max_tokens": 512,
                "messages": [
                    {"role": "assistant" if turn % 2 else "user", "content": f"{turn} {text}"}
                    for turn in range(1 - count % 2, 1 - count % 2 + count)
                ],
            }
            if stream:
                document |= {"stream": True, "stream_options": {"include_usage": True}}
            path.write_text(json.dumps(document))
        return path

    def asking(self, target: Target | None, size: str = "2 KB", **options: Any) -> dict[str, Any]:
        """Options of the generator for a target, or for the upstream itself."""
        stream = bool(options.get("stream"))
        where = self.upstream.ports[0] if target is None else target.port
        headers = [] if target is None else target.headers
        return {"port": where, "body": self.body(size, stream=stream), "header": headers} | options

    def silence(self) -> None:
        """Until the upstream works on nothing: what a target leaves open costs it time later."""
        self.upstream.set()
        until("ending every stream", lambda: self.upstream.stat()["active"] == 0, limit_s=60)


def closed(stage: Stage, target: Target, size: str = "2 KB") -> Figures:
    """32 clients that ask again as soon as they are answered, whole answers of 1 KB."""
    stage.upstream.set()
    asked = stage.asking(target, size, clients=32)
    stage.load.run(**asked, seconds=0.3)
    target.settle()
    before, parts, rows = cpu_s(target.pids), _parts(target), _rows(target)
    found = stage.load.run(**asked, seconds=stage.lengths.closed_s)
    served = _parts(target)
    target.settle()
    answered = _answered(target, found, rows)
    figures = {
        "cpu_ms": 1e3 * (cpu_s(target.pids) - before) / answered,
        "rps": answered / found["seconds"],
        "failed": found["failed"],
    }
    for label in parts:
        spent = (served if label == "worker" else _parts(target)).get(label, 0.0) - parts[label]
        figures[f"cpu_ms.{label}"] = 1e3 * spent / answered
    if isinstance(target, Ours):
        figures["candidates"] = target.candidates_left()
    return figures


def paced(stage: Stage, target: Target | None) -> Figures:
    """Whole answers at 100 requests a second; the disk is asked what durability costs beside."""
    stage.upstream.set()
    asked = stage.asking(target, clients=64, rate=RATE, seconds=stage.lengths.open_s)
    rows, workers = _rows(target), [] if target is None else target.workers
    waited = waited_s(workers)
    found = stage.load.run(**asked)
    waited = waited_s(workers) - waited
    disk = fsync_ms(stage.folder)
    if target is not None:
        target.settle()
        _answered(target, found, rows)
    total = found["total_us"]
    return {
        "p50_ms": total["p50"] / 1e3,
        "p99_ms": total["p99"] / 1e3,
        "fsync_ms": disk,
        "waited_ms": 1e3 * waited / max(found["ok"], 1),
    }


def first(stage: Stage, target: Target | None) -> Figures:
    """Streams of eight chunks at 100 a second: the time to the first token."""
    stage.upstream.set(chunks=8, delay_us=20_000)
    asked = stage.asking(target, clients=64, rate=RATE, seconds=stage.lengths.open_s, stream=True)
    rows = _rows(target)
    found = stage.load.run(**asked)
    if target is not None:
        target.settle()
        _answered(target, found, rows)
    return {"p50_ms": found["first_us"]["p50"] / 1e3, "p99_ms": found["first_us"]["p99"] / 1e3}


def synced(stage: Stage, target: Target | None) -> Figures:
    """As `first`, beside a process that writes and syncs 200 MB/s to the file system of ours."""
    with disk_writer.start(stage.folder, DISK_MB_PER_S, stage.lengths.open_s + 0.5) as other:
        figures = first(stage, target)
        reached, _ = other.communicate()
    return figures | {"disk_mb_per_s": float(reached)}


def dense(stage: Stage, target: Target) -> Figures:
    """1,000 streams, a chunk every 20 ms: more than a core can do, so only CPU per chunk counts.

    All streams are opened at a slow pace, and counting begins a second after it was raised, so
    that what opening a stream costs is not in it. A gateway that is late sends several chunks in
    one write, which makes a chunk cheap: `read_us` is the cost of one such delivery.
    """
    stage.upstream.set(chunks=1_000_000, delay_us=1_000_000)
    tree, workers = target.pids, target.workers
    seen: list[tuple[int, int, int, float, float]] = []
    raised_ns: list[int] = []
    running = stage.load.start(
        **stage.asking(target, clients=STREAMS, stream=True), ramp=2.0, seconds=300, every=0.1
    )
    began = time.monotonic()

    def watch(at_ns: int, chunks: int, reads: int) -> None:
        if not raised_ns:
            late = time.monotonic() - began > OPENING_LIMIT_S
            if late or stage.upstream.stat()["active"] >= STREAMS:
                stage.upstream.set(chunks=1_000_000, delay_us=20_000)
                raised_ns.append(at_ns)
        elif at_ns > raised_ns[0] + SECOND_NS:
            seen.append((at_ns, chunks, reads, cpu_s(tree), cpu_s(workers)))
            if at_ns > seen[0][0] + stage.lengths.dense_s * SECOND_NS:
                running.stop()

    found = running.result(watch)
    rss = rss_mb(workers) / len(workers)
    stage.silence()
    target.settle()
    start, stop = seen[0], seen[-1]
    chunks, reads = max(1, stop[1] - start[1]), max(1, stop[2] - start[2])
    return {
        "cpu_us": 1e6 * (stop[3] - start[3]) / chunks,
        "cpu_us.worker": 1e6 * (stop[4] - start[4]) / chunks,
        "read_us": 1e6 * (stop[3] - start[3]) / reads,
        "chunks_per_s": chunks / ((stop[0] - start[0]) / SECOND_NS),
        "streams": found["first_us"]["count"],
        "reads_ratio": reads / chunks,
        "rss_mb": rss,
    }


def sparse(stage: Stage, target: Target | None) -> Figures:
    """1,000 streams, five chunks a second each: what a real evening looks like.

    Straight at the upstream it says what the machine itself does to the slowest of them.
    """
    lengths = stage.lengths
    stage.upstream.set(chunks=lengths.sparse_chunks, delay_us=200_000)
    tree, workers = ([], []) if target is None else (target.pids, target.workers)
    rows, before, waited = _rows(target), cpu_s(tree), waited_s(workers)
    resident: list[dict[str, float]] = []

    def watch(_at_ns: int, _chunks: int, _reads: int) -> None:
        resident.append(memory_mb(workers))

    found = stage.load.run(
        **stage.asking(target, clients=STREAMS, stream=True), requests=STREAMS,
        ramp=lengths.sparse_ramp_s, seconds=lengths.sparse_chunks, every=0.5, watch=watch,
    )  # fmt: skip
    waited = waited_s(workers) - waited
    slowest = found["slowest_first_us"]
    figures = {
        "transit_p50_ms": found["transit_us"]["p50"] / 1e3,
        "transit_p99_ms": found["transit_us"]["p99"] / 1e3,
        "slowest_first_ratio": slowest["max"] / max(slowest["median"], 1.0),
        "slowest_first_ms": slowest["max"] / 1e3,
        "writes_ratio": found["reads"] / max(found["chunks"], 1),  # all of the upstream's came
        "unfinished": found["unfinished"] + found["failed"],
    }
    if target is None:
        return figures
    target.settle()
    cpu = cpu_s(tree) - before
    _answered(target, found, rows)
    return figures | {
        "cpu_us": 1e6 * cpu / max(found["chunks"], 1),
        **{name: max(item[name] for item in resident) / len(workers) for name in resident[0]},
        "waited_share": waited / found["seconds"],
    }


def at_once(stage: Stage, target: Target | None) -> Figures:
    """1,000 clients come in the same moment, each for a stream: who waits longest for its first.

    The last is served when all are: beside a fair order, what one costs is all that counts.
    """
    stage.upstream.set(chunks=AT_ONCE_CHUNKS, delay_us=200_000)
    rows = _rows(target)
    asked = stage.asking(target, clients=STREAMS, stream=True)
    found = stage.load.run(**asked, requests=STREAMS, seconds=60)
    if target is not None:
        target.settle()
        _answered(target, found, rows)
    slowest = found["slowest_first_us"]
    return {
        "first_p50_ms": slowest["median"] / 1e3,
        "slowest_first_ms": slowest["max"] / 1e3,
        "slowest_first_ratio": slowest["max"] / max(slowest["median"], 1.0),
        "failed": found["unfinished"] + found["failed"],
    }


def stalled(stage: Stage, target: Target) -> Figures:
    """Clients that ask for 100 MB each and read nothing: what the target keeps of it for them."""
    stage.upstream.set(chunks=STALLED_CHUNKS, delay_us=1000, pad=STALLED_PAD)
    body = stage.body("2 KB", stream=True).read_bytes()
    before = rss_mb(target.workers)
    with ExitStack() as clients:
        for _ in range(STALLED):
            clients.enter_context(_idle_reader(target, body))
        resident: list[float] = []
        until_s = time.monotonic() + STALLED_S
        while time.monotonic() < until_s:
            time.sleep(0.2)
            resident.append(rss_mb(target.workers))
        waiting = stage.upstream.stat()["active"]  # who keeps it all lets the upstream finish
    stage.silence()
    target.settle()
    kept = max(resident) - before
    return {"kept_mb": kept, "asked_mb": STALLED * STALLED_MB, "waiting": waiting}


def _idle_reader(target: Target, body: bytes) -> socket.socket:
    """A stream was asked for on it, and nothing will be read."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", target.port))
    lines = ["POST /v1/chat/completions HTTP/1.1", "host: bench", "content-type: application/json",
             f"content-length: {len(body)}", *target.headers, "", ""]  # fmt: skip
    client.sendall("\r\n".join(lines).encode() + body)
    return client


def hung_up(stage: Stage, target: Target) -> Figures:
    """20 clients go away while the upstream is silent: how many requests it still works on."""
    stage.upstream.set(first_us=20_000_000)
    stage.load.run(**stage.asking(target, clients=SILENT, stream=True), seconds=5, hang_up=1.0)
    time.sleep(1.0)
    after_1s = stage.upstream.stat()["active"]
    time.sleep(3.0)
    after_4s = stage.upstream.stat()["active"]
    stage.silence()
    target.settle()
    return {"open_after_1s": after_1s, "open_after_4s": after_4s}


def blocked(stage: Stage, target: Target, size: str) -> Figures:
    """How long one request holds the event loop: heartbeats beside big prompts.

    Of 1,000 heartbeats a second those delayed by more than x are those that fall into the rest of
    a block after x. With 20 prompts a second the 99th percentile lies 0.5 ms before its end.
    """
    stage.upstream.set()
    beat = {"get": True, "path": "/healthz", "clients": 64, "rate": HEARTBEATS}
    seconds = stage.lengths.beats_s
    calm = stage.load.run(target.port, None, **beat, seconds=seconds)
    asked = stage.asking(target, size, clients=8, rate=PROMPTS, seconds=seconds)
    prompts = stage.load.start(**asked)
    busy = stage.load.run(target.port, None, **beat, seconds=seconds)
    prompts.result()
    target.settle()
    hidden_ms = 1e3 * 0.01 / PROMPTS
    return {
        "block_ms": busy["total_us"]["p99"] / 1e3 + hidden_ms,
        "calm_p99_ms": calm["total_us"]["p99"] / 1e3,
    }


def beside(stage: Stage, target: Target) -> Figures:
    """Small requests, 100 a second, alone and beside conversations of 60 messages."""
    stage.upstream.set()
    seconds = stage.lengths.beats_s
    small = stage.asking(target, clients=64, rate=RATE, seconds=seconds)
    calm = stage.load.run(**small)
    long = stage.load.start(**stage.asking(target, "400 KB", clients=8, rate=LONG, seconds=seconds))
    busy = stage.load.run(**small)
    long.result()
    target.settle()
    figures = {
        f"{name}.{point}_ms": load["total_us"][point] / 1e3
        for name, load in (("calm", calm), ("busy", busy))
        for point in ("p50", "p99")
    }
    return figures | {"delay_ms": figures["busy.p99_ms"] - figures["calm.p99_ms"]}


def growth(stage: Stage, target: Ours) -> Figures:
    """Resident memory of the worker over many requests, after a warm-up."""
    stage.upstream.set()
    lengths, workers, rows = stage.lengths, target.workers, _rows(target)
    asked = stage.asking(target, clients=32, seconds=3600)
    warm = stage.load.run(**asked, requests=lengths.growth_warm)
    target.settle()
    resident, answered = [rss_mb(workers)], 0
    for _ in range(GROWTH_PARTS):  # a leak grows in each, an arena that fills up in the first
        found = stage.load.run(**asked, requests=lengths.growth_requests // GROWTH_PARTS)
        target.settle()
        answered += int(found["ok"])
        resident.append(rss_mb(workers))
    _answered(target, {"ok": answered + warm["ok"]}, rows)
    parts = {
        f"growth_mb.{number}": after - before
        for number, (before, after) in enumerate(pairwise(resident), 1)
    }
    figures = {"growth_mb": resident[-1] - resident[0], "requests": answered, **parts}
    return figures | {"candidates": target.candidates_left()}


def two_workers(stage: Stage, target: Ours) -> Figures:
    """The closed load on two workers, each on a core, and how it was split between them.

    One worker beside it, at the same time, is what two are compared with: what a request costs
    depends on how busy the machine is.
    """
    cores = sorted(os.sched_getaffinity(0))
    for place, pid in enumerate(target.workers):
        pin(pid, {cores[place % len(cores)]})
    shares = dict(enumerate(target.requests_by_worker()))
    figures = closed(stage, target)
    taken = [now - shares.get(place, 0) for place, now in enumerate(target.requests_by_worker())]
    return figures | {"least_share": min(taken) / max(sum(taken), 1)}


def _parts(target: Target) -> dict[str, float]:
    if not isinstance(target, Ours):
        return {}
    return {label: cpu_s(pids) for label, pids in by_label(target.process.pid).items()}


def _rows(target: Target | None) -> int:
    return target.rows()[1] if isinstance(target, Ours) else 0


def _answered(target: Target, found: dict[str, Any], rows: int) -> int:
    """Answers, after the books of ours are seen to hold a settled row for each."""
    answered = int(found["ok"])
    if isinstance(target, Ours):
        written = target.rows()[1] - rows
        if written != answered:
            raise SystemExit(
                f"bench-gateway: {answered} answers, but {written} settled rows in the ledger"
            )
    if not answered and isinstance(target, Ours):
        raise SystemExit(f"bench-gateway: {target.name} answered nothing: {found}")
    return max(answered, 1)  # a peer may drown
