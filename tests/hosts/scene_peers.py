"""Hosts that tell each other what they have in flight, on engines where it matters who is asked.

Four engines that read a prompt in 0.75 s, ten times as slow as an H200, so that this machine is not
what is waited for; a promise that is kept for whoever finds an engine idle, and for nobody else.
Requests come in bursts of four: one an engine, if every host knows of the others'.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Any

from account import quiet
from crowd import CallerRecord, asked
from network import address_of, cut, mend
from play import Play, kept

MODEL = "slow"
BURST, BETWEEN_S, APART_S, TOKENS = 4, 2.0, 0.09, 8  # the least between two of one
PROMPT_TOKENS = (2900, 3100)
TOKEN_BYTES = 4
SCRAPE_S = 2.0  # of engines ten times as slow, that is often
PROMISE = {"ttft_ms": 1100, "tpot_ms": 2000}
ROUNDS, WARM_S = 4, 10.0
LOST_POINTS = 5.0  # of promises kept, in percent, that all hosts may lose against one
GONE_S, BACK_S = 0.5, 10.0
LOOK_S = 0.02


class Arrivals:
    """Requests at random moments, the same ones of a seed, at all hosts in turn."""

    def __init__(self, hosts: Sequence[Any], token: str, seed: int) -> None:
        self._hosts, self._token, self._rng = hosts, token, random.Random(seed)
        self.said: list[CallerRecord] = []
        self._threads: list[threading.Thread] = []

    def come(self, seconds: float) -> None:
        began_s, count = time.monotonic(), round(seconds / BETWEEN_S) * BURST
        for turn in range(count):
            burst, place = divmod(turn, BURST)
            at_s = burst * BETWEEN_S + place * APART_S * self._rng.uniform(1.0, 1.3)
            tokens = self._rng.randint(*PROMPT_TOKENS)
            words = f"{self._rng.getrandbits(128):032x} " * (tokens * TOKEN_BYTES // 33)
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            host = self._hosts[turn % len(self._hosts)]
            said = CallerRecord(self._token, time.time())
            self.said.append(said)
            thread = threading.Thread(target=_one, args=(host.url, said, words), daemon=True)
            thread.start()
            self._threads.append(thread)

    def ended(self) -> list[CallerRecord]:
        for thread in self._threads:
            thread.join(60)
        return self.said


def _one(url: str, said: CallerRecord, words: str) -> None:
    body = {
        "model": MODEL, "stream": True, "max_tokens": TOKENS, "ignore_eos": True,
        "stream_options": {"include_usage": True}, "messages": [{"role": "user", "content": words}],
    }  # fmt: skip
    try:
        with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as line:
            asked(line, said, body)
    except (OSError, HTTPException, ValueError):
        return  # `said.status` is 0
    finally:
        said.ended_s = time.time()


@contextmanager
def apart(play: Play, number: int, others: Sequence[int]) -> Iterator[None]:
    """No packet goes either way between this host and those."""
    names = play.house.namespaces
    with ExitStack() as mended:
        for other in others:
            for item, two in ((number, other), (other, number)):
                cut(names[item], address_of(two))
                mended.callback(mend, names[item], address_of(two))
        yield


@contextmanager
def all_apart(play: Play) -> Iterator[None]:
    with ExitStack() as mended:
        for number in range(len(play.house.hosts)):
            mended.enter_context(apart(play, number, range(number)))
        yield


def heard(host: Any) -> int:
    return int(host.metric("breakeven_peers_heard"))


def within(check: Callable[[], bool], limit_s: float) -> float:
    """Seconds until it came true, or the limit."""
    began_s = time.monotonic()
    while not check() and time.monotonic() < began_s + limit_s:
        time.sleep(LOOK_S)
    return time.monotonic() - began_s


def exchange(play: Play) -> None:
    """The same requests at one host, at all, and at all while none hears another."""
    hosts = play.house.hosts
    others = len(hosts) - 1
    ways: dict[str, list[CallerRecord]] = {"one host": [], "all hosts": [], "all hosts, apart": []}
    _phase(play, hosts, WARM_S, seed=99)
    for number in range(ROUNDS):
        for name in ways:
            with ExitStack() as mended:
                if name.endswith("apart"):
                    mended.enter_context(all_apart(play))
                count = 0 if name.endswith("apart") else others
                within(lambda count=count: all(heard(host) == count for host in hosts), BACK_S)
                chosen = [hosts[number % len(hosts)]] if name == "one host" else hosts
                ways[name] += _phase(play, chosen, play.seconds, seed=number)
    item, all_, _ = (_kept(play, name, said) for name, said in ways.items())
    play.found.expect(
        "points that all hosts lose against one", round(item - all_, 1),
        holds=all_ >= item - LOST_POINTS,
    )  # fmt: skip


def _phase(play: Play, hosts: Sequence[Any], seconds: float, *, seed: int) -> list[CallerRecord]:
    arrivals = Arrivals(hosts, play.house.hosts[0].token, seed)
    arrivals.come(seconds)
    said = arrivals.ended()
    play.said += said
    return said


def _kept(play: Play, name: str, said: list[CallerRecord]) -> float:
    """Of all promises that were made, those kept, in percent: who is refused was promised none."""
    names = [line.request_id for line in said if line.finished]
    quiet(play.house.ledger, [f"{name}.1" for name in names])
    count, missed = kept(play, names)
    refused = sum(line.status == 429 for line in said)
    share = round(100 * count / max(1, count + missed), 1)
    play.found.figures |= {
        f"asked of {name}": len(said), f"in time by {name}": count, f"late by {name}": missed,
        f"refused by {name}": refused, f"promises kept by {name}, of slow engines, %": share,
    }  # fmt: skip
    play.say(f"{name}: {count} of {len(said)} in time, {missed} late, {refused} refused")
    return share


def cut_off(play: Play) -> None:
    """One host loses its peers under load: nobody believes the last it heard for long."""
    hosts = play.house.hosts
    others = range(1, len(hosts))
    all_hear = len(hosts) - 1
    within(lambda: all(heard(host) == all_hear for host in hosts), BACK_S)
    arrivals = Arrivals(hosts, hosts[0].token, seed=7)
    coming = threading.Thread(target=arrivals.come, args=(2 * play.seconds,))
    coming.start()
    time.sleep(play.seconds / 2)
    with apart(play, 0, others):
        took_s = within(
            lambda: heard(hosts[0]) == 0 and heard(hosts[1]) == all_hear - 1, 4 * GONE_S
        )
        gone = heard(hosts[0]) == 0 and all(heard(hosts[each]) == all_hear - 1 for each in others)
        before = sum(line.finished for line in arrivals.said)
        time.sleep(play.seconds)
        served = sum(line.finished for line in arrivals.said) - before
    back_s = within(lambda: all(heard(host) == all_hear for host in hosts), 3 * BACK_S)
    coming.join()
    play.said += arrivals.ended()
    play.found.expect(
        "heard no more after, s", round(took_s, 2), holds=gone and took_s < 2 * GONE_S
    )
    play.found.expect("answers while a host was apart", served, holds=served > 0)
    play.found.expect("heard again after, s", round(back_s, 1), holds=back_s < 3 * BACK_S)
    play.say(f"gone after {took_s:.2f} s, back after {back_s:.1f} s, {served} answers between")
