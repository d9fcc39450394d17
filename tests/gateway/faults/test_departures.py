"""Clients that leave, by the thousand: `make soak FULL=1` has six thousand of them.

Before the dispatch, before the first token, in the middle, before the end, and without a stream;
with FIN and with RST; from an engine and from an API, through two workers of `breakeven serve`.
In the middle is anywhere from the first token to the three hundredth: of a stream that goes on,
and of one that has fallen silent, so that what was made is what was sent. The proxy between them
and their targets says when each target was told, the targets' own journals what they did: both are
joined with the rows.
"""

import json
import os
import random
import selectors
import socket
import time
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import pytest

FULL = os.environ.get("SOAK_FULL", "0") == "1"
EACH = 250 if FULL else 20  # of every kind: there are twenty-four
WAVE = 25 if FULL else 10  # who leave together
TOLD_P99_S, TOLD_S = 1.0, 2.0
APPLIED_S = 120
ENGINE = "h200-llama-3.1-8b-fp8"
LAST, HEAD_LIMIT = 300, 4096  # tokens that the last one waits for; bytes
DICE = random.Random(int(os.environ.get("SOAK_SEED", "7")))
MESSAGES = [{"role": "user", "content": "hello there"}]
PLACES = {  # what stops the answer there
    "before the dispatch": {},
    "before the first token": {"after_bytes": 150, "ending": "hole"},
    "in the middle": {},
    "in the silent middle": {"before": b": silent", "ending": "hole"},
    "before the end": {"before": b"data: [DONE]", "ending": "hole"},
    "without a stream": {"after_bytes": 0, "ending": "hole"},
}
pytestmark = pytest.mark.long


def sent(host, place: str, model: str) -> socket.socket:
    """A connection with a request on it, or with half of one."""
    name, port = host.url.removeprefix("http://").split(":")
    body = {
        "model": model, "messages": MESSAGES, "stream": place != "without a stream",
        "max_tokens": 5 if place == "before the end" else 20_000, "ignore_eos": True,
    }  # fmt: skip
    text = json.dumps(body).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n"
        f"authorization: Bearer {host.token}\r\ncontent-length: {len(text)}\r\n\r\n"
    )
    whole = head.encode() + text
    connection = socket.create_connection((name, int(port)), timeout=60)
    connection.sendall(whole[:-9] if place == "before the dispatch" else whole)
    return connection


@dataclass(slots=True)
class Departure:
    """One that left: `events` with text it had read, if it was in the middle."""

    seen: Any  # the proxy's account
    told_s: float
    events: int = 0


def leave(host, proxy, patiently, hang_up, place: str, model: str) -> list[Departure]:
    """One wave."""
    asked = len(proxy.seen)
    clients = [sent(host, place, model) for _ in range(WAVE)]
    if place == "in the middle":
        return leave_one_by_one(clients, proxy, asked, patiently, hang_up)
    if place != "before the dispatch":
        patiently(lambda: len(proxy.seen) >= asked + WAVE, 60)
    if place in {"before the end", "in the silent middle"}:
        for each in proxy.seen[asked:]:  # what was read stays read: nothing follows
            patiently(lambda item=each: item.ended and proxy.is_read(item), 60)
    left_s = time.monotonic()
    for client in clients:
        hang_up(client)
    seen = proxy.seen[asked:]
    patiently(lambda: all(event.gone_s for event in seen), 60)
    return [Departure(event, max(0.0, event.gone_s - left_s)) for event in seen]


def leave_one_by_one(clients, proxy, asked: int, patiently, hang_up) -> list[Departure]:
    """Each after events of its own number, some early and some late."""
    left: dict[str, tuple[float, int]] = {}
    with selectors.DefaultSelector() as waiting:
        for client in clients:
            waiting.register(client, selectors.EVENT_READ, Reader(DICE.randrange(1, LAST + 1)))
        while waiting.get_map():
            for key, _ in waiting.select(60):
                reader = key.data
                if reader.enough(key.fileobj.recv(65536)):
                    waiting.unregister(key.fileobj)
                    left[reader.request_id] = time.monotonic(), reader.events
                    hang_up(key.fileobj)
    seen = proxy.seen[asked:]
    patiently(lambda: all(event.gone_s for event in seen), 60)
    found = []
    for event in seen:
        left_s, events = left[event.attempt_id.rpartition(".")[0]]
        found.append(Departure(event, max(0.0, event.gone_s - left_s), events))
    return found


