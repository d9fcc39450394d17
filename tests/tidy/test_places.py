"""Members that records keep as a number: their places stay for ever.

A ledger has packed decisions of every version before. A place that changes, or that another member
takes, makes an old decision say something else. A new member is appended to its table here.
"""

from collections.abc import Mapping

import pytest
from findings import assert_none

from router.packed import unpack
from router.reasons import REASONS
from router.types import Feature

HERE = "tests/tidy/test_places.py"
REASON_PLACES = {
    "cheapest": 0, "sticky": 1, "only": 2, "best_effort": 3, "costlier": 4, "bid_price": 5,
    "busier": 6, "model": 7, "feature": 8, "unhealthy": 9, "loading": 10, "draining": 11,
    "unknown_state": 12, "context": 13, "residency": 14, "unpriced": 15, "price_cap": 16,
    "kv_headroom": 17, "circuit_open": 18, "rate_limit": 19, "budget": 20, "ttft": 21, "tpot": 22,
    "salt": 23, "batch": 24, "weight": 25, "canary": 26, "candidates": 27, "quality": 28,
    "static": 29, "disabled": 30, "partly_priced": 31, "spare": 32, "content": 33,
}  # fmt: skip
FEATURE_PLACES = {
    "tools": 0, "json_schema": 1, "images": 2, "logprobs": 3, "n": 4, "reasoning": 5, "store": 6,
    "media_urls": 7, "hosted_tools": 8, "files": 9, "messages": 10,
}  # fmt: skip


def place_faults(kept: Mapping[str, int], places: Mapping[str, int]) -> list[str]:
    """Name what moved, left, shares a place, or is not kept yet."""
    found = [f"{word}: {place}, kept {kept[word]}" for word, place in places.items()
             if kept.get(word, place) != place]  # fmt: skip
    found += [f"{word}: gone, place {place} is kept" for word, place in kept.items()
              if word not in places]  # fmt: skip
    taken = list(places.values())
    found += [f"{word}: {place} is taken twice" for word, place in places.items()
              if taken.count(place) > 1]  # fmt: skip
    return found + [f"{word}: {place} is not kept: append it to the table in {HERE}"
                    for word, place in places.items() if word not in kept]  # fmt: skip


def test_reasons_keep_their_places() -> None:
    places = {reason.value: traits.place for reason, traits in REASONS.items()}
    assert_none(place_faults(REASON_PLACES, places))


def test_features_keep_their_places() -> None:
    places = {feature.value: place for place, feature in enumerate(Feature)}
    assert_none(place_faults(FEATURE_PLACES, places))


@pytest.mark.parametrize(
    ("places", "fault"),
    [
        ({"a": 1, "b": 0}, "a: 1, kept 0"),
        ({"a": 0}, "b: gone, place 1 is kept"),
        ({"a": 0, "c": 1}, "b: gone, place 1 is kept"),
        ({"a": 0, "b": 1, "c": 1}, "c: 1 is taken twice"),
        ({"a": 0, "b": 1, "c": 2}, f"c: 2 is not kept: append it to the table in {HERE}"),
    ],
)
def test_a_place_that_moved_or_is_reused_is_found(places: dict[str, int], fault: str) -> None:
    assert fault in place_faults({"a": 0, "b": 1}, places)


def test_the_places_of_today_are_read_back_as_their_words() -> None:
    """Each reason as the verdict of one candidate, in a decision of the form of version 4."""
    words = list(REASON_PLACES)
    for first in range(0, len(words), 8):
        places = range(first, min(first + 8, len(words)))
        asked = ("chat", 1, 2, 3, 1, (1 << len(FEATURE_PLACES)) - 1, "any", False, 0)
        verdicts = [(f"x{place}", place, False, b"") for place in places]
        terms = bytes.fromhex("000000400000804000000041") + bytes(12)
        told = unpack((4, asked, ("p", 0, "reject"), terms, first, 0, 0, verdicts))
        assert [candidate["reason"] for candidate in told["candidates"]] == [
            words[place] for place in places
        ]
        assert told["reason"] == words[first]
        assert told["request"]["features"] == list(FEATURE_PLACES)
