"""Log probabilities of tokens: what chat tells of them, and those of a text behind thoughts."""

import pytest

from gateway.request.dialects.token_logprobs import (
    ENTRY_BYTES,
    held_bytes,
    token_logprobs,
    tokens_of_text,
)

ENTRY = {"token": "so", "bytes": [115, 111], "logprob": -0.5, "top_logprobs": []}


def test_tokens_have_every_member_and_no_other() -> None:
    given = {**ENTRY, "rank": 1, "top_logprobs": [{"token": "a", "logprob": -1, "bytes": None}, 5]}
    top = [{"token": "a", "bytes": [], "logprob": -1}]
    assert token_logprobs({"logprobs": {"content": [given]}}) == [{**ENTRY, "top_logprobs": top}]
    assert held_bytes([{**ENTRY, "top_logprobs": top}, ENTRY]) == 3 * ENTRY_BYTES


@pytest.mark.parametrize(
    "odd", [None, 5, [], {}, {"content": {}}, {"content": [5, None, {"token": 5, "logprob": 1}]}]
)
def test_what_is_no_list_of_tokens_says_nothing(odd) -> None:
    assert token_logprobs({"logprobs": odd}) == []


@pytest.mark.parametrize(("text", "left"), [("", 0), ("c", 1), ("bc", 1), ("abc", 2), ("xyabc", 3)])
def test_a_text_has_the_last_tokens_that_make_it_up(text, left) -> None:
    tokens = [{**ENTRY, "token": token} for token in ("xy", "a", "bc")]
    assert tokens_of_text(tokens, text) == tokens[3 - left :]
