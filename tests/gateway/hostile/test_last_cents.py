"""Many at once on a team's last cents: as many as fit, none above, and no room is lost."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from billing_provider import ProviderCall, honest
from hostile_scripts import makes_media

MANY = 20
SAID = [{"role": "user", "content": "hello there"}]
SPEAKS = {"model": "speaks", "input": "x" * 100, "voice": "a"}
ASKED: dict[str, tuple[str, dict[str, Any], float]] = {
    "stream": (
        "/v1/chat/completions",
        {"model": "first", "max_tokens": 20, "messages": SAID, "stream": True},
        0.004,
    ),
    "responses": (
        "/v1/responses",
        {"model": "first", "input": "hi", "max_output_tokens": 20},
        0.004,
    ),
    "speech": ("/v1/audio/speech", SPEAKS, 0.0101),
}


class Gate:
    """Keeps every request waiting until it is opened."""

    def __init__(self) -> None:
        self.waiting, self.opened = 0, asyncio.Event()

    async def __call__(self, call: ProviderCall) -> None:
        self.waiting += 1
        await self.opened.wait()
        speaks = call.path.endswith("speech")
        await (makes_media("speaks", 1_500_000_000) if speaks else honest)(call)


@pytest.mark.parametrize("kind", ASKED)
def test_as_many_as_fit_are_let_in_at_once_and_the_rest_is_left_to_who_comes_later(
    hostile, kind
) -> None:
    path, body, usd = ASKED[kind]
    team, gate, codes = f"tight-{kind}", Gate(), []
    for name in ("first", "second"):
        hostile.provider.plays[name] = [gate] * MANY

    def send() -> int:
        codes.append(hostile.post(team, path, body).status_code)
        return codes[-1]

    hostile.token(team)
    with ThreadPoolExecutor(MANY) as pool:
        for _ in range(MANY):
            pool.submit(send)
        hostile.patiently(lambda: gate.waiting + len(codes) == MANY)
        hostile.provider.loop.call_soon_threadsafe(gate.opened.set)
    rows = hostile.judged(team, usd)
    limit_pusd, bounds = int(usd * 1e12), [row["bound_pusd"] for row in rows]
    assert 0 <= limit_pusd - sum(bounds) < min(bounds)
    assert codes.count(200) == len(rows) < MANY
    while send() == 200:
        pass
    rows = hostile.judged(team, usd)
    left_pusd = limit_pusd - sum(row["cost_pusd"] for row in rows)
    assert left_pusd < min(row["bound_pusd"] for row in rows)


def test_a_models_budget_is_passed_by_none_of_its_names(hostile) -> None:
    """Red before: a dated name has the same price, and a budget of its own."""
    team, codes = "names it otherwise", []
    asked = {"max_tokens": 20, "messages": SAID}
    names = ("third/m-2024-11-20", "third/m-20241120", "third/M-latest", "third/m")
    for turn in range(4 * MANY):
        body = {**asked, "model": names[turn % len(names)]}
        codes.append(hostile.post(team, "/v1/chat/completions", body).status_code)
    rows = hostile.judged(team, 0.004)
    assert {row["model"].lower()[:7] for row in rows} == {"third/m"}
    assert len({row["model"] for row in rows}) == len(names)
    assert codes.count(200) == len(rows)
    assert set(codes) == {200, 429}
