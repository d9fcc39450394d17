"""What stands across the ends of parts."""

import random

import pytest

from deploy.contentcases import CHECKSUMMED, KINDS, split_parts
from gateway.content.seams import REACH, find_across, seam_windows
from gateway.content.text_scanner import TextScanner

EACH = 60


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_in_parts_is_found(scanner, kind) -> None:
    rng, missed = random.Random(kind), []
    for _ in range(EACH):
        parts = split_parts(rng, kind)
        own = scanner.scan(parts).finds
        splits, absorbed = find_across(parts, [range(len(parts))], scanner.scan, own)
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
    assert seam_windows(["alone"], [0]) == []