@dataclass(slots=True)
class Reader:
    leaves_after: int
    head: bytes = b""
    events: int = 0

    def enough(self, part: bytes) -> bool:
        assert part, f"ended after {self.events} events"
        if len(self.head) < HEAD_LIMIT:
            self.head += part
        self.events += part.count(b'"content"')
        return self.events >= self.leaves_after + 1  # the first has the role

    @property
    def request_id(self) -> str:
        return self.head.partition(b"x-request-id: ")[2].partition(b"\r\n")[0].decode()


def figures(numbers: list[float]) -> str:
    ordered = sorted(numbers)
    middle, late = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    return f"p50 {middle:.3f}, p99 {late:.3f}, max {ordered[-1]:.3f}"


def test_who_leaves_is_heard_and_pays_what_was_made(
    make_host, make_proxy, targets, rule, patiently, reset
) -> None:
    engine, provider = (make_proxy(port) for port in targets.ports)
    host = make_host(
        models={
            "own": {"targets": ["pool:main"], "compare_with": ["openai/gpt-4o-mini"]},
            "api": {"targets": ["p/m"]},
        },
        pools={"main": {
            "engine": {"kind": "simulated", "model": ENGINE, "served_name": "llama",
                       "endpoints": [f"http://127.0.0.1:{engine.port}/v1"]},
            "gpu": {"type": "H200", "usd_per_hour": "3.50"}}},
        providers={"p": {"base_url": f"http://127.0.0.1:{provider.port}/v1", "simulated": True,
                         "prices_as": "openai/gpt-4o-mini", "on_disconnect": "stops"}},
        budgets=[{"scope": "global", "usd": 100_000, "period": "day", "hard": True}],
    )  # fmt: skip
    host.start()
    silent = targets.folder / "silent"
    began = {row["attempt_id"] for row in patiently(lambda: _settled(host, set(), 1), 60)}
    told: dict[str, list[float]] = defaultdict(list)
    places: dict[str, tuple[str, str]] = {}
    read: dict[str, int] = {}
    for place, trouble in PLACES.items():
        engine.rule = provider.rule = rule(**trouble)
        silent.touch() if place == "in the silent middle" else silent.unlink(missing_ok=True)
        for model, proxy in (("own", engine), ("api", provider)):
            for wave in range(2 * EACH // WAVE):
                hang_up = (socket.socket.close, reset)[wave % 2]
                for item in leave(host, proxy, patiently, hang_up, place, model):
                    told[place].append(item.told_s)
                    places[item.seen.attempt_id] = place, model
                    read[item.seen.attempt_id] = item.events
    engine.rule = provider.rule = rule()
    rows = patiently(lambda: _settled(host, began, len(places)), APPLIED_S)
    assert {row["attempt_id"] for row in rows} == places.keys()
    assert len(rows) == len(places) == 4 * EACH * (len(PLACES) - 1)
    assert {row["status"] for row in rows} == {"client_gone"}
    print(f"\n{4 * EACH * len(PLACES)} clients left; seconds until their targets were told:")
    for place, seconds in told.items():
        print(f"{place:24} {len(seconds):5} {figures(seconds)}")
    compared(rows, places, read, {entry["request_id"]: entry for entry in targets.entries()})
    seconds = sorted(second for some in told.values() for second in some)
    print(f"{'all':24} {len(seconds):5} {figures(seconds)}")
    assert seconds[int(len(seconds) * 0.99)] <= TOLD_P99_S
    assert seconds[-1] <= TOLD_S
    assert told["before the dispatch"] == [], "of half a request no target hears"
    patiently(lambda: (provider.open, engine.open <= 2) == (0, True), 60)
    assert host.terminate() == 0


def compared(rows: list[dict], places: dict, read: dict, journal: dict[str, dict]) -> None:
    """What was booked beside what the targets made, which is more by what lay in between."""
    surplus: dict[tuple[str, str], list[int]] = defaultdict(list)
    booked: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows:
        place, model = places[row["attempt_id"]]
        made = journal[row["attempt_id"]]["completion_tokens"]
        surplus[place, model].append(made - row["output_tokens"])
        booked[place, model].append(row["output_tokens"])
        if place == "before the end":
            assert row["output_tokens"] == made == 5
            assert row["basis"] == "reported"
        elif place == "in the silent middle":
            assert row["output_tokens"] == made
        elif place == "in the middle":  # the first event has the role
            assert read[row["attempt_id"]] - 1 <= row["output_tokens"] <= made
    for (place, model), more in surplus.items():
        some = booked[place, model]
        print(f"{place:24} {model}: booked {min(some)} to {max(some)}, not booked: {figures(more)}")


def _settled(host, known: set[str], count: int) -> list[dict]:
    rows = [row for row in host.rows() if row["attempt_id"] not in known]
    return rows if len(rows) >= count and all(row["settled_us"] for row in rows) else []
