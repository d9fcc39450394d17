"""Callers that hold conversations over stored answers, and what they were told is stored."""

import json
import random
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any

from crowd import CallerRecord

PATH = "/v1/responses"
TURNS = 8  # of a conversation; then a new one
ENDS = ("response.completed", "response.incomplete")
GONE = (400, 404)


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """An answer whose end its caller has read, with `store: true` in it."""

    token: str
    document: dict[str, Any]


class Talkers:
    """`hosts`: each turn is asked of the next one, and looked for on the one behind it."""

    def __init__(
        self, hosts: list[Any], tokens: list[str], *, callers: int = 8, seed: int = 1
    ) -> None:
        self.stopped = threading.Event()
        self.callers = [
            Talker(hosts, tokens[place % len(tokens)], seed * 1000 + place, self.stopped)
            for place in range(callers)
        ]

    def start(self) -> None:
        for caller in self.callers:
            caller.start()

    @property
    def finished(self) -> int:
        return sum(len(caller.told) for caller in self.callers)

    def stop(self) -> list[CallerRecord]:
        """Everything that was said; `told` and `seen` are complete then."""
        self.stopped.set()
        for caller in self.callers:
            caller.join(90)
        assert not any(caller.is_alive() for caller in self.callers), "a caller never ended"
        return [line for caller in self.callers for line in caller.said]

    @property
    def told(self) -> list[StoredTurn]:
        return [answer for caller in self.callers for answer in caller.told]

    @property
    def seen(self) -> Counter[str]:
        """What was found of stored answers at once, and of turns that went on from them."""
        return sum((caller.seen for caller in self.callers), Counter())


class Talker(threading.Thread):
    def __init__(self, hosts: list[Any], token: str, seed: int, stopped: threading.Event) -> None:
        super().__init__(daemon=True)
        self._hosts, self._token, self._turn = hosts, token, seed
        self._rng, self._stopped = random.Random(seed), stopped
        self._last, self._turns = "", 0  # the answer that the next turn goes on from
        self.said: list[CallerRecord] = []
        self.told: list[StoredTurn] = []
        self.seen: Counter[str] = Counter()

    def run(self) -> None:
        while not self._stopped.is_set():
            with suppress(OSError, HTTPException, ValueError):
                self._converse()
                continue
            time.sleep(0.05)

    def _converse(self) -> None:
        """One turn, and one look at its answer on the next host."""
        said = CallerRecord(self._token, time.time())
        self.said.append(said)
        try:
            document = self._ask(said)
        finally:
            said.ended_s = time.time()
        if document is None:
            if said.status != 200:
                time.sleep(0.05)
            return
        if document["store"] is not True:
            self.seen["not stored"] += 1
            return
        self.told.append(StoredTurn(self._token, document))
        self._last, self._turns = str(document["id"]), self._turns + 1
        if self._turns == TURNS:
            self._last, self._turns = "", 0
        status, found = look(self._next_host(), self._token, str(document["id"]))
        self.seen["gone at once"] += status in GONE
        self.seen["another at once"] += status == 200 and found != document

    def _next_host(self) -> Any:
        self._turn += 1
        return self._hosts[self._turn % len(self._hosts)]

    def _ask(self, said: CallerRecord) -> dict[str, Any] | None:
        """Return the answer whose end was read."""
        rng = self._rng
        body = {
            "model": "own", "stream": rng.random() < 0.5,
            "input": "word " * rng.randint(1, 30), "max_output_tokens": rng.randint(1, 40),
            **({"previous_response_id": self._last} if self._last else {}),
        }  # fmt: skip
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        address = self._next_host().url.removeprefix("http://")
        with closing(HTTPConnection(address, timeout=40)) as line:
            line.request("POST", PATH, json.dumps(body), headers)
            answer = line.getresponse()
            said.request_id, said.status = answer.headers["x-request-id"] or "", answer.status
            content = answer.read()
        if said.status != 200:
            said.code = (json.loads(content).get("error") or {}).get("code") or ""
            self.seen["chain gone"] += bool(self._last) and said.status in GONE
            return None
        document = end_of(content) if body["stream"] else json.loads(content)
        if document is None:
            said.code = "told" if b"response.failed" in content else ""
            return None
        usage = document["usage"]
        said.prompt_tokens, said.completion_tokens = usage["input_tokens"], usage["output_tokens"]
        said.finished = True
        return document


def end_of(stream: bytes) -> dict[str, Any] | None:
    """Return the response of a stream's last event; None where it did not come to its end."""
    if not stream.endswith(b"\n\n"):
        return None
    _, _, data = stream.rstrip().rpartition(b"\n\n")[2].partition(b"\ndata: ")
    event = json.loads(data or b"{}")
    return dict(event["response"]) if event.get("type") in ENDS else None


def look(host: Any, token: str, name: str) -> tuple[int, dict[str, Any] | None]:
    """Return what a host has of an answer: the status, and the answer."""
    address = host.url.removeprefix("http://")
    with closing(HTTPConnection(address, timeout=40)) as line:
        line.request("GET", f"{PATH}/{name}", headers={"authorization": f"Bearer {token}"})
        answer = line.getresponse()
        content = answer.read()
    return answer.status, json.loads(content) if answer.status == 200 else None
