"""The groups of a number are one, whatever labels and code stand between them."""

import json

import pytest

from deploy.contentcases import KINDS
from gateway.content.text_scanner import TextScanner

GROUPS = ("5555", "3412", "4444", "1115")
DIGITS = "".join(GROUPS)


def labelled(form: str, mark: str = "\n", groups=GROUPS) -> str:
    names = ("one", "two", "three", "four")
    return mark.join(
        form.format(group, number=number, letter=chr(64 + number), name=names[(number - 1) % 4])
        for number, group in enumerate(groups, 1)
    )


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("text", [
    labelled("part {number}: {}"), labelled('part_{number}: "{}"'), labelled("N_{number}={}"),
    labelled("{letter}={}"), labelled('sb.append("{}");'), labelled("const {name} = '{}';"),
    labelled('#define P{number} "{}"'), labelled("{} (part {number})", ", "),
    labelled("({number}) {}", " "), labelled("- [ ] {}"), labelled('s += "{}"'),
    labelled("{number},{}"), labelled("| {number} | {} |"),
    labelled("digits.push({});", groups=DIGITS), labelled("{number},{}", groups=DIGITS),
    labelled('"{number}": "{}"', ", ", DIGITS), labelled("digit {number}: {}", groups=DIGITS),
    "first group 5555, second group 3412, third group 4444, fourth group 1115",
    "erster Block 5555, zweiter Block 3412, dritter Block 4444, vierter Block 1115",
    "starts with 5555, then 3412, 4444, ends with 1115", "5555 dot 3412 dot 4444 dot 1115",
    "5555<!-- -->3412<!-- -->4444<!-- -->1115", "5555/* a */3412/* b */4444/* c */1115",
    "\x1b[1m5555\x1b[0m\x1b[1m3412\x1b[0m4444\x1b[1m1115\x1b[0m",
    "`${'5555'}${'3412'}${'4444'}${'1115'}`", json.dumps([[*group] for group in GROUPS]),
    "5555&shy;3412&shy;4444&shy;1115",
])  # fmt: skip
def test_a_card_is_found_between_labels(scanner, text) -> None:
    finds = scanner.scan([f"see\n{text}\nok"]).finds
    assert [find.kind for find in finds] == ["card"]
    assert finds[0].value == DIGITS


@pytest.mark.parametrize("text", [
    labelled("part {number}: {}", groups=("5555", "3412", "4444", "1116")),
    labelled("{number},{}", groups=[str(number) for number in range(5000, 5040)]),
    labelled("{number}. {}", groups=[str(number) for number in range(1990, 2020)]),
    "part 2: see page 5555. Block 2 ends with 3412, and chapter 4 starts with 4444",
    "a = 1\nB=2222\nC=3333\nD=4444\nE=5555\nF=6666",
])  # fmt: skip
def test_lists_and_tables_are_no_cards(scanner, text) -> None:
    assert scanner.scan([text]) == ([], 0)
