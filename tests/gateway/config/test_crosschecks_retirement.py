"""A retirement that cannot be meant is said with its place."""

import pytest

from gateway.config.crosschecks_retirement import check_retirements
from gateway.config.document import read_document
from gateway.config.draft import draft_settings

GOOD = """
models:
  old:
    targets: ["openai/a"]
    retirement: {retires: 2027-01-31, announced: 2026-11-01, successor: new}
  new: {targets: ["openai/b"]}
  next: {same_as: new, retirement: {retires: 2027-01-31}}
providers: {openai: {}}
"""


def found(text: str) -> list[str]:
    settings = draft_settings(read_document(text)).settings
    assert settings is not None
    return [fault.text("f") for fault in check_retirements(settings)]


def test_the_sound_file_has_no_faults() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("2026-11-01", "2027-02-01", "models.old.retirement.announced: is after `retires`"),
        (
            "successor: new",
            "successor: nwe",
            "`nwe` leads to no model; did you mean `new` or `next`?",
        ),
        ("successor: new", "successor: old", "`old` retires on 2027-01-31 itself, not after"),
        ("successor: new", "successor: next", "`next` retires on 2027-01-31 itself, not after"),
    ],
)
def test_each_fault_is_said_where_it_is(before, after, said) -> None:
    (fault,) = found(GOOD.replace(before, after))
    assert said in fault
