"""Callers that ask without pause, and their own journal of what they were told."""

import json
import random
import threading
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

_USAGE = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True, slots=True)
class Manner:
    """How a crowd asks; the shares are of all requests."""

    model: str = "own"
    streams: float = 0.5
    leaves: float = 0.0  # hangs up after a part of the answer
    tokens: tuple[int, int] = (1, 40)
    words: int = 30
    pause_s: float = 0.0


@dataclass(slots=True)
class CallerRecord:
    """One request as its caller saw it; `status` 0: the connection broke."""

    token: str
    begun_s: float
    ended_s: float = 0.0
    request_id: str = ""
    status: int = 0
    finished: bool = False  # read to its end: the whole body, or `data: [DONE]`
    left: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    code: str = ""  # of an error
    retry_after: str = ""
    cost_usd: str = ""


class Crowd:
    """`hosts`: asked in turn, by each caller from another one on; each uses one of `tokens`."""

    def __init__(
        self, hosts: list[Any], tokens: list[str], manner: Manner, *, callers: int = 12,
        seed: int = 1, journal: Path | None = None,
    ) -> None:  # fmt: skip
        self.stopped = threading.Event()
        self.callers = [
            Caller(hosts, tokens[place % len(tokens)], manner, seed * 1000 + place, self.stopped)
            for place in range(callers)
        ]
        self._journal = journal

    def start(self) -> None:
        for caller in self.callers:
            caller.start()

    @property
    def finished(self) -> int:
        return sum(caller.finished for caller in self.callers)

    def stop(self) -> list[CallerRecord]:
        """Everything that was said; written down where a journal is named."""
        self.stopped.set()
        for caller in self.callers:
            caller.join(90)
        assert not any(caller.is_alive() for caller in self.callers), "a caller never ended"
        said = [line for caller in self.callers for line in caller.said]
        if self._journal is not None:
            lines = (
                json.dumps({name: getattr(line, name) for name in CallerRecord.__slots__})
                for line in said
            )
            self._journal.write_text("\n".join(lines))
        return said


class Caller(threading.Thread):
    def __init__(
        self, hosts: list[Any], token: str, manner: Manner, seed: int, stopped: threading.Event
    ) -> None:
        super().__init__(daemon=True)
        self._hosts, self._token, self._manner = hosts, token, manner
        self._rng, self._stopped, self._first = random.Random(seed), stopped, seed
        self.said: list[CallerRecord] = []
        self.finished = 0

    def run(self) -> None:
        turn = self._first
        while not self._stopped.is_set():
            host = self._hosts[turn % len(self._hosts)]
            turn += 1
            address = host.url.removeprefix("http://")
            try:
                with closing(HTTPConnection(address, timeout=40)) as line:
                    for _ in range(20):  # then perhaps another worker's connection
                        if self._stopped.is_set():
                            break
                        if not self._ask(line):
                            break
            except (OSError, HTTPException, ValueError):
                time.sleep(0.05)

    def _ask(self, line: HTTPConnection) -> bool:
        """Whether the connection may be used again."""
        rng, manner = self._rng, self._manner
        said = CallerRecord(self._token, time.time())
        self.said.append(said)
        stream = rng.random() < manner.streams
        body = {
            "model": manner.model, "stream": stream, "max_tokens": rng.randint(*manner.tokens),
            "messages": [{"role": "user", "content": "word " * rng.randint(1, manner.words)}],
        }  # fmt: skip
        if stream:
            body["stream_options"] = {"include_usage": True}
        try:
            return asked(line, said, body, leaves=rng.random() < manner.leaves)
        finally:
            said.ended_s = time.time()
            self.finished += said.finished
            if manner.pause_s or said.status in (429, 503):
                time.sleep(manner.pause_s or 0.02)


def asked(
    line: HTTPConnection, said: CallerRecord, body: dict[str, Any], *, leaves: bool = False
) -> bool:
    """One request, noted in `said`; whether the connection is still good."""
    headers = {"authorization": f"Bearer {said.token}", "content-type": "application/json"}
    line.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    answer = line.getresponse()
    said.request_id = answer.headers["x-request-id"] or ""
    said.status = answer.status
    said.cost_usd = answer.headers["x-breakeven-cost-usd"] or ""
    if answer.status != 200:  # who leaves was told it, too
        said.retry_after = answer.headers["retry-after"] or ""
    if leaves:
        answer.read(60)
        said.left = True
        line.close()
        return False
    content = answer.read()
    if answer.status != 200:
        said.code = (json.loads(content).get("error") or {}).get("code") or ""
        return True
    if not body["stream"]:
        usage = json.loads(content)["usage"]
    elif content.endswith(b"data: [DONE]\n\n"):
        usage = json.loads(content.split(b"\n\n")[-3].removeprefix(b"data: "))["usage"]
    else:
        said.code = "told" if b'"error"' in content else ""
        return True
    for name in _USAGE:
        setattr(said, name, usage[name])
    said.finished = True
    return True


def statuses(said: list[CallerRecord]) -> str:
    found = Counter("left" if line.left else str(line.status or "broke") for line in said)
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items()))
