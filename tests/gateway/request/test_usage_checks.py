"""Which reported figures cannot be, and which may although they look odd."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.kinds.billable_units import LONGEST_TOKEN_BYTES
from gateway.request.usage_checks import (
    CONTEXT_TOKENS,
    TEMPLATE_TOKENS,
    UNSEEN_TOKENS,
    UsageBounds,
    fit_text,
    fit_tokens,
    is_impossible,
    is_too_high,
    is_too_low,
    is_within,
    is_worth_reading,
    least_of,
    most_tokens,
)
from ledger.journals.records import TokenCounts

BOUNDS = UsageBounds(1, 4096, False, 100)


@pytest.mark.parametrize(
    ("output", "thought", "limit", "said", "impossible"),
    [
        (20, 0, 20, 0, False),
        (21, 0, 20, 0, True),
        (5000, 0, 20, 30, True),
        (5000, 0, None, 0, False),  # nobody was told a limit
        (5000, 4990, 20, 0, False),  # some providers count thought beside it
        (5000, 4000, 20, 0, True),
        (49_999_995, 49_999_990, 20, 0, True),  # more than any context holds
        (50, 0, 20, 180, False),  # it was written in spite of the limit
        (0, 0, 0, 0, False),
    ],
)
def test_more_output_than_was_allowed_or_came_is_impossible(
    output, thought, limit, said, impossible
):
    tokens = TokenCounts(input=1, output=output, reasoning=thought)
    bounds = UsageBounds(1, limit or 4096, limit is not None, 100)
    assert is_impossible(tokens, bounds, said_bytes=said, sent_bytes=400) is impossible


@pytest.mark.parametrize(
    ("prompt", "sent", "impossible"),
    [
        (100, 400, False),
        (400 + TEMPLATE_TOKENS, 400, False),  # templates and systems' own words
        (401 + TEMPLATE_TOKENS, 400, True),
        (401 + TEMPLATE_TOKENS, None, False),  # a picture's tokens have no bytes
        (CONTEXT_TOKENS + 1, None, True),
    ],
)
def test_more_prompt_than_was_sent_is_impossible(prompt, sent, impossible):
    tokens = TokenCounts(input=prompt - 7, cached=7, output=3)
    assert is_impossible(tokens, BOUNDS, said_bytes=9, sent_bytes=sent) is impossible


COUNTS = st.builds(
    TokenCounts,
    input=st.integers(0, 10**6), cached=st.integers(0, 10**6), cache_write=st.integers(0, 10**6),
    output=st.just(0),
).flatmap(
    lambda counted: st.integers(0, 10**6).flatmap(
        lambda output: st.integers(0, output).map(
            lambda thought: replace(counted, output=output, reasoning=thought)
        )
    )
)  # fmt: skip


@given(tokens=COUNTS, prompt=st.integers(0, 10**6), output=st.integers(0, 10**6))
def test_what_fits_stays_and_nothing_exceeds_the_hold(tokens, prompt, output):
    bounds = UsageBounds(1, output, True, prompt)
    fitted, most = fit_tokens(tokens, bounds), most_tokens(bounds)
    assert fitted.prompt <= most.prompt
    assert is_within(fitted, bounds)
    assert is_within(tokens, bounds) is (fitted == tokens)
    assert fitted.reasoning + fitted.audio_output <= fitted.output <= most.output


def test_thoughts_have_the_room_that_sound_leaves():
    spoken = TokenCounts(output=50, reasoning=20, audio_output=25)
    fitted = fit_tokens(spoken, UsageBounds(1, 30, True, 100))
    assert fitted == TokenCounts(output=30, reasoning=5, audio_output=25)


def test_units_fit_kind_by_kind():
    most = TokenCounts(input=9, searches=2, audio_ms=500)
    counted = TokenCounts(input=4, searches=10**6, audio_ms=400)
    assert least_of(counted, most) == TokenCounts(input=4, searches=2, audio_ms=400)


@given(
    said=st.integers(0, 10**5),
    claimed=st.integers(0, 10**6),
    thought=st.integers(0, 100),
    choices=st.integers(1, 8),
)
def test_what_the_text_can_have_is_never_too_high_and_no_less(said, claimed, thought, choices):
    tokens = TokenCounts(output=claimed + thought, reasoning=thought)
    fitted = fit_text(tokens, choices, said)
    assert not is_too_high(fitted, {}, choices, said)
    one_more = msgspec.structs.replace(fitted, output=fitted.output + 1)
    assert is_too_high(one_more, {}, choices, said)


def contradicted(tokens, usage, choices, said, *, shown=False):
    return is_too_low(tokens, said) or (not shown and is_too_high(tokens, usage, choices, said))


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
    if not is_worth_reading(tokens, 1, size):
        assert said <= LONGEST_TOKEN_BYTES * output
        assert 2 * (output - UNSEEN_TOKENS) <= size


def test_a_usual_answer_is_not_read_again():
    said = "The quick brown fox. " * 20
    body = msgspec.json.encode({"id": "x" * 40, "choices": [{"message": {"content": said}}]})
    assert not is_worth_reading(TokenCounts(output=100), 1, len(body))
    assert is_worth_reading(TokenCounts(output=900), 1, len(body))
    assert not is_worth_reading(TokenCounts(output=UNSEEN_TOKENS + 100), 1, 200)
    assert is_worth_reading(TokenCounts(output=UNSEEN_TOKENS + 101), 1, 200)
    assert is_worth_reading(TokenCounts(output=1), 1, 10_000)


def test_a_short_answer_that_claims_a_picture_is_read() -> None:
    assert is_worth_reading(TokenCounts(output=1300, image_output=1290), 1, 400)
    assert not is_worth_reading(TokenCounts(output=10), 1, 400)


def test_tokens_of_a_picture_that_nobody_saw_are_no_text() -> None:
    tokens = TokenCounts(input=5, output=1300, image_output=1290)
    assert is_too_high(tokens, {}, 1, 10)
    fitted = fit_text(tokens, 1, 10)
    assert (fitted.output, fitted.image_output) == (10 + 64, 0)
    held = fit_tokens(tokens, UsageBounds(1, 500, True, 10))
    assert (held.output, held.image_output, held.plain_output) == (500, 500, 0)
