"""Policies name kinds that are found, and each fault names its field and the fix."""

import pytest

from gateway.config.crosschecks_content import CONTENT_CHECKS
from gateway.config.schema import Settings

HOOKS = {
    "house": {"url": "https://guard.example/x"},
    "late": {"url": "https://guard.example/y", "stage": "after"},
}


def faults(content: dict, **section) -> list[tuple[tuple, str]]:
    settings = Settings.model_validate(
        {"content": section, "policies": [{"name": "p", "content": content}]}
    )
    return [
        (fault.place, fault.message) for check in CONTENT_CHECKS for fault in check(settings)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "section", "place", "words"),
    [
        ({"crad": "mask"}, {}, ("policies", 0, "content", "crad"), "did you mean `card`?"),
        ({"unknown": "mask"}, {}, ("policies", 0, "content", "unknown"), "use `keep_inside`"),
        ({"late": "keep_inside"}, {"hooks": HOOKS}, ("policies", 0, "content", "late"), "`refuse`"),
        ({}, {"patterns": {"card": "x"}}, ("content", "patterns", "card"), "detects itself"),
        ({}, {"patterns": {"own": "(?<=a)b"}}, ("content", "patterns", "own"),
         "not a supported regular expression"),
        ({}, {"patterns": {"house": "x"}, "hooks": HOOKS}, ("content", "hooks", "house"),
         "`patterns`"),
        ({}, {"hooks": {"a": {"url": "http://guard.example/"}}}, ("content", "hooks", "a", "url"),
         "address_residency"),
    ],
)  # fmt: skip
def test_each_fault_names_the_field_and_the_fix(content, section, place, words) -> None:
    ((where, told),) = faults(content, **section)
    assert where == place
    assert words in told


def test_what_fits_has_no_fault() -> None:
    given = {"card": "keep_inside", "own": "mask", "house": "refuse", "late": "refuse"}
    assert faults(given, patterns={"own": r"falcon-\d+"}, hooks=HOOKS) == []
