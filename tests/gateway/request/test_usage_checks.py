"""Which reported figures cannot be, and which may although they look odd."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.usage_checks import (
    LONGEST_TOKEN_BYTES,
    UNSEEN_TOKENS,
    UsageBounds,
    contradicted,
    possible,
    prompt_possible,
    worth_reading,
)
from ledger.journals.records import TokenCounts

NONE = UsageBounds(1, None, 100)
PLAIN = {"model": b'"m"', "messages": b"x" * 400}


@pytest.mark.parametrize(
    ("output", "thought", "limit", "said", "kept"),
    [
        (20, 0, 20, 0, 20),
        (21, 0, 20, 0, 20),
        (5000, 0, 20, 30, 20),
        (5000, 0, None, 0, 5000),  # nobody was told a limit
        (5000, 4990, 20, 0, 5000),  # some providers count thought beside it
        (5000, 4000, 20, 0, 4020),
        (50, 0, 20, 180, 50),  # it was written in spite of the limit
        (0, 0, 0, 0, 0),
    ],
)
def test_no_more_output_than_was_allowed_or_came(output, thought, limit, said, kept):
    tokens = TokenCounts(input=1, output=output, reasoning=thought, audio_output=min(output, 9))
    found = possible(tokens, UsageBounds(1, limit, 100), said)
    assert found.output == kept
    assert (found is tokens) is (kept == output)
    assert found.reasoning + found.audio_output <= found.output or thought


@pytest.mark.parametrize(
    ("prompt", "members", "media", "kept"),
    [
        (100, PLAIN, False, 100),
        (2400, PLAIN, False, 2400),  # templates and systems' own words
        (2500, PLAIN, False, 100),
        (2500, PLAIN, True, 2500),  # a picture's tokens have no bytes
        (2500, {**PLAIN, "tools": b"[]"}, False, 2500),  # may have read more by itself
        (2500, {**PLAIN, "web_search_options": b"{}"}, False, 2500),
    ],
)
def test_no_more_prompt_than_was_sent(prompt, members, media, kept):
    tokens = TokenCounts(input=prompt - 7, cached=7, output=3)
    found = prompt_possible(tokens, NONE, members, media=media)
    assert found.input + found.cached == kept
    assert found.output == 3


@pytest.mark.parametrize(
    ("output", "more", "usage", "said", "wrong"),
    [
        (1, {}, {}, LONGEST_TOKEN_BYTES, False),
        (1, {}, {}, LONGEST_TOKEN_BYTES + 1, True),
        (UNSEEN_TOKENS, {}, {}, 0, False),
        (UNSEEN_TOKENS + 1, {}, {}, 0, True),
        (500, {}, {}, 436, False),  # letters of one byte each
        (500, {}, {}, 435, True),
        (500, {"reasoning": 490}, {}, 8, False),
        (500, {"audio_output": 490}, {}, 0, False),
        (500, {}, {"completion_tokens_details": {"rejected_prediction_tokens": 490}}, 8, False),
        (500, {}, {"completion_tokens_details": {"rejected_prediction_tokens": True}}, 8, True),
        (500, {}, {"completion_tokens_details": 7}, 8, True),
    ],
)
def test_tokens_against_the_text_that_came(output, more, usage, said, wrong):
    assert contradicted(TokenCounts(output=output, **more), usage, 1, said) is wrong


def test_a_picture_has_tokens_that_no_text_tells():
    tokens = TokenCounts(output=1290)
    assert contradicted(tokens, {}, 1, 10)
    assert not contradicted(tokens, {}, 1, 10, shown=True)
    assert contradicted(tokens, {}, 1, 1291 * LONGEST_TOKEN_BYTES, shown=True)


@given(
    words=st.lists(st.text(min_size=1, max_size=40), max_size=60),
    merge=st.integers(1, 30),
    choices=st.integers(1, 4),
)
def test_an_honest_count_is_never_disputed(words, merge, choices):
    """Whatever the vocabulary: tokens of 1 to 128 bytes, a token per piece of text."""
    text = "".join(words).encode(errors="replace")
    size = min(merge, LONGEST_TOKEN_BYTES)
    count = -(-len(text) // size) + choices  # with an end of each choice
    tokens = TokenCounts(output=count)
    assert not contradicted(tokens, {}, choices, len(text))


@given(output=st.integers(0, 10_000), said=st.integers(0, 200_000), frame=st.integers(1, 4000))
def test_what_is_not_worth_reading_has_too_little_text_to_matter(output, said, frame):
    """An answer is left unread only while what could be wrong is smaller than its frame."""
    tokens, size = TokenCounts(output=output), said + frame
    if not worth_reading(tokens, 1, size):
        slack = LONGEST_TOKEN_BYTES * UNSEEN_TOKENS
        assert said <= LONGEST_TOKEN_BYTES * output + slack
        assert 2 * (output - UNSEEN_TOKENS) <= size


def test_a_usual_answer_is_not_read_again():
    said = "The quick brown fox. " * 20
    body = msgspec.json.encode({"id": "x" * 40, "choices": [{"message": {"content": said}}]})
    assert not worth_reading(TokenCounts(output=100), 1, len(body))
    assert worth_reading(TokenCounts(output=900), 1, len(body))
    assert worth_reading(TokenCounts(output=1), 1, 10_000)
