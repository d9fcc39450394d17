"""What stands across the ends of parts."""

import random
from itertools import pairwise

import pytest

from deploy.contentcases import CHECKSUMMED, KINDS, split_parts
from gateway.content.seams import CARRIED, REACH, WINDOW, find_across, seam_windows
from gateway.content.text_scanner import TextScanner

EACH = 60


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


def in_turn(scanner: TextScanner):
    async def scan(texts):
        return scanner.scan(texts)

    return scan


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_cut_in_parts_is_found(scanner, kind) -> None:
    rng, missed = random.Random(kind), []
    for _ in range(EACH):
        parts = split_parts(rng, kind)
        own = scanner.scan(parts).finds
        splits, absorbed = await find_across(parts, [range(len(parts))], in_turn(scanner), own)
        kinds = {find.kind for find in own if find not in absorbed}
        if kind not in kinds | {split[0].kind for split in splits}:
            missed.append(parts)
    least = 0.99 if kind in CHECKSUMMED else 0.95
    assert 1 - len(missed) / EACH >= least, missed[:3]


def test_windows_hold_the_ends_of_long_texts_and_all_of_short_ones() -> None:
    texts = ["a" * 1000, "bb", "c" * 1000]
    (window,) = seam_windows(texts, range(3))
    assert window.text == "a" * REACH + "bb" + "c" * REACH
    assert window.parts_of(REACH - 1, REACH + 3) == [(0, 999, 1000), (1, 0, 2), (2, 0, 1)]
    assert list(seam_windows(["alone"], [0])) == []


async def test_what_is_cut_in_parts_is_found_wherever_a_window_ends(scanner) -> None:
    card, word = ["4111 11", "11 1111", " 1111"], " some words "
    for before in range(WINDOW // len(word) - 6, WINDOW // len(word) + 6):
        parts = [*[word] * before, *card, *[word] * 2000]
        splits, _ = await find_across(parts, [range(len(parts))], in_turn(scanner), [])
        assert [[part.text for part in split] for split in splits] == [
            [before, before + 1, before + 2]
        ]


def test_many_short_texts_stand_in_windows_of_bounded_size() -> None:
    texts = ["ab"] * 50_000
    windows = list(seam_windows(texts, range(len(texts))))
    assert max(len(window.text) for window in windows) <= WINDOW + 2
    assert len(windows) > 10
    for window, later in pairwise(windows):
        assert window.text[-CARRIED:] == later.text[:CARRIED]
        assert window.goes_on
        assert later.follows
