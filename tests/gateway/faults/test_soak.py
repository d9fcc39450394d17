"""Everything at once, for as long as one likes: `make soak SECONDS=3600`.

Two workers of `breakeven serve` between clients that leave, stall and read slowly, and targets
whose answers are cut, sliced, silent or refused; workers and the writer are killed meanwhile.
At the end clients', targets' and ledger's accounts are joined: nothing is lost, nothing stays open,
and no process has grown. The seed is printed, and the figures. What grows where nothing is killed
is `test_growth.py`'s.
"""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from gateway.fleet.shared_load import SharedLoadTable
from gateway.runtime import Runtime
from gateway.table_layout import ApiStatsCell, LoadCell

SECONDS = float(os.environ.get("SOAK_SECONDS", "30"))
SEED = int(os.environ.get("SOAK_SEED", "0")) or time.time_ns() % 10**6
CLIENTS = 16
ENGINE = "h200-llama-3.1-8b-fp8"
MIB = 1024 * 1024
WORKER_MIB = 160.0  # resident at the end, in each worker
TOLD_S = 1.0


def trouble(rng: random.Random, rule, answers):
    """What happens to one request's answer: nothing to two of three."""
    dice = rng.random()
    if dice < 0.66:
        return rule()
    if dice < 0.74:
        return rule(slice_bytes=rng.choice((1, 7, 100)))
    if dice < 0.88:
        ending = rng.choice(("reset", "fin", "half", "hole"))
        return rule(after_bytes=rng.randrange(4000), ending=ending)
    if dice < 0.93:
        return rule(bytes_per_s=rng.randrange(2000, 20_000))
    status, headers = rng.choice((
        ("500 Oh", ""), ("503 Full", "retry-after: 1\r\n"), ("429 Many", "retry-after: 1\r\n"),
        ("200 OK", ""), ("404 No", ""),
    ))  # fmt: skip
    return rule(answer=answers.whole(b"{}", f"HTTP/1.1 {status}\r\n{headers}".encode()))


