"""What standing overrides keep away from whom."""

from typing import NamedTuple

import pytest

from gateway.policies.overrides import (
    barred,
    describe_end,
    is_disabled,
    is_target_named,
    standing_overrides,
)
from ledger.overrides import API, DISABLED, NOTHING, OWN, Override
from router.reasons import Reason


class Place(NamedTuple):
    name: str
    own: bool


PLACES = (
    Place("pool:a/0", own=True), Place("pool:a/1", own=True), Place("openai/gpt-4o", own=False),
)  # fmt: skip


def said(subject: str, says: str, until_us: int | None = None) -> Override:
    return Override(1, subject, says, until_us, 0, "ann")


@pytest.mark.parametrize(
    ("name", "target", "expected"),
    [
        ("pool:a", "pool:a/0", True),
        ("pool:a/1", "pool:a/1", True),
        ("pool:a/1", "pool:a/10", False),
        ("pool:a", "pool:ab/0", False),
        ("openai", "openai/gpt-4o", True),
        ("openai/gpt-4o", "openai/gpt-4o-mini", False),
    ],
)
def test_a_name_covers_itself_and_what_is_below(name, target, expected) -> None:
    assert is_target_named(name, target) is expected


@pytest.mark.parametrize(
    ("overrides", "away"),
    [
        ([], set()),
        ([said("target:pool:a/1", DISABLED)], {"pool:a/1"}),
        ([said("target:pool:a", DISABLED)], {"pool:a/0", "pool:a/1"}),
        ([said("model:*", OWN)], {"openai/gpt-4o"}),
        ([said("model:*", API)], {"pool:a/0", "pool:a/1"}),
        ([said("model:chat", API)], {"pool:a/0", "pool:a/1"}),
        ([said("model:other", API)], set()),
        # What is said of the model wins over what is said of all.
        ([said("model:*", API), said("model:chat", OWN)], {"openai/gpt-4o"}),
        ([said("model:*", OWN), said("target:pool:a/0", DISABLED)], {"pool:a/0", "openai/gpt-4o"}),
    ],
)
def test_what_is_kept_away(overrides, away) -> None:
    found = barred(overrides, "chat", PLACES)
    assert set(found) == away
    assert all(reason is Reason.DISABLED for reason, _ in found.values())


def test_the_words_name_who_and_until_when() -> None:
    line = said("target:pool:a/0", DISABLED, 1_800_000_000_000_000)
    assert barred([line], "chat", PLACES)["pool:a/0"][1] == (
        "disabled by ann until 2027-01-15 08:00 UTC"
    )
    assert describe_end(said("model:*", OWN)) == ""
    assert barred([said("model:*", OWN)], "chat", PLACES)["openai/gpt-4o"][1] == "only own by ann"


def test_what_is_over_or_taken_back_does_not_stand() -> None:
    known = [said("a", DISABLED, 5), said("b", NOTHING), said("c", API)]
    assert [item.subject for item in standing_overrides(known, 4)] == ["a", "c"]
    assert [item.subject for item in standing_overrides(known, 5)] == ["c"]


def test_a_pool_that_is_disabled_takes_all_its_engines_out_and_a_forced_route_none() -> None:
    out = [said("target:pool:a", DISABLED)]
    assert [is_disabled(place.name, out) for place in PLACES] == [True, True, False]
    assert not is_disabled("pool:a/0", [said("model:*", API), said("target:pool:a", NOTHING)])
