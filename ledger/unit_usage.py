"""Usage of kinds of request that count units beside tokens, or read and write nothing.

Tokens, thoughts, cached ones and searches are read by the table of all usage (`usage_members`);
what a kind adds is said here: which unit it counts, and of which medium tokens are that nobody
names.
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
    """One figure: its counts by the table, and its tokens as a conversation would have them."""

    usage: _Usage
    counts: Mapping[UsageCount, int]
    tokens: TokenCounts


def tokens_of_embedding(usage: _Usage) -> TokenCounts:
    """Return what an embedding read; a total above its prompt is prompt where nothing was made."""
    return _read(usage, lambda figures: figures.tokens, is_input=True, needed=_TOKENS)


def tokens_of_reranking(usage: _Usage) -> TokenCounts:
    """vLLM, Jina and Voyage count tokens (some in their total alone), Cohere bills searches."""
    needed = (*_TOKENS, UsageCount.SEARCHES)
    return _read(usage, lambda figures: figures.tokens, is_input=True, needed=needed)


def tokens_of_transcription(usage: _Usage) -> TokenCounts:
    """OpenAI's two types (`tokens`, `duration`), Mistral's both at once, vLLM's in streams.

    Tokens of a prompt whose kind is not told are sound's.
    """
    return _read(usage, _heard)


def tokens_of_speech(usage: _Usage) -> TokenCounts:
    """Tokens of the text and of its sound, as OpenAI's stream ends with; characters of others."""
    return _read(usage, _spoken, is_media=True)


def tokens_of_pictures(usage: _Usage) -> TokenCounts:
    """Pictures of the answer, and tokens where the target counts them: of pictures, unless told.

    `generated_images` is how many pictures came: `backends.answers` counts them.
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
    """Return what usage tells by the table, as `finish` has it for a kind.

    `is_input`: nothing is written; `is_media`: what is made is a medium, of which a total alone
    may tell. `needed`: some of these, or nothing is told.
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
    """The output that is no text and no thought."""
    return max(0, tokens.plain_output - _text_in(usage, OUTPUT_DETAILS))


def _text_in(usage: _Usage, names: tuple[str, ...]) -> int:
    return first_count(details_of(usage, *names), "text_tokens") or 0
