"""Usage of speech and pictures: every form of providers, and what cannot be meant."""

import pytest

from ledger.cache_conventions import Convention
from ledger.journals.records import TokenCounts
from ledger.unit_usage import (
    tokens_of_embedding,
    tokens_of_pictures,
    tokens_of_reranking,
    tokens_of_speech,
    tokens_of_transcription,
)
from ledger.usage import has_unread, tokens_from_usage
from ledger.usage_figures import UsageContradiction, UsageError

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
    [{}, {"seconds": 5}, {"characters": 10**9}, {"input_tokens": -1}, {"characters": "x"}],
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


THOUGHT, CACHED = {"thoughtsTokenCount": 400}, {"input_tokens_details": {"cached_tokens": 40}}
T = TokenCounts


@pytest.mark.parametrize(
    ("read", "usage", "tokens"),
    [
        (tokens_of_pictures, {"input_tokens": 10, "output_tokens": 1056, **THOUGHT},
         T(10, output=1456, reasoning=400, image_output=1056)),
        (tokens_of_pictures, {**OPENAI, "total_tokens": 1406},
         T(50, output=1356, reasoning=300, image_output=1056, pictures=1)),
        (tokens_of_pictures, {**OPENAI, "input_tokens_details": {"cached_tokens": 40}},
         T(10, 40, output=1056, image_output=1056, pictures=1)),
        (tokens_of_pictures, {**OPENAI, "server_tool_use": {"web_search_requests": 3}},
         T(50, output=1056, image_output=1056, pictures=1, searches=3)),
        (tokens_of_pictures, {"input_tokens": 10, "output_tokens": 1500, "output_tokens_details":
                              {"image_tokens": 1056, "text_tokens": 144, "reasoning_tokens": 300}},
         T(10, output=1500, reasoning=300, image_output=1056)),
        (tokens_of_pictures, {"promptTokenCount": 10, "candidatesTokenCount": 1290,
                              "thoughtsTokenCount": 90, "totalTokenCount": 1390},
         T(10, output=1380, reasoning=90, image_output=1290)),
        (tokens_of_pictures, {"total_tokens": 1066}, T(output=1066, image_output=1066)),
        (tokens_of_speech, {"input_tokens": 10, "output_tokens": 100, "total_tokens": 150},
         T(10, output=140, reasoning=40, audio_output=100)),
        (tokens_of_speech, {"promptTokenCount": 10, "candidatesTokenCount": 90, **THOUGHT},
         T(10, output=490, reasoning=400, audio_output=90)),
        (tokens_of_speech, {"input_tokens": 50, "output_tokens": 90, "characters": 7, **CACHED},
         T(10, 40, output=90, audio_output=90, characters=7)),
        (tokens_of_reranking, {"prompt_tokens": 6, "total_tokens": 26}, T(26)),
        (tokens_of_reranking, {"prompt_tokens": 60, "total_tokens": 60,
                               "prompt_tokens_details": {"cached_tokens": 40}}, T(20, 40)),
        (tokens_of_reranking, {"prompt_tokens": 26, "reasoning_tokens": 90,
                               "num_search_queries": 4},
         T(26, output=90, reasoning=90, searches=4)),
        (tokens_of_reranking, {"billed_units": {"search_units": 3}}, T(searches=3)),
        (tokens_of_transcription, {"input_tokens": 50, "output_tokens": 5, **CACHED},
         T(0, 40, audio_input=10, output=5)),
        (tokens_of_transcription, {"input_tokens": 14, "output_tokens": 5, "total_tokens": 59},
         T(audio_input=14, output=45, reasoning=40)),
        (tokens_of_transcription, {"promptTokenCount": 140, "candidatesTokenCount": 5,
                                   "promptTokensDetails":
                                   [{"modality": "AUDIO", "tokenCount": 130}]},
         T(10, audio_input=130, output=5)),
        (tokens_of_transcription, {"seconds": 0, "prompt_audio_seconds": 12, "input_tokens": 5},
         T(audio_input=5, audio_ms=12_000)),
        (tokens_of_embedding, {"promptTokenCount": 6, "totalTokenCount": 900}, T(900)),
        (tokens_of_embedding, {"total_tokens": 900, "input_tokens": 0}, T(900)),
    ],
)  # fmt: skip
def test_every_kind_reads_usage_by_the_one_table(read, usage, tokens: TokenCounts) -> None:
    assert read(usage) == tokens
    assert not has_unread(usage)
    assert has_unread({**usage, "holograms": 3}), "the control"


@pytest.mark.parametrize("more", [{}, {"audio_tokens": 375}])
def test_sound_that_only_a_total_counts_is_no_thought(more) -> None:
    """As Mistral tells it (pydantic/genai-prices#591). Red before: 375 tokens of reasoning."""
    usage = {
        "prompt_audio_seconds": 30, "prompt_tokens": 3, "completion_tokens": 1,
        "total_tokens": 379, **more,
    }  # fmt: skip
    heard = tokens_of_transcription(usage)
    assert (heard.output, heard.reasoning, heard.audio_ms) == (1, 0, 30_000)
    assert heard.whole_prompt == 378
    assert heard.audio_input >= 375
    chat = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert (chat.input, chat.audio_input, chat.output, chat.reasoning) == (3, 375, 1, 0)
    assert not has_unread(usage)
    thought = {**usage, "completion_tokens_details": {"reasoning_tokens": 375}}
    assert tokens_from_usage(thought, Convention.CACHED_INSIDE).reasoning == 375


@pytest.mark.parametrize(
    ("usage", "most"),
    [
        ({"search_units": 1.5}, TokenCounts(searches=2)),
        ({"billed_units": {"search_units": 0.5}}, TokenCounts(searches=1)),
        ({"total_tokens": 100, "search_units": 1e-9}, TokenCounts(100, searches=1)),
    ],
)
def test_a_part_of_a_unit_is_a_whole_one_and_disputed(usage, most) -> None:
    """Red before: they said nothing, and an estimate was booked that may be less."""
    with pytest.raises(UsageContradiction, match="not a whole number") as told:
        tokens_of_reranking(usage)
    assert told.value.most == most


@pytest.mark.parametrize(
    "odd", ["", "7", "1.5", [], {}, True, -0.5, float("nan"), float("inf"), 2e8]
)
def test_what_is_no_number_says_no_count(odd) -> None:
    with pytest.raises(UsageError) as told:
        tokens_of_reranking({"search_units": odd})
    assert not isinstance(told.value, UsageContradiction)
