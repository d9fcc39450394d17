"""The same number of clients on the same engines, each way in turn: what is lost on the way?

Straight, straight with usage in every chunk (as the gateway asks for it), and through the gateway.
"""

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from statistics import mean
from typing import Any

from gpuclients import Answer, Clients, Shape, figures
from gpuserve import MODEL, counters

WAYS = ("straight", "straight, usage each", "gateway")
SEGMENTS, WARM_S, SEGMENT_S, LOOKS = 5, 5.0, 10.0, 10
PROCESSES = 6
MIX = Shape(512, 256)


def _loop(way: str, url: str, key: str, clients: int, seed: int) -> list[Answer]:
    """In a process of its own: one interpreter reads no more than some thousand tokens a second."""
    random.seed(seed)
    model = MODEL if way == "gateway" else "m"
    loop = Clients(url, model, key, each=way.endswith("each")).closed_loop(
        clients, WARM_S + SEGMENT_S, MIX, spread_s=2.0, seed=seed
    )
    return asyncio.run(loop)


def measure(
    engines: list[str], gateway: str, key: str, at_once: int, keep: Callable[..., None]
) -> None:
    """Tokens a second of so many clients, by their clocks and by the engines' own counters.

    `keep` is given members of the result as they come.
    """
    each = at_once // PROCESSES
    points: list[dict[str, Any]] = []
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        list(pool.map(abs, range(PROCESSES * 4)))  # started before anything is timed
        for number in range(SEGMENTS * len(WAYS)):
            way = WAYS[(number + number // len(WAYS)) % len(WAYS)]  # each begins a turn in turn
            urls = [gateway] if way == "gateway" else engines
            began_s = time.monotonic()
            runs = [
                pool.submit(_loop, way, urls[place % len(urls)], key, each, 100 * number + place)
                for place in range(PROCESSES)
            ]
            counted = _counted(engines, began_s)
            answers = [item for run in runs for item in run.result()]
            point = figures(answers, began_s + WARM_S, began_s + WARM_S + SEGMENT_S)
            points.append({"way": way, **point, **counted})
            keep(at_once=each * PROCESSES, points=points)
    for of in ("output_tokens_per_s", "engines_tokens_per_s"):
        keep(**{of: _lost(points, of)})


def _counted(urls: list[str], began_s: float) -> dict[str, Any]:
    """What the engines say of the window: tokens a second, and how many each has at ten looks."""
    time.sleep(max(0.0, began_s + WARM_S - time.monotonic()))
    first_s = time.monotonic()
    looks = [[counters(url) for url in urls]]
    for number in range(1, LOOKS + 1):
        time.sleep(max(0.0, first_s + SEGMENT_S * number / LOOKS - time.monotonic()))
        looks.append([counters(url) for url in urls])
    took_s = time.monotonic() - first_s
    tokens = [sum(item["generation_tokens"] for item in look) for look in (looks[0], looks[-1])]
    return {
        "engines_tokens_per_s": round((tokens[1] - tokens[0]) / took_s, 1),
        "running": [[item["num_requests_running"] for item in look] for look in looks],
    }


def _lost(points: list[dict[str, Any]], of: str) -> dict[str, Any]:
    """What each way had less than straight, of neighbouring segments and of all, in percent."""
    found = {way: [point[of] for point in points if point["way"] == way] for way in WAYS}
    straight = found.pop(WAYS[0])
    return {WAYS[0]: round(mean(straight), 1)} | {
        way: {
            "tokens_per_s": round(mean(rates), 1),
            "lost_percent": round(100 * (1 - mean(rates) / mean(straight)), 2),
            "lost_percent_of_turns": [round(100 * (1 - rate / base), 2)
                                      for rate, base in zip(rates, straight, strict=True)],
        }
        for way, rates in found.items()
    }  # fmt: skip
