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
    ],
)
def test_what_only_looks_alike_is_left_alone(scanner, text) -> None:
    assert scanner.scan([text]).finds == []
