"""Counts of usage exports: what is none is a fault, whatever somebody wrote there."""

import pytest

from ledger.economics.cost import TokenBasis
from ledger.economics.used import UsageBucket, count
from ledger.journals.records import TokenCounts


@pytest.mark.parametrize(
    ("told", "read"), [("12", 12), ("12.0", 12), (7, 7), (None, 0), (" ", 0), (10**15, 10**15)]
)
def test_a_count_is_read(told, read: int) -> None:
    faults: list[str] = []
    assert count({"n": told}, "n", "line 2", faults) == read
    assert faults == []


@pytest.mark.parametrize(
    "told", ["-1", "1.5", "1e3", "inf", True, "\u0663", 10**15 + 1, "9" * 5_000]
)
def test_what_is_no_count_is_told_with_its_place(told) -> None:
    """Of thousands of digits Python makes no number: the page broke."""
    faults: list[str] = []
    assert count({"n": told}, "n", "line 2", faults) == 0
    (fault,) = faults
    assert fault.startswith("line 2, column `n`: `")
    assert len(fault) < 80


def test_volume_is_of_a_basis() -> None:
    bucket = UsageBucket(
        0, 1, "a/b", "standard", 1, TokenCounts(input=1, cached=2, cache_write=4, output=8)
    )
    assert bucket.volume(TokenBasis.INPUT_OUTPUT) == 15
    assert bucket.volume(TokenBasis.OUTPUT) == 8
