"""Attacks hide each kind otherwise, and detectors find them all the same; look-alikes stay."""

import random

import pytest

from deploy.contentattacks import ATTACKS, attack, clean_lookalikes
from deploy.contentcases import CHECKSUMMED, KINDS
from gateway.content.text_scanner import TextScanner

EACH, CLEAN = 25, 900


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


def test_each_kind_has_attacks() -> None:
    assert ATTACKS.keys() == KINDS.keys()
    assert attack(random.Random(1), "card", "bars").count("|") == 3


@pytest.mark.parametrize("kind", ATTACKS)
def test_what_is_hidden_is_found(scanner, kind) -> None:
    rng, missed, asked = random.Random(kind), [], 0
    for name in ATTACKS[kind]:
        for _ in range(EACH):
            text = attack(rng, kind, name)
            asked += 1
            if all(find.kind != kind for find in scanner.scan([text]).finds):
                missed.append((name, text))
    least = 0.99 if kind in CHECKSUMMED else 0.95
    assert 1 - len(missed) / asked >= least, missed[:3]


def test_numbers_that_are_nothing_are_left(scanner) -> None:
    changed = [
        (text, result)
        for text in clean_lookalikes(random.Random(5), CLEAN)
        if (result := scanner.scan([text])).finds or result.unread
    ]
    assert len(changed) * 200 <= CLEAN, [result.finds[:2] for _, result in changed]
