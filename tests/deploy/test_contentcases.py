"""Generators make what they say, in spellings that people can read back."""

import random

import pytest

from deploy.contentcases import (
    EVASIONS,
    KINDS,
    NUMBER_EVASIONS,
    clean_prompts,
    split_parts,
    written,
)
from gateway.content.checksums import is_iban, is_luhn

MANY = 200


def test_cards_and_accounts_have_right_check_digits() -> None:
    rng = random.Random(1)
    for _ in range(MANY):
        assert is_luhn("".join(filter(str.isdigit, KINDS["card"](rng))))
        assert is_iban(KINDS["iban"](rng).replace(" ", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_makes_the_same_and_parts_are_the_whole(kind) -> None:
    first, second = (KINDS[kind](random.Random(2)) for _ in range(2))
    assert first == second
    parts = split_parts(random.Random(3), kind)
    assert len(parts) > 1
    assert "".join(parts).startswith("it is ")


def test_each_evasion_writes_otherwise() -> None:
    plain = KINDS["email"](random.Random(4))
    for name, hide in EVASIONS.items():
        assert (hide(plain) == plain) is (name in ("plain", "marked up")), name
    card = "4111 1111 1111 1111"
    assert all(hide(card) != card for hide in NUMBER_EVASIONS.values())
    assert plain not in written(random.Random(4), "email", "escaped")


def test_clean_prompts_are_of_each_sort() -> None:
    prompts = list(clean_prompts(random.Random(5), ["def f(): pass\n" * 50], 10))
    assert len(prompts) == 10
    assert "def f()" in prompts[0]
    assert "req=" in prompts[1]
