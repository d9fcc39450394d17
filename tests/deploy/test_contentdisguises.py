"""Disguises of two sets are seen through, and what is laid out alike is no content."""

import random

import pytest

from deploy.contentcases import KINDS
from deploy.contentdisguises import FIRST, SECOND, disguised
from gateway.content.text_scanner import TextScanner

EACH = 12
LEAST = {"card": 0.99, "iban": 0.99, "email": 0.95, "secret": 0.95}
SETS = {"first": FIRST, "second": SECOND}
# Account numbers in pairs, and keys with blanks in their first letters, are not all seen through.
LEAST_SECOND = LEAST | {"iban": 0.97, "secret": 0.93}


@pytest.fixture(scope="module")
def scanner() -> TextScanner:
    return TextScanner(KINDS)


@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.parametrize("name", SETS)
def test_disguises_are_seen_through(scanner, name, kind) -> None:
    rng, missed, forms = random.Random(f"{name}{kind}"), [], SETS[name][kind]
    for form_name, form in forms.items():
        for _ in range(EACH):
            text = disguised(rng, kind, form)
            if all(find.kind != kind for find in scanner.scan([text]).finds):
                missed.append((form_name, text))
    assert (
        1 - len(missed) / (EACH * len(forms)) >= (LEAST if name == "first" else LEAST_SECOND)[kind]
    )


def test_no_form_is_in_both_sets() -> None:
    for kind, forms in FIRST.items():
        assert not forms.keys() & SECOND[kind].keys()


@pytest.mark.parametrize(
    "text",
    [
        "look at docs.example.com or see stay-at-home.com",
        "created_at_ms.to and README.md at example.com",
        "name\n@app.task\ndef f(): ...",
        "\n".join(f"{4102 + row},{3344 + row},{5120 + row},{1290 + row}" for row in range(40)),
        'say("a" + "b") and ["one", "two"] or ("x" "y")',
        "<ul><li>1</li><li>2</li></ul> we sold 10 and 20 and 30 units",
        "42 -9 48 -87 -60 -55 -77 -53 -1 -85 64 60 53 71 41",  # numbers below nought
        "2229,2230,2231,2232,2233,\n2234,2235,1299,2236,2237, 200,2238",
        "  1840, 794,  # 3158\n    3879, 1435, 2296, 46, 178, 3245, 2065, 7",
        "[[1398375547, 4269260146,  115316740],",
        "A path finder.\n@2060.io/credo\nIcon Font\n@42.nl/final",  # names of packages
    ],
)
def test_what_only_looks_alike_is_left_alone(scanner, text) -> None:
    assert scanner.scan([text]).finds == []


def test_arguments_beside_an_address_are_no_part_of_it(scanner) -> None:
    finds = scanner.scan(['verify "example.com" "user@example.com"\n\nOutput::']).finds
    assert [(find.kind, find.value) for find in finds] == [("email", "user@example.com")]
