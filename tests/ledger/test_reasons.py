"""The words that the books carry are the router's."""

import msgspec
import pytest

from ledger.reasons import REASONS, ReasonText, read
from router import reasons


def test_each_reason_of_the_router_has_its_group_and_sentence() -> None:
    """Red: run `make settings`."""
    assert {
        reason.value: ReasonText(traits.overflow.value, traits.sentence)
        for reason, traits in reasons.REASONS.items()
    } == REASONS


def test_an_entry_that_lacks_its_sentence_is_an_error() -> None:
    with pytest.raises(msgspec.ValidationError):
        read(b'{"cheapest": ["by_choice"]}')
