"""One client after the other leaves a real vLLM: it stops, and what it did is what is booked.

vLLM's own counters are the oracle of each hang-up alone. A stream is booked at the last usage that
the engine reported; what it did between that and the abort is its surplus: printed, never negative,
and never more than it does in the time in which it must be told.
"""

import asyncio
import random
import time

import pytest

STREAMED = 1500
LEAVING = 8  # of each way
STOPPED_S = 2.0
WORDS = ("volume", "hour", "budget", "machine", "token", "price", "answer", "team", "batch")


def at_rest(counters, url: str) -> dict[str, int]:
    """The engine's counters once it works on nothing; how long that takes is limited."""
    begun_s = time.monotonic()
    while True:
        first, second = counters(url), counters(url)
        if not second["num_requests_running"] and first == second:
            return second
        assert time.monotonic() - begun_s < STOPPED_S, "the engine goes on for nobody"


def hang_up(gateway, engine, asking, counters, asked, last) -> dict:
    """What one hang-up came to: the ledger's row (None: nothing was sent), the engine's work.

    `last` is asked behind it and left out: once it is in the books, so is all that was sent before.
    """
    known = {row["attempt_id"] for row in _rows(gateway)}
    before = at_rest(counters, engine.base_url)
    answer = asyncio.run(asking.ask(asked))
    at_rest(counters, engine.base_url)
    behind = asyncio.run(asking.ask(last)).request_id
    gateway.until(lambda: _booked(gateway, behind), 20)
    after = at_rest(counters, engine.base_url)
    new = {row["request_id"]: row for row in _rows(gateway) if row["attempt_id"] not in known}
    marker = new.pop(behind)
    assert (marker["status"], len(new)) in {("finished", 0), ("finished", 1)}
    read = marker["input_tokens"] + marker["cached_tokens"]
    return {
        "answer": answer,
        "row": next(iter(new.values()), None),
        "prompt": after["prompt_tokens"] - before["prompt_tokens"] - read,
        "generated": after["generation_tokens"]
        - before["generation_tokens"]
        - marker["output_tokens"],
    }


def _booked(gateway, request_id: str) -> bool:
    rows = _rows(gateway)
    known = any(row["request_id"] == request_id for row in rows)
    return known and all(row["settled_us"] for row in rows)


def _rows(gateway) -> list[dict]:
    return gateway.rows("SELECT * FROM attempts WHERE team_id = 'hanging-up'")


def pace(gateway, engine, asking, counters, question) -> float:
    """Tokens a second of one stream that is read to its end: all of them are booked."""
    begun_s = time.monotonic()
    asked = question("hello there", STREAMED // 2)
    found = hang_up(gateway, engine, asking, counters, asked, question("next, please", 1))
    row = found["row"]
    assert (row["status"], row["basis"]) == ("finished", "reported")
    assert found["generated"] == row["output_tokens"] == STREAMED // 2, "the control"
    assert found["prompt"] == row["input_tokens"] + row["cached_tokens"]
    return found["generated"] / (time.monotonic() - begun_s)


@pytest.mark.parametrize("way", ["in the middle", "before the first token"])
def test_who_leaves_stops_the_engine_and_pays_what_it_did(
    tiny_gateway, tiny_engine, clients, question, counters, way
) -> None:
    gateway = tiny_gateway
    asking = clients(gateway.base_url, "tiny", gateway.key(team="hanging-up"))
    rate = pace(gateway, tiny_engine, asking, counters, question)
    rng, surplus, seen = random.Random(7), [], []
    for _ in range(LEAVING):
        text = " ".join(rng.choices(WORDS, k=rng.randint(300, 340)))
        if way == "in the middle":
            text = text[:200]
            asked = question(text, STREAMED, leaves_after=rng.randint(2_000, 40_000))
        else:
            asked = question(text, STREAMED // 3, patience_s=rng.uniform(0.004, 0.06))
        found = hang_up(gateway, tiny_engine, asking, counters, asked, question("next, please", 1))
        row = found["row"]
        if row is None:  # it left before an attempt was made
            assert (found["prompt"], found["generated"]) == (0, 0)
            continue
        assert row["status"] == "client_gone"
        assert found["generated"] < asked.max_tokens, "it was stopped"
        seen.append(row["basis"])
        surplus.append(found["generated"] - row["output_tokens"])
        if row["basis"] == "continuous":
            assert found["prompt"] == row["input_tokens"] + row["cached_tokens"]
            assert row["output_tokens"] >= found["answer"].output_tokens, "nothing is free"
        else:
            assert (row["basis"], row["output_tokens"]) == ("estimated", 0)
    print(f"{way}: {len(seen)} left, {seen.count('continuous')} with usage; surplus {surplus}, "
          f"at {rate:.0f} tokens/s")  # fmt: skip
    assert len(seen) >= LEAVING // 2
    assert min(surplus) >= 0
    assert max(surplus) <= 1 + rate
    if way == "in the middle":
        assert set(seen) == {"continuous"}
