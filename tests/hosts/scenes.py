"""What is played on three hosts that share a ledger, and what must come of it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from account import join, quiet, read
from crowd import CallerRecord
from house import SERVED
from network import DATABASE, cut, mend
from play import MANNER, Play, kept
from scene_burst import ask
from scene_peers import MODEL, PROMISE, SCRAPE_S, cut_off, exchange
from scene_revoked import revoked

PER_MINUTE = 60
AT_ONCE, AFFORDED_USD = 60, "0.0007"  # about ten holds of a request for 100 tokens
TRIES = 40
UNDER_WAY_S = 3.0  # what was asked before a cut is answered by then
FINDINGS = 5  # of `verify`, in words
CALM = replace(MANNER, pause_s=0.3)  # starting takes processors, too


def settings(rounds: int) -> dict[str, Any]:
    """Of every host alike."""
    budgets = [
        {"scope": f"team:crowd{number}", "usd": AFFORDED_USD, "period": "day", "hard": True}
        for number in range(rounds)
    ]
    return {
        "budgets": [*budgets, {"scope": "global", "usd": 100_000, "period": "day", "hard": True}],
        "limits": [{"scope": "team:limited", "requests_per_minute": PER_MINUTE}],
        "telemetry": {"scrape_s": SCRAPE_S, "stale_s": 10},
        "policies": [
            {"name": "slow", "match": {"models": [MODEL]}, "slo": PROMISE, "otherwise": "reject"},
            {"name": "default", "slo": {"ttft_ms": 1000, "tpot_ms": 100}, "otherwise": "queue",
             "queue_ms": 2000},
        ],
    }  # fmt: skip


def load(play: Play) -> None:
    """The same callers at one host, then at all: promises kept at either."""
    for name, hosts in (("one host", play.house.hosts[:1]), ("all hosts", play.house.hosts)):
        crowd = play.crowd(hosts, callers=9)
        time.sleep(play.seconds)
        said = [item for item in play.ended(crowd) if item.finished]
        play.found.expect(f"answers by {name}", len(said), holds=bool(said))
        names = {line.request_id for line in said}
        quiet(play.house.ledger, [f"{each}.1" for each in names])
        count, missed = kept(play, names)
        share = round(100 * count / max(1, count + missed), 1)
        play.found.figures[f"promises kept by {name}, %"] = share
        play.say(f"{len(said)} answers by {name}")


def budgets(play: Play) -> None:
    """B1: a crowd at all hosts at once against a budget for a few; then one by one, in turn."""
    hosts = play.house.hosts
    for number in range(play.rounds):
        token = play.house.key(f"crowd{number}", team=f"crowd{number}")
        said = asyncio.run(_at_once(hosts, token, AT_ONCE))
        refused: set[int] = set()
        for turn in range(TRIES):
            if len(refused) == len(hosts):
                break
            time.sleep(0.3)  # what lies idle at one host is another's within 0.2 s
            run = asyncio.run(ask(hosts[turn % len(hosts)].url, token))
            said.append(run)
            refused = {*refused, turn % len(hosts)} if run.status == 429 else set()
        play.said += said
        told = Counter(line.status for line in said)
        play.found.expect(f"round {number}: answered otherwise", told.total() - told[200]
                          - told[429], holds=told[200] + told[429] == told.total())  # fmt: skip
        play.say(f"budget {number}: {told[200]} served of {told.total()}")


def limits(play: Play) -> None:
    """A crowd at all hosts at once, larger than the limit; then one by one."""
    hosts = play.house.hosts
    token, began = play.house.key("limited", team="limited"), time.monotonic()
    said = asyncio.run(_at_once(hosts, token, 2 * PER_MINUTE))
    said += [asyncio.run(ask(hosts[turn % len(hosts)].url, token)) for turn in range(9)]
    took_s = time.monotonic() - began
    play.said += said
    served = sum(line.status == 200 for line in said)
    play.found.figures["limit: asked"] = len(said)
    if took_s < 55:  # all within one minute
        play.found.expect("limit: let in", served, holds=served == PER_MINUTE)
    else:
        play.found.expect("limit: let in", served, holds=served >= PER_MINUTE)
    others = Counter(line.status for line in said) - Counter({200: served, 429: len(said) - served})
    play.found.expect("limit: answered otherwise", str(dict(others)) if others else "",
                      holds=not others)  # fmt: skip
    play.say(f"limit: {served} of {len(said)} in {took_s:.1f} s")


async def _at_once(hosts: list[Any], token: str, count: int) -> list[CallerRecord]:
    ready = asyncio.Barrier(count)
    async with asyncio.timeout(180):
        asked = (ask(hosts[place % len(hosts)].url, token, ready) for place in range(count))
        return list(await asyncio.gather(*asked))


def database_cut(play: Play) -> None:
    """A host that cannot reach the database goes on; what it did is in the books afterwards."""
    alone = play.house.hosts[0]
    crowds = [play.crowd([alone], callers=3), play.crowd(play.house.hosts[1:], callers=3)]
    time.sleep(play.seconds / 2)
    cut(play.house.namespaces[0], DATABASE)
    try:
        time.sleep(UNDER_WAY_S)
        before = crowds[0].finished
        time.sleep(play.seconds)
        served = crowds[0].finished - before
    finally:
        mend(play.house.namespaces[0], DATABASE)
    time.sleep(play.seconds / 2)
    for crowd in crowds:
        play.ended(crowd)
    play.found.expect("answers while cut off from the database", served, holds=served > 0)
    play.say(f"{served} answers by the host that was cut off")


def killed(play: Play) -> None:
    """All processes of a host die at once, under load; the others go on, and it comes back."""
    struck = play.house.hosts[-1]
    crowd = play.crowd(play.house.hosts, manner=CALM)
    time.sleep(play.seconds / 2)
    struck.kill_all()
    before = crowd.finished
    time.sleep(play.seconds)
    served = crowd.finished - before
    struck.start()
    time.sleep(play.seconds / 2)
    play.ended(crowd)
    play.found.expect("answers while a host was dead", served, holds=served > 0)
    play.say(f"{served} answers while a host was dead")


def rolling(play: Play) -> None:
    """Each host in turn is ended with its streams open, and started again."""
    crowd = play.crowd(play.house.hosts, callers=4, manner=CALM)
    codes = []
    for host in play.house.hosts:
        time.sleep(play.seconds / 3)
        codes.append(host.terminate())
        host.start()
        play.say(f"a host ended with {codes[-1]} and serves again")
    time.sleep(play.seconds / 3)
    said = play.ended(crowd)
    silent = [line for line in said if line.status == 200 and not line.finished and not line.code]
    play.found.expect("exits", sum(map(abs, codes)), holds=not any(codes))
    play.found.expect("streams ended without a word", len(silent), holds=not silent)


def join_all(play: Play) -> None:
    """Callers, targets and books, after all is over."""
    entries = play.house.entries()
    did = [entry["request_id"] for entry in entries if entry["status"] != "refused"]
    play.found.figures["quiet after, s"] = round(quiet(play.house.ledger, did), 1)
    books = read(play.house.ledger)
    join(play.said, play.house.entries(), books, play.found, priced=_by_api)
    for finding in books.findings[:FINDINGS]:
        play.say(finding)
    limit = max(
        (row["bound_pusd"] for row in books.attempts if row["request_id"] in _budgeted(books)),
        default=0,
    )
    left = [books.limits[name] - spent for (name, _), spent in books.windows.items()
            if name.startswith("team:crowd")]  # fmt: skip
    if left and limit:
        play.found.expect(
            "most left of a budget, holds", round(max(left) / max(1, limit), 2),
            holds=max(left) < limit,
        )  # fmt: skip


def _by_api(entry: dict[str, Any]) -> bool:
    """What own engines are charged is their share of a contract."""
    return bool(entry["model"] != SERVED)


def _budgeted(books: Any) -> set[str]:
    held = {
        hold["attempt_id"] for hold in books.holds if hold["budget_id"].startswith("team:crowd")
    }
    return {row["request_id"] for row in books.attempts if row["attempt_id"] in held}


SCENES: dict[str, tuple[Callable[[Play], None], str, str]] = {
    "load": (load, "promises kept by one host and by all", ""),
    "budgets": (budgets, "a crowd at all hosts against a budget for ten", "holds without end"),
    "limits": (limits, "a crowd at all hosts against a limit of a minute", "limits apart"),
    "revoked": (revoked, "keys revoked, every worker of every host asked", "revocations unheard"),
    "cut": (database_cut, "a host cut off from the database", "keys forgotten"),
    "killed": (killed, "a host dies at once", "settled much later"),
    "peers": (exchange, "hosts that hear each other, and that do not", "peers tell nothing"),
    "apart": (cut_off, "a host cut off from its peers", "peers believed for ever"),
    "rolling": (rolling, "each host ended and started again, streams open", "ends at once"),
}
