"""The collector while books are verified."""

import gc

import pytest

from ledger.verify.collection import SELDOM, collecting_seldom


def test_the_collector_is_as_before_also_after_an_error() -> None:
    before = gc.get_threshold()
    assert before != SELDOM
    with pytest.raises(ValueError, match="x"), collecting_seldom():
        assert gc.get_threshold() == SELDOM
        raise ValueError("x")
    assert gc.get_threshold() == before
