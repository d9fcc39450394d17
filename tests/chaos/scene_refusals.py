"""B3, B4: nothing is refused that has room, and what there is can be spent to the last hold."""

import random
import threading
import time
from decimal import Decimal
from http.client import HTTPConnection
from typing import Any

import httpx
from account import settle
from crowd import CallerRecord, Crowd, Manner, asked, statuses
from justice import unjustified
from scene import Given, Scene, SceneFigures
from stage import Stage

REQUESTS = 20_000
TOKENS = (5, 60)
LONG = 300  # output tokens of each request that spends what is left
PUSD_EACH = 33_000_000  # about what one such request costs
MOST_LEFT = 2  # holds: the second may be somebody's who was asking


class Trouble(threading.Thread):
    """One answer in twenty of the target fails or breaks off."""

    def __init__(self, port: int, rng: random.Random, crowd: Crowd) -> None:
        super().__init__(daemon=True)
        self._url, self._rng, self._crowd = f"http://127.0.0.1:{port}/_faults", rng, crowd
        self.made = 0

    def run(self) -> None:
        with httpx.Client(trust_env=False) as client:
            while not self._crowd.stopped.is_set():
                if self._crowd.finished > 20 * self.made:
                    kind = self._rng.choice(("status", "cut"))
                    client.post(self._url, json={"fault": kind, "after_tokens": 2})
                    self.made += 1
                time.sleep(0.005)


def play(given: Given) -> SceneFigures:
    found, wanted = SceneFigures(), given.of(REQUESTS, least=100)
    usd = Decimal(wanted * PUSD_EACH).scaleb(-12)
    budgets = [
        {"scope": scope, "usd": f"{usd:f}", "period": "day", "hard": True}
        for scope in ("team:many", "user:one")
    ]
    with Stage(given, "holds kept") as stage:
        host = stage.host(budgets=budgets)
        host.start()
        token = host.key("many", team="many", user="one")
        manner = Manner(tokens=TOKENS, leaves=0.05)
        crowd = Crowd([host], [token], manner, seed=given.seed)
        trouble = Trouble(stage.upstream.port, given.rng, crowd)
        crowd.start()
        trouble.start()
        limit_s = time.monotonic() + 60 + 0.2 * wanted
        while sum(len(caller.said) for caller in crowd.callers) < wanted:
            time.sleep(0.2)
            if time.monotonic() > limit_s:
                break
        said = crowd.stop()
        trouble.join()
        given.say(f"{len(said)} asked: {statuses(said)}; now one caller spends what is left")
        _forgive(stage.upstream.port)
        time.sleep(3.0)  # idle
        late = spend(host.url, token, given, most=max(1_000, wanted))
        books = settle(host.ledger, [*said, *late], stage.upstream.entries, found)
        found.expect("exit", code := host.terminate(), holds=code == 0)
    _judge(found, books, said, late, int(usd.scaleb(12)))
    found.size = f"{len(said)} requests, {trouble.made} faults, then {len(late)} one by one"
    found.figures["answers"] = statuses(said)
    return found


def _forgive(port: int) -> None:
    httpx.delete(f"http://127.0.0.1:{port}/_faults", trust_env=False)


def spend(url: str, token: str, given: Given, *, most: int) -> list[CallerRecord]:
    """Alone, one after the other, until the budget says no; `most` requests."""
    said: list[CallerRecord] = []
    line = HTTPConnection(url.removeprefix("http://"), timeout=60)
    body: dict[str, Any] = {"model": "own", "stream": False, "max_tokens": LONG,
                            "ignore_eos": True}  # fmt: skip
    body["messages"] = [{"role": "user", "content": "go on"}]
    for _ in range(most):
        said.append(CallerRecord(token, time.time()))
        asked(line, said[-1], body)
        said[-1].ended_s = time.time()
        if said[-1].status == 429:
            break
    line.close()
    given.say(f"refused after {len(said) - 1}")
    return said


def _judge(
    found: SceneFigures, books: Any, said: list[CallerRecord], late: list[CallerRecord], limit: int
) -> None:
    bounds = {row["request_id"]: row["bound_pusd"] for row in books.attempts}
    least = min((bounds[line.request_id] for line in said if line.request_id in bounds), default=0)
    most = max((bounds[item.request_id] for item in late if item.request_id in bounds), default=0)
    wrong = unjustified(said, books, limit, least)
    spent = max(books.windows.values(), default=0)
    refused = late[-1].status == 429
    if refused and most and limit - spent >= most:
        wrong += 1  # alone, idle, and refused although there is room
    if not most:
        wrong += 1  # nothing of what was left could be spent
    found.unjustified = wrong
    found.expect("refused at the end", int(refused), holds=refused)
    found.figures["used, % of the limit"] = round(100 * spent / limit, 2)
    found.figures["left, in holds"] = round((limit - spent) / most, 2) if most else "-"
    found.figures["refused before"] = sum(line.code == "budget_exceeded" for line in said)


SCENES = (
    Scene(
        "B3", "B3, B4", "aborts and failures, then one caller spends all that is left", play,
        "holds that never end",
    ),
)  # fmt: skip