class Client(threading.Thread):
    """Asks without pause, in every manner; `finished` is what it read to its end."""

    def __init__(self, host, seed: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.host, self.rng, self.halt = host, random.Random(seed), stop
        self.finished: dict[str, int] = {}
        self.left_s: dict[str, float] = {}
        self.said: Counter[str] = Counter()
        self.asked = 0

    def run(self) -> None:
        host, port = self.host.url.removeprefix("http://").split(":")
        while not self.halt.is_set():
            try:
                with socket.create_connection((host, int(port)), timeout=30) as connection:
                    self._ask(connection)
            except OSError as error:
                self.said[type(error).__name__] += 1
                time.sleep(0.02)

    def _ask(self, connection: socket.socket) -> None:
        rng = self.rng
        stream = rng.random() < 0.6
        body = {
            "model": rng.choice(("own", "api", "both")), "stream": stream,
            "max_tokens": rng.randrange(1, 60), "ignore_eos": True,
            "messages": [{"role": "user", "content": "word " * rng.randrange(1, 200)}],
        }  # fmt: skip
        if stream:
            body["stream_options"] = {"include_usage": True}
        text = json.dumps(body).encode()
        head = (
            "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n"
            f"authorization: Bearer {self.host.token}\r\ncontent-length: {len(text)}\r\n\r\n"
        )
        self.asked += 1
        connection.sendall(head.encode() + text)
        leaves_after = rng.randrange(3000) if rng.random() < 0.2 else None
        pause_s = rng.choice((0.01, 4.0)) if rng.random() < 0.04 else 0.0
        read = b""
        while True:
            if leaves_after is not None and len(read) >= leaves_after:
                self._leave(connection, read)
                return
            part = connection.recv(2048)
            if not part:
                break
            read += part
            time.sleep(pause_s)
        self._note(read, stream=stream)

    def _leave(self, connection: socket.socket, read: bytes) -> None:
        self.said["left"] += 1
        name = _request_id(read)
        if name:
            self.left_s[name] = time.monotonic()
        connection.close()

    def _note(self, read: bytes, *, stream: bool) -> None:
        head, _, body = read.partition(b"\r\n\r\n")
        status = head[9:12].decode() or "no answer"
        if status != "200":
            self.said[status] += 1
            return
        if not stream:
            usage = json.loads(body)["usage"]
        else:
            events = [line[6:] for line in body.split(b"\n") if line.startswith(b"data: ")]
            if not events or events[-1] != b"[DONE]":
                self.said["error event" if b'"error"' in body else "cut"] += 1
                return
            usage = json.loads(events[-2])["usage"]
        self.said["finished"] += 1
        self.finished[_request_id(head)] = usage["completion_tokens"]


def _request_id(head: bytes) -> str:
    return head.partition(b"x-request-id: ")[2].partition(b"\r\n")[0].decode()


def resident_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / MIB


def strike(host, rng: random.Random, said: Counter) -> None:
    """One process of the host is killed, or stopped for a moment."""
    module, number = rng.choice((
        ("gateway.worker", signal.SIGKILL), ("gateway.worker", signal.SIGSTOP),
        ("ledger.writer", signal.SIGKILL), ("gateway.host.telemetry", signal.SIGKILL),
    ))  # fmt: skip
    pids = host.pids(module)
    if not pids:
        return
    pid = rng.choice(pids)
    said[f"{module} {number.name}"] += 1
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(rng.uniform(0.2, 1.5))
            os.kill(pid, signal.SIGCONT)


def storm(host, rng: random.Random) -> tuple[list[Client], Counter]:
    stop, strikes = threading.Event(), Counter()
    clients = [Client(host, rng.randrange(10**9), stop) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    start_s = time.monotonic()
    while (left_s := start_s + SECONDS - time.monotonic()) > 0:
        time.sleep(min(left_s, rng.uniform(3.0, 9.0)))
        strike(host, rng, strikes)
    stop.set()
    for client in clients:
        client.join(60)
    assert not any(client.is_alive() for client in clients), "a client never came to its end"
    return clients, strikes


def promised(host) -> list[float]:
    """What the board says is in flight, of engines and of APIs."""
    runtime = Runtime.load(host.state / "run" / "runtime.json")
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    loads = board.loads(0)
    cells = (
        LoadCell.SEQUENCES,
        LoadCell.CONTEXT_TOKENS,
        LoadCell.QUEUED_PREFILL_TOKENS,
        LoadCell.PROMISED_TOKENS,
    )
    found = [loads[cell] for cell in cells]
    for row in range(len(runtime.apis)):
        found += [cells[ApiStatsCell.REQUESTS_OUT] for cells in board.api_stats(row)]
    board.close()
    return found


def wrong(host, finished: dict[str, int]) -> list[str]:
    """Finished answers without exactly one finished row of the same tokens."""
    rows: dict[str, list[int]] = {}
    for row in host.rows("status = 'finished'"):
        rows.setdefault(row["request_id"], []).append(row["output_tokens"])
    return [name for name, tokens in finished.items() if rows.get(name) != [tokens]]


@pytest.mark.long
def test_nothing_is_lost_and_nothing_stays(
    make_host, make_proxy, targets, rule, answers, patiently
) -> None:
    rng = random.Random(SEED)
    print(f"\nsoak: seed {SEED}, {SECONDS:.0f} s")  # SOAK_SEED repeats its choices
    engine, provider = (make_proxy(port) for port in targets.ports)
    host = make_host(
        server={"port": 0, "workers": 2, "timeouts": {
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
        budgets=[{"scope": "global", "usd": 10_000, "period": "day", "hard": True}],
    )  # fmt: skip
    host.start()
    lock, dice = threading.Lock(), random.Random(SEED + 1)

    def choose():
        with lock:
            return trouble(dice, rule, answers)

    engine.choose = provider.choose = choose
    clients, strikes = storm(host, rng)
    engine.choose = provider.choose = None
    report = {"strikes": dict(strikes), **summary(clients, engine, provider)}
    print(json.dumps(report, indent=1))

    finished = {name: tokens for client in clients for name, tokens in client.finished.items()}
    patiently(lambda: all(row["settled_us"] for row in host.rows()), 60)
    assert len(finished) > SECONDS
    assert wrong(host, finished) == []
    assert wrong(host, {**finished, "nobody's": 1}) == ["nobody's"], "the control"
    rows = host.rows()
    assert max(Counter(row["attempt_id"] for row in rows).values()) == 1
    known = {row["attempt_id"] for row in rows}
    assert targets.attempts() - known == set(), "work that no row knows of"
    patiently(lambda: not any(promised(host)), 30)
    # Pools keep idle connections for seconds; telemetry keeps one.
    patiently(lambda: (provider.open, engine.open <= 2) == (0, True), 60)
    sizes = [resident_mib(pid) for pid in host.pids("gateway.worker")]
    print(f"workers at the end: {', '.join(f'{size:.0f} MiB' for size in sizes)}")
    assert max(sizes) < WORKER_MIB
    assert report["told_s_p99"] is None or report["told_s_p99"] <= TOLD_S
    assert host.terminate() == 0
    assert verified(host)


def summary(clients: list[Client], *proxies) -> dict:
    """The figures of a run; `told_s`: from a client's leaving to its target's being told."""
    said: Counter[str] = Counter()
    for client in clients:
        said += client.said
    left = {name: at_s for client in clients for name, at_s in client.left_s.items()}
    told = sorted(
        max(0.0, event.gone_s - left[event.attempt_id.rpartition(".")[0]])
        for proxy in proxies
        for event in proxy.seen
        if event.gone_s is not None
        and not event.ended
        and event.attempt_id.rpartition(".")[0] in left
    )
    return {
        "asked": sum(client.asked for client in clients),
        "said": dict(said.most_common()),
        "tries": sum(len(proxy.seen) for proxy in proxies),
        "left in the middle": len(told),
        "told_s_p50": told[len(told) // 2] if told else None,
        "told_s_p99": told[int(len(told) * 0.99)] if told else None,
    }


def verified(host) -> bool:
    command = [
        sys.executable,
        "-c",
        "from gateway.cli.main import main; main()",
        "ledger",
        "verify",
    ]
    done = subprocess.run(
        [*command, "--config", str(host.config)], capture_output=True, text=True, check=False
    )
    print(done.stdout[-2000:], done.stderr[-2000:])
    return done.returncode == 0
