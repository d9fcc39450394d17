"""Traffic that is drawn, with statistics that no recorded trace has.

A day's rise and fall in two minutes, lengths with heavy tails, bursts whose requests are alike (a
job that sends its documents at once), sessions whose prompts grow turn by turn; short answers in
bursts from clients of six kinds, of which classifiers answer with one to three tokens; long prompts
that go on from earlier ones. Everything by a name, so that a cell's arrivals are always the same.
"""

import heapq
import math
import random
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple

from traces import Row, Traces

COUNT = 12_000
RATE, DAY_S = 15.0, 120.0  # requests a second about; a cell scales time to the rate it wants
LONGEST_IN, LONGEST_OUT = 7000, 1500
LONG_PROMPT, LONG_RATE, SHARED_TOKENS = 126_000, 3.4, 512


class Client(NamedTuple):
    """Clients of a kind: their share of all requests, how many, medians and sigmas of lengths."""

    share: float
    clients: int
    prompt: tuple[float, float]
    answer: tuple[float, float]
    most: int  # tokens of an answer
    variation: float  # of the gaps between its requests


# Prompts of 770 tokens on average, answers of 220, a fifth of them of at most three.
CLIENTS = (
    Client(0.27, 4, (76, 0.55), (430, 0.16), 1024, 5.0),  # chat
    Client(0.21, 6, (620, 0.14), (1.7, 0.5), 8, 2.6),  # classify
    Client(0.10, 5, (2250, 0.18), (500, 0.22), 1500, 5.0),  # retrieve
    Client(0.10, 4, (66, 0.10), (13, 0.55), 60, 1.0),  # route
    Client(0.13, 8, (1500, 0.40), (75, 0.70), 800, 2.2),  # extract
    Client(0.19, 30, (820, 0.75), (60, 1.25), 8192, 1.6),  # everything else
)


def diurnal(rng: random.Random) -> Iterator[Row]:
    """Between a fifth and nine fifths of the mean rate; lognormal lengths."""
    at_s = 0.0
    while True:
        at_s += rng.expovariate(RATE * (1.0 + 0.8 * math.sin(2.0 * math.pi * at_s / DAY_S)))
        yield _short(at_s, rng.lognormvariate(6.5, 0.6), rng.lognormvariate(5.0, 0.6))


def heavy(rng: random.Random) -> Iterator[Row]:
    """Poisson arrivals; Pareto lengths, whose few longest are a large part of all tokens."""
    at_s = 0.0
    while True:
        at_s += rng.expovariate(RATE)
        yield _short(at_s, 150 * rng.paretovariate(1.1), 30 * rng.paretovariate(1.2))


def bursts(rng: random.Random) -> Iterator[Row]:
    """Half of all comes in jobs of about 40 requests within seconds, alike within each job."""
    at_s = job_s = 0.0
    job: list[Row] = []
    while True:
        at_s += rng.expovariate(0.5 * RATE)
        if at_s > job_s:
            job_s = at_s + rng.expovariate(0.5 * RATE / 40.0)
            prompt, output = rng.lognormvariate(7.0, 0.7), rng.lognormvariate(4.0, 0.9)
            job += [
                _short(at_s + rng.uniform(0.0, 2.0), prompt * rng.uniform(0.9, 1.1),
                       output * rng.uniform(0.8, 1.2))
                for _ in range(round(rng.expovariate(1.0 / 40.0)))
            ]  # fmt: skip
        yield _short(at_s, rng.lognormvariate(6.0, 1.0), rng.lognormvariate(5.0, 0.8))
        yield from job
        job = []


def sessions(rng: random.Random) -> Iterator[Row]:
    """Conversations: each turn's prompt is all that was said before, 20 s after the answer."""
    at_s = 0.0
    while True:
        at_s += rng.expovariate(RATE / 5.0)
        said, turn_s = 0, at_s
        for _ in range(1 + min(12, round(rng.expovariate(1.0 / 4.0)))):
            said += round(rng.lognormvariate(4.5, 0.8))
            answer = round(rng.lognormvariate(5.2, 0.6))
            yield _short(turn_s, said, answer)
            said += answer
            turn_s += rng.expovariate(1.0 / 20.0)


