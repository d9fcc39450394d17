"""Groups behind a word that names a number are one, whatever words stand between them."""

import base64

import pytest

from deploy.contentcases import KINDS
from gateway.content.named_numbers import read_named
from gateway.content.text_scanner import TextScanner

GROUPS = ("5555", "3412", "4444", "1115")
CARD = "".join(GROUPS)


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("written", [
    "5555, followed by 3412, then 4444 and ends in 1115",
    *(mark.join(GROUPS) for mark in (" banana ", " dash ", " und dann ", " luego ")),
    "erster Block 5555, zweiter Block 3412, dritter Block 4444, vierter Block 1115",
])  # fmt: skip
def test_a_named_card_is_found_between_words(scanner, written) -> None:
    finds = scanner.scan([f"My credit card: {written}. Thanks"]).finds
    assert [(find.kind, find.value) for find in finds] == [("card", CARD)]


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("Belgian national number: block 59, then block 06, then block 22, then 298, then 32",
     "national_id", "59062229832"),
    ("My TFN is 45522745I, ok", "national_id", "455227451"),
    ("Tax File No. S14 B96 9SS", "national_id", "514896955"),
    ("contribuinte   11  197\n  12  346\n  13  472, ok", "national_id", "197346472"),
    (f"SSN (last page) {base64.b64encode(b'256464564').decode()}", "national_id", "256464564"),
    (f"phone {base64.b64encode(b'+34945366297').decode()}", "phone", "34945366297"),
    ("num\u00e9ro INSEE 1/55/10/22/117/106/92", "national_id", "155102211710692"),
])  # fmt: skip
def test_a_named_number_is_read_otherwise(scanner, text, kind, value) -> None:
    assert [(find.kind, find.value) for find in scanner.scan([text]).finds] == [(kind, value)]


@pytest.mark.parametrize("text", [
    "the tax number of cases rose from 8021 to 623, and 67 patient groups of 398 were asked",
    "card type 12 with balance 3412 of 4444 in 1115 days",
    "phone model 11, then 12",
])  # fmt: skip
def test_numbers_in_sentences_are_not_one(text) -> None:
    assert list(read_named(text)) == []
