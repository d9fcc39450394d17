"""S10 and R13: what one tenant learns of another's prompts, and what a request costs twice.

S10 asks whether a prompt is in an engine's prefix cache because another team sent it: by the cached
tokens that an answer tells, and by the time to the first token. R13 counts calls that a target got
beyond one for each request while one answer in twenty takes twenty times as long.
"""

import asyncio
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from case import Case, CaseFigures, Given
from parts import Stack, eventually

from backends.openai import OpenAIBackend
from backends.simulator.latency import Latency
from gateway.request import routes
from gateway.request.routes import cache_salt
from ledger.identity.keys import KeySpec

PAIRS, TIMED_PAIRS, QUICK_PAIRS = 200, 1_000, 12
WORDS = 2_500  # a prompt whose prefill takes the engine long enough to be told from none
SAME_LEAST = 0.9
ASKED, QUICK_ASKED = 2_000, 100
SLOW = Latency(ttft_s=0.01, ttft_sigma=1.8, tpot_s=0.001, tpot_sigma=0.0)  # p95: 0.2 s


def area(near: list[float], far: list[float]) -> float:
    """The area under the curve that tells both apart, from 0.5 (not at all) to 1; ties are half."""
    order = sorted(near), sorted(far)
    above = sum((item > other) + (item == other) / 2 for item in order[0] for other in order[1])
    part = above / (len(near) * len(far))
    return max(part, 1 - part)


def told(given: Given) -> CaseFigures:
    """By what an answer says of its prompt: cached tokens."""
    return _asked(given, PAIRS, lambda usage, _: usage["prompt_tokens_details"]["cached_tokens"])


def timed(given: Given) -> CaseFigures:
    """By seconds to the first token."""
    return _asked(given, TIMED_PAIRS, lambda _, first_s: first_s)


def _asked(given: Given, full: int, seen: Callable[[Any, float], float]) -> CaseFigures:
    usual, pairs = routes.cache_salt, full if given.full and not given.broken else QUICK_PAIRS
    if given.broken:
        routes.cache_salt = lambda _: None
    try:
        with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), {}) as stack:
            others = _areas(stack, "rivals", pairs, given.seed, seen)
            own = _areas(stack, "search", min(pairs, 50), given.seed, seen)
    finally:
        routes.cache_salt = usual
    faults = () if own >= SAME_LEAST else (f"a team's own prompts are told by {own:.3f} only",)
    size = f"2 x {pairs} prompts; of a team's own {own:.3f}, at least {SAME_LEAST}"
    return CaseFigures(round(others, 3), size, faults)


def _areas(
    stack: Any, team: str, pairs: int, seed: int, seen: Callable[[Any, float], float]
) -> float:
    """One team asks; then `team` asks the same, or what nobody did, in an order of chance.

    Somebody asked just before in either case: that alone is told by fractions of a millisecond.
    """
    rng, found = random.Random(f"{seed}{team}"), {True: [], False: []}  # type: ignore[var-annotated]
    first, then = stack.key("first").token, stack.key(f"of {team}", team=team).token
    whose = SimpleNamespace(isolation="team", org_id=KeySpec.org, team_id="search")
    salted = {"cache_salt": cache_salt(whose)}  # as if the salt of the first were known
    kinds = [True, False] * pairs
    rng.shuffle(kinds)
    for is_known in kinds:
        before, prompt = (
            " ".join(str(rng.randrange(10**6)) for _ in range(WORDS)) for _ in range(2)
        )
        _ask(stack, first, prompt if is_known else before)
        usage, first_s = _ask(stack, then, prompt, **salted)
        found[is_known].append(seen(usage, first_s))
    return area(found[True], found[False])


def _ask(stack: Any, token: str, prompt: str, **members: Any) -> tuple[Any, float]:
    """The usage that was told, and seconds to the first token."""
    body = {
        "model": "own", "max_tokens": 1, "stream": True, **members,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": prompt}],
    }  # fmt: skip
    url, began, first_s, usage = f"{stack.url}/v1/chat/completions", time.monotonic(), None, None
    with stack.client.stream("POST", url, json=body, headers=stack.headers(token)) as answer:
        assert answer.status_code == 200, answer.read()
        for line in answer.iter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            said = [choice["delta"].get("content") for choice in event["choices"]]
            if first_s is None and any(said):
                first_s = time.monotonic() - began
            usage = event.get("usage") or usage
    assert first_s is not None
    return usage, first_s


def hedged(given: Given) -> CaseFigures:
    """Percent of requests for which a target was called once more while it was at work."""
    count, usual = ASKED if given.full else QUICK_ASKED, OpenAIBackend.open
    if given.broken:
        OpenAIBackend.open = _twice(usual)
    try:
        with tempfile.TemporaryDirectory() as folder, Stack(Path(folder), {}) as stack:
            stack.providers["alpha"]._latency = SLOW
            answers = [stack.chat("api", max_tokens=1).status_code for _ in range(count)]
            asked, rows = answers.count(200), stack.booked()
            calls = len(
                eventually(lambda: stack.entries("alpha")[asked - 1 :] and stack.entries("alpha"))
            )
    finally:
        OpenAIBackend.open = usual
    faults = () if rows == calls or given.broken else (f"{rows} rows of {calls} calls",)
    return CaseFigures(100 * (calls - asked) / asked, f"{asked:,} requests", faults)


def _twice(usual: Any) -> Any:
    """What hedges without a bound: whoever has not answered is asked once more, every time."""

    async def opened(self: Any, call: Any) -> Any:
        item, other = await asyncio.gather(usual(self, call), usual(self, call))
        await other.aclose()
        return item

    return opened


CASES = (
    Case("S10", "another team's prompts, told by answers", told, "no salt", 0.55, "AUC"),
    Case("S10", "another team's prompts, told by time", timed, "no salt", 0.55, "AUC"),
    Case("R13", "calls beyond one a request", hedged, "every call twice", 5, "%"),
)
