"""B1, B7: everybody at once against a budget for a few, on every worker, round after round."""

import asyncio
import json
import time
from collections import Counter
from decimal import Decimal
from typing import Any

from account import join, quiet, read
from crowd import CallerRecord
from justice import unjustified
from scene import Given, Scene, SceneFigures
from stage import Stage

ROUNDS = 1000
AT_ONCE, AFFORDED = 200, 10
NEWCOMERS, NEWCOMER_ROUNDS = 8, 1000
WORKERS = 4
TOKENS = 100
MESSAGES = [{"role": "user", "content": "hello there, and good day to you"}]
BODY = {"model": "own", "max_tokens": TOKENS, "ignore_eos": True, "messages": MESSAGES}
TOP_UP = 20  # asked alone after the burst, until what is left is too little


def bound_of(stage: Stage) -> int:
    """What one such request is held at, by the books of a host without these budgets."""
    host = stage.host(ledger={"url": stage.new_url("probe.db")})
    host.start()
    said = asyncio.run(ask(host.url, host.token))
    assert host.terminate() == 0
    (row,) = host.rows(f"request_id = '{said.request_id}'")
    return int(row["bound_pusd"])


async def ask(url: str, token: str, ready: asyncio.Barrier | None = None) -> CallerRecord:
    """One request; all that share a barrier are sent when every connection stands."""
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(BODY)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nconnection: close\r\n"
        f"authorization: Bearer {token}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(host, int(port))
    if ready is not None:
        await ready.wait()
    said = CallerRecord(token, time.time())
    writer.write((head + body).encode())
    answer = await reader.read(-1)
    said.ended_s = time.time()
    writer.close()
    top, _, content = answer.partition(b"\r\n\r\n")
    said.status = int(top[9:12] or 0)
    said.request_id = top.partition(b"x-request-id: ")[2].partition(b"\r\n")[0].decode()
    if said.status == 200:
        said.finished = True
        said.completion_tokens = json.loads(content)["usage"]["completion_tokens"]
    elif content:
        said.code = json.loads(content)["error"]["code"]
    return said


async def round_of(url: str, token: str, crowd: int) -> list[CallerRecord]:
    ready = asyncio.Barrier(crowd)
    async with asyncio.timeout(120):
        said = list(await asyncio.gather(*(ask(url, token, ready) for _ in range(crowd))))
        for _ in range(TOP_UP):
            await asyncio.sleep(0.02)
            said.append(await ask(url, token))
            if said[-1].status == 429:
                break
    return said


def play(given: Given) -> SceneFigures:
    """Whole crowds on budgets for ten, then eight newcomers on a budget for one."""
    found, rounds = SceneFigures(), given.of(ROUNDS)
    _rounds(given, found, "team", rounds, AT_ONCE, AFFORDED)
    found.size = f"{rounds} rounds of {AT_ONCE} at once for {AFFORDED}, {WORKERS} workers"
    return found


def newcomers(given: Given) -> SceneFigures:
    found, rounds = SceneFigures(), given.of(NEWCOMER_ROUNDS)
    _rounds(given, found, "user", rounds, NEWCOMERS, 1)
    found.size = f"{rounds} unknown users, {NEWCOMERS} requests at once each, {WORKERS} workers"
    return found


def _rounds(
    given: Given, found: SceneFigures, kind: str, rounds: int, crowd: int, afforded: int
) -> None:
    names = [f"{kind}{number}" for number in range(rounds)]
    with Stage(given, "holds without end") as stage:
        bound, before = bound_of(stage), len(stage.upstream.entries())
        usd = f"{Decimal(afforded * bound).scaleb(-12):f}"
        budgets = [
            {"scope": f"{kind}:{name}", "usd": usd, "period": "day", "hard": True} for name in names
        ]
        host = stage.host(workers=WORKERS, budgets=budgets)
        host.start()
        heard: dict[str, list[CallerRecord]] = {}
        for number, name in enumerate(names):
            token = host.key(name, **{kind: name})
            heard[name] = asyncio.run(round_of(host.url, token, crowd))
            if (number + 1) % 50 == 0:
                given.say(f"{number + 1} of {rounds} rounds")
        entries = stage.upstream.entries()[before:]
        quiet(host.ledger, [entry["request_id"] for entry in entries])
        _judge(host, heard, (afforded, bound), found, entries)
        found.expect("exit", code := host.terminate(), holds=code == 0)


def _judge(
    host: Any, heard: dict[str, list[CallerRecord]], money: tuple[int, int], found: SceneFigures,
    entries: list[dict[str, Any]],
) -> None:  # fmt: skip
    afforded, bound = money
    books, limit = read(host.ledger), afforded * bound
    said = [item for some in heard.values() for item in some]
    join(said, entries, books, found)
    spent = {name.partition("@")[0].partition(":")[2]: pusd
             for (name, _), pusd in books.windows.items()}  # fmt: skip
    wrong = left = 0
    for name, some in heard.items():
        wrong += unjustified(some, books, limit, bound)
        if some[-1].status == 429 and limit - spent.get(name, 0) >= bound:
            left += 1  # alone, and refused although there is room
    found.unjustified = wrong + left
    asked = len(said)
    found.figures["asked"] = asked
    found.figures["refused"] = sum(line.code == "budget_exceeded" for line in said)
    others = Counter(f"{line.status} {line.code}" for line in said
                     if not line.finished and line.code != "budget_exceeded")  # fmt: skip
    found.expect("answered otherwise", str(dict(others)) if others else "", holds=not others)
    least = min((spent.get(name, 0) / limit for name in heard), default=0.0)
    found.expect("least used, % of a limit", round(100 * least, 1), holds=least > 0)


SCENES = (
    Scene("B1", "B1", "200 at once against a budget for 10", play, "holds that see no others"),
    Scene(
        "B7", "B7", "the first 8 requests of an unknown user at once", newcomers,
        "holds that see no others",
    ),
)  # fmt: skip
