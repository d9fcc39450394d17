"""Usage of speech and pictures: every form of providers, and what cannot be meant."""

import pytest

from ledger.journals.records import TokenCounts
from ledger.unit_usage import tokens_of_pictures, tokens_of_speech
from ledger.usage import UsageError, has_unread

OPENAI = {
    "input_tokens": 50, "output_tokens": 1056, "total_tokens": 1106,
    "input_tokens_details": {"text_tokens": 50, "image_tokens": 0}, "generated_images": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 4, "output_tokens": 9}, TokenCounts(input=4, output=9, audio_output=9)),
        ({"prompt_tokens": 4, "completion_tokens": 9, "total_tokens": 13},
         TokenCounts(input=4, output=9, audio_output=9)),
        ({"characters": 12}, TokenCounts(characters=12)),
        ({"input_characters": 12}, TokenCounts(characters=12)),
    ],
)  # fmt: skip
def test_speech_is_counted_in_tokens_or_characters(usage, tokens: TokenCounts) -> None:
    assert tokens_of_speech(usage) == tokens
    assert not has_unread(usage)


@pytest.mark.parametrize(
    "usage",
    [{}, {"total_tokens": 5}, {"characters": 10**9}, {"input_tokens": -1}, {"characters": "x"}],
)
def test_speech_that_cannot_be_meant(usage) -> None:
    with pytest.raises(UsageError):
        tokens_of_speech(usage)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (OPENAI, TokenCounts(input=50, output=1056, image_output=1056, pictures=1)),
        ({**OPENAI, "output_tokens_details": {"text_tokens": 56, "image_tokens": 1000}},
         TokenCounts(input=50, output=1056, image_output=1000, pictures=1)),
        ({**OPENAI, "output_tokens_details": {"text_tokens": 56}},
         TokenCounts(input=50, output=1056, image_output=1000, pictures=1)),
        ({"generated_images": 3}, TokenCounts(pictures=3)),
    ],
)  # fmt: skip
def test_pictures_are_counted_with_their_tokens(usage, tokens: TokenCounts) -> None:
    assert tokens_of_pictures(usage) == tokens
    assert not has_unread(usage)


@pytest.mark.parametrize(
    "usage",
    [{"generated_images": 10**6}, {"output_tokens": "many"},
     {"output_tokens": 5, "output_tokens_details": {"image_tokens": 6}}],
)  # fmt: skip
def test_pictures_that_cannot_be_meant(usage) -> None:
    with pytest.raises(UsageError):
        tokens_of_pictures(usage)
