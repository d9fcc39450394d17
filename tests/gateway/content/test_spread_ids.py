"""A number of a person that a word names is found in any groups and between any marks."""

import pytest

from deploy.contentcases import KINDS
from gateway.content.text_scanner import TextScanner

NAMED = (
    ("National Insurance number", "AB123456C", (2, 2, 2, 2, 1)), ("NINO", "AB123456C", (9,)),
    ("codice fiscale", "RSSMRA85T10A562S", (3, 3, 5, 5)), ("DNI", "12345678Z", (8, 1)),
    ("NIE", "X1234567L", (1, 7, 1)), ("henkil\u00f6tunnus", "131052308T", (6, 4)),
    ("AHV", "7569217076985", (3, 4, 4, 2)), ("NIR", "180126955222380", (1, 2, 2, 2, 3, 3, 2)),
    ("BSN", "111222333", (4, 2, 3)), ("PESEL", "44051401359", (6, 5)),
    ("Steuer-ID", "86095742719", (2, 3, 3, 3)), ("CPF", "52998224725", (3, 3, 3, 2)),
    ("NHS number", "9434765919", (3, 3, 4)), ("TFN", "123456782", (3, 3, 3)),
    ("SSN", "536228765", (3, 2, 4)), ("personnr", "8112189876", (6, 4)),
    ("num\u00e9ro national", "85073003328", (2, 2, 2, 3, 2)),
)  # fmt: skip
MARKS = (
    " ",
    "-",
    ".",
    "/",
    "_",
    ", ",
    " - ",
    "|",
    "*",
    "\n",
    "\t",
    " \u2013 ",
    "\u2605",
    "', '",
    "\u200b",
)


def grouped(number: str, sizes: tuple[int, ...], mark: str) -> str:
    parts, at = [], 0
    for size in sizes:
        parts.append(number[at : at + size])
        at += size
    return mark.join(parts)


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize(("word", "number", "sizes"), NAMED)
def test_a_named_number_is_found_between_any_marks(scanner, word, number, sizes) -> None:
    for mark in MARKS:
        text = f"Her {word} is {grouped(number, sizes, mark)} since May"
        kinds = [find.kind for find in scanner.scan([text]).finds]
        assert kinds == ["national_id"], (mark, kinds)
    text = f"{word}: {' '.join(number)}"
    assert [find.kind for find in scanner.scan([text]).finds] == ["national_id"]


@pytest.mark.parametrize("text", [
    "National Insurance number BG 12 34 56 C", "NI number AB 12 34 56 E", "DNI 1234, 5678, A",
    "codice fiscale RSS MRA 85T10 A562T", "SSN 53, 622, 8765", "SSN 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "order AB 12 34 56 C", "PESEL 440514, 01358", "he never (nie) had 12 34 56 78 90",
])  # fmt: skip
def test_a_wrong_number_or_one_without_a_word_is_none(scanner, text) -> None:
    assert "national_id" not in [find.kind for find in scanner.scan([text]).finds]
