"""Usage of request kinds that count units besides tokens, or lack input or output tokens.

Tokens, reasoning, cached tokens and searches are read by the common table (`usage_members`). This
module adds what is specific to a kind: its unit, and the medium of tokens without a stated
modality.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from ledger.cache_conventions import Convention
from ledger.journals.token_kinds import CHARACTERS_LIMIT, PICTURES_LIMIT, TokenCounts
from ledger.usage import (
    check_limit,
    counts_of,
    details_of,
    first_count,
    sound_ms_of,
    tokens_of_counts,
)
from ledger.usage_figures import (
    BESIDE,
    NoCountsError,
    UsageContradiction,
    UsageError,
    read_figures,
)
from ledger.usage_members import INPUT_DETAILS, OUTPUT_DETAILS, UsageCount
from ledger.usage_rounds import with_rounds

_INSIDE = Convention.CACHED_INSIDE
_MADE = (
    UsageCount.COMPLETION, UsageCount.THOUGHT, UsageCount.THOUGHT_ANYWHERE,
    UsageCount.THOUGHT_BESIDE,
)  # fmt: skip
_TOKENS = (UsageCount.PROMPT, UsageCount.TOTAL, *_MADE)
_Usage = Mapping[str, object]


class _Figures(NamedTuple):
    """One usage report: its counts by the table, and its tokens as of a chat request."""

    usage: _Usage
    counts: Mapping[UsageCount, int]
    tokens: TokenCounts


def tokens_of_embedding(usage: _Usage) -> TokenCounts:
    """Return the input tokens of an embedding; without output, the total counts as prompt."""
    return _read(usage, lambda figures: figures.tokens, is_input=True, needed=_TOKENS)


def tokens_of_reranking(usage: _Usage) -> TokenCounts:
    """Return the tokens or searches of a reranking request.

    vLLM, Jina and Voyage count tokens (some only as a total), Cohere bills searches.
    """
    needed = (*_TOKENS, UsageCount.SEARCHES)
    return _read(usage, lambda figures: figures.tokens, is_input=True, needed=needed)


def tokens_of_transcription(usage: _Usage) -> TokenCounts:
    """Return the audio and tokens of a transcription.

    Formats: OpenAI's types `tokens` and `duration`, Mistral's with both at once, vLLM's in streams.
    Prompt tokens without a stated modality are audio.
    """
    return _read(usage, _heard)


def tokens_of_speech(usage: _Usage) -> TokenCounts:
    """Return text and audio tokens (the last event of OpenAI's stream), else characters."""
    return _read(usage, _spoken, is_media=True)


def tokens_of_pictures(usage: _Usage) -> TokenCounts:
    """Return the images of the answer, and its tokens if the target counts them.

    Tokens without a stated modality are image tokens. `generated_images` is the number of images
    that `backends.answers` counted.
    """
    return _read(usage, _pictured, is_media=True)


def _read(
    usage: _Usage,
    finish: Callable[[_Figures], TokenCounts],
    *,
    is_input: bool = False,
    is_media: bool = False,
    needed: tuple[UsageCount, ...] = (),
) -> TokenCounts:
    """Return the counts of a usage object, completed by `finish` for a request kind.

    `is_input`: there is no output; `is_media`: the output is a medium, which may be counted only in
    the total. Raises `NoCountsError` if none of the counts in `needed` is present.
    """
    if BESIDE in usage:
        again = partial(_read, finish=finish, is_input=is_input, is_media=is_media, needed=needed)
        return read_figures(usage, again)
    usage = with_rounds(usage)
    odd: list[str] = []
    counts = counts_of(usage, odd.append)
    if needed and counts.keys().isdisjoint(needed):
        raise NoCountsError("no count is there")
    total, prompt = counts.get(UsageCount.TOTAL, 0), counts.get(UsageCount.PROMPT, 0)
    if total > prompt and not any(counts.get(made) for made in _MADE):
        if is_input:
            counts[UsageCount.PROMPT] = total
        elif is_media:
            counts[UsageCount.COMPLETION] = total - prompt
    try:
        tokens = tokens_of_counts(usage, counts, _INSIDE, odd)
    except UsageContradiction as error:
        most = finish(_Figures(usage, counts, error.most))
        raise UsageContradiction(str(error), most) from None
    return check_limit(finish(_Figures(usage, counts, tokens)))


def _heard(found: _Figures) -> TokenCounts:
    usage, counts, tokens = found
    if UsageCount.PROMPT not in counts:
        if sound_ms_of(usage) is None:
            raise NoCountsError("neither tokens nor seconds are there")
        return tokens
    text = _text_in(usage, INPUT_DETAILS)
    told = counts.get(UsageCount.AUDIO_IN)
    read = tokens.input + tokens.audio_input
    if told is not None and text + told > tokens.whole_prompt:
        words = f"{text} of text + {told} of sound in {tokens.whole_prompt} input tokens"
        raise UsageContradiction(words, replace(tokens, input=text, audio_input=told))
    if told is None:
        text = min(text, read)
        return replace(tokens, input=text, audio_input=read - text)
    return tokens


def _spoken(found: _Figures) -> TokenCounts:
    usage, counts, tokens = found
    characters = first_count(usage, "characters", "input_characters", "billed_characters")
    if characters is None and counts.keys().isdisjoint((UsageCount.PROMPT, *_MADE)):
        raise NoCountsError("neither tokens nor characters are there")
    if (characters or 0) > CHARACTERS_LIMIT:
        raise UsageError(f"more than {CHARACTERS_LIMIT} characters in one request")
    tokens = replace(tokens, characters=characters or 0)
    if UsageCount.AUDIO_OUT in counts:
        return tokens
    return replace(tokens, audio_output=_media_of(usage, tokens))


def _pictured(found: _Figures) -> TokenCounts:
    usage, counts, tokens = found
    pictures = first_count(usage, "generated_images") or 0
    if pictures > PICTURES_LIMIT:
        raise UsageError(f"more than {PICTURES_LIMIT} pictures in one request")
    tokens = replace(tokens, pictures=pictures)
    if UsageCount.IMAGE_OUT in counts:
        return tokens
    return replace(tokens, image_output=_media_of(usage, tokens))


def _media_of(usage: _Usage, tokens: TokenCounts) -> int:
    """Return the output tokens that are neither text nor reasoning."""
    return max(0, tokens.plain_output - _text_in(usage, OUTPUT_DETAILS))


def _text_in(usage: _Usage, names: tuple[str, ...]) -> int:
    return first_count(details_of(usage, *names), "text_tokens") or 0
