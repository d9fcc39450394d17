"""The collector while books are verified."""

import gc

import pytest

from ledger.verify.collection import SELDOM, collecting_seldom


def test_the_collector_is_as_before_also_after_an_error() -> None:
    before = gc.get_threshold()
    assert before != SELDOM
    seen = []

    def fail() -> None:
        with collecting_seldom():
            seen.append(gc.get_threshold())
            raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        fail()
    assert seen == [SELDOM]
    assert gc.get_threshold() == before
