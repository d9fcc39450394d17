"""What providers document of disconnects: nothing is guessed."""

from typing import get_args

import pytest

from backends.disconnects import DOCUMENTED, UNKNOWN, OnDisconnect, documented


def test_every_entry_is_a_known_word_that_says_something() -> None:
    assert set(DOCUMENTED.values()) <= set(get_args(OnDisconnect)) - {UNKNOWN}


@pytest.mark.parametrize("provider", ["openai", "anthropic", "up", ""])
def test_who_documents_nothing_is_unknown(provider) -> None:
    assert documented(provider) == "unknown"


def test_who_bills_the_whole_answer_continues() -> None:
    assert documented("openrouter") == "continues"
