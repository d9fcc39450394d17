"""What is wrong with a journal, in a sentence with its bound; unknown is said as unknown."""

import pytest

from ledger.journals.findings import UNKNOWN_BOUND, JournalFinding, LackingBound, finding_of
from ledger.journals.scan import Damage

DAMAGE = Damage(4096, 5000, 17, 3, "why", b"x")


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (LackingBound(5 * 10**10, 5 * 10**10), "at most $0.05"),
        (LackingBound(0, 0), "at most $0"),
        (LackingBound(None, 5 * 10**10), "at most $0.0500 within hard budgets, beyond them"),
        (UNKNOWN_BOUND, "an unknown amount"),
    ],
)
def test_the_bound_is_said(bound, words) -> None:
    found = finding_of(DAMAGE, "w0-a", "w0", 2, bound)
    assert (found.segment, found.offset, found.after, found.missing) == (2, 4096, 17, 3)
    assert "may lack 3 records after record 17" in found.text
    assert words in found.text


def test_what_lacks_nothing_costs_nothing() -> None:
    found = finding_of(Damage(0, 9, 17, 0, "why"), "w0-a", "w0", 2, UNKNOWN_BOUND)
    assert found.bound == LackingBound(0, 0)
    assert "no record lacks" in found.text


def test_an_unknown_count_is_said_as_rows() -> None:
    assert "may lack rows after record 5" in JournalFinding("j", "w", 1, 0, 5, None, "why").text