def short_bursty(rng: random.Random) -> Iterator[Row]:
    """Clients with gaps of their own, whose rates wander every ten minutes."""
    queue: list[tuple[float, int]] = []
    clients: list[tuple[Client, float, float]] = []  # with its rate, and how long its prompts are
    for kind in CLIENTS:
        weights = [1.0 / place for place in range(1, kind.clients + 1)]
        for weight in weights:
            rate = kind.share * RATE * weight / sum(weights)
            queue.append((rng.expovariate(rate), len(clients)))
            clients.append((kind, rate, rng.lognormvariate(0.0, 0.12)))
    heapq.heapify(queue)
    wander: dict[tuple[int, int], float] = {}
    while True:
        at_s, place = heapq.heappop(queue)
        kind, rate, longer = clients[place]
        yield (
            at_s, _length(rng, (kind.prompt[0] * longer, kind.prompt[1]), 1, 27_000),
            _length(rng, kind.answer, 1, kind.most),
        )  # fmt: skip
        window = place, int(at_s / 600.0)
        if window not in wander:
            wander[window] = rng.lognormvariate(0.0, 0.25)
        shape = kind.variation**-2
        gap_s = rng.gammavariate(shape, 1.0 / (shape * rate * wander[window]))
        heapq.heappush(queue, (at_s + gap_s, place))


def long_prompts(rng: random.Random) -> Iterator[Row]:
    """Long requests, without what they share."""
    return (row for row, _ in long_requests(rng))


def long_requests(rng: random.Random) -> Iterator[tuple[Row, tuple[int, ...]]]:
    """A quarter goes on from an earlier answer, an eighth asks about one of many documents.

    Each comes with the ids of its prompt's parts of `SHARED_TOKENS`; equal ids are equal parts.
    """
    documents = [_length(rng, (16, 1.0), 1, 200) * SHARED_TOKENS for _ in range(COUNT // 85)]
    fresh = count(1)
    texts = [(0, *islice(fresh, tokens // SHARED_TOKENS)) for tokens in documents]
    popular = [place**-0.6 for place in range(1, len(documents) + 1)]
    # Conversations: when they go on, with how many tokens, and the ids of these.
    waiting: list[tuple[float, int, tuple[int, ...]]] = []
    now_s = 0.0
    while True:
        now_s += rng.gammavariate(9.0, 3.0 / 9.0)  # groups about 3 s apart
        for _ in range(max(1, _poisson(rng, 3.0 * LONG_RATE))):
            drawn = rng.random()
            if waiting and waiting[0][0] <= now_s and drawn < 0.25:
                _, known, parts = heapq.heappop(waiting)
                goes_on, added = True, _length(rng, (1100, 1.3), 20, 40_000)
            elif drawn < 0.38:
                (place,) = rng.choices(range(len(documents)), popular)
                known, parts = SHARED_TOKENS + documents[place], texts[place]
                goes_on, added = rng.random() < 0.2, _length(rng, (1500, 1.2), 30, 60_000)
            else:
                known, parts = SHARED_TOKENS, (0,)
                goes_on, added = rng.random() < 0.75, _length(rng, (4200, 1.32), 60, LONG_PROMPT)
            prompt, answer = min(LONG_PROMPT, known + added), _long_answer(rng)
            more = max(0, prompt // SHARED_TOKENS - len(parts))
            parts = (*parts[: prompt // SHARED_TOKENS], *islice(fresh, more))
            yield (now_s + rng.uniform(0.0, 0.05), prompt, answer), parts
            if goes_on and prompt + answer < 0.8 * LONG_PROMPT and rng.random() < 0.72:
                again_s = now_s + rng.gammavariate(1.2, 50.0)
                heapq.heappush(waiting, (again_s, prompt + answer, parts))


KINDS: dict[str, Callable[[random.Random], Iterator[Row]]] = {
    "diurnal": diurnal, "heavy tails": heavy, "bursts": bursts, "sessions": sessions,
    "short bursty": short_bursty, "long prompts": long_prompts,
}  # fmt: skip


class Drawn(Traces):
    """Traces that are drawn, whatever lies beside the checkout."""

    def rows(self, name: str) -> list[Row]:
        if name not in self._read:
            self._read[name] = sorted(islice(KINDS[name](random.Random(name)), COUNT))
        return self._read[name]


def _short(at_s: float, prompt: float, output: float) -> Row:
    prompt, output = round(prompt), round(output)
    return at_s, max(8, min(LONGEST_IN, prompt)), max(2, min(LONGEST_OUT, output))


def _length(rng: random.Random, middle: tuple[float, float], least: int, most: int) -> int:
    median, sigma = middle
    return min(most, max(least, round(median * math.exp(sigma * rng.gauss(0.0, 1.0)))))


def _long_answer(rng: random.Random) -> int:
    """Some of a word, some short ones, most of a few hundred tokens."""
    if rng.random() < 0.03:
        return rng.randrange(1, 4)
    if rng.random() < 0.12:
        return _length(rng, (60, 0.8), 4, 400)
    return int(min(2000, max(4, rng.gammavariate(4.2, 92.0))))


def _poisson(rng: random.Random, mean: float) -> int:
    count, at = 0, rng.expovariate(mean)
    while at < 1.0:
        count += 1
        at += rng.expovariate(mean)
    return count
