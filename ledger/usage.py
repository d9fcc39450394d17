"""Tokens by kind out of what a provider reports, or a typed refusal to believe it.

Providers disagree whether cached reads and cache writes are counted inside the prompt's total
(OpenAI, vLLM, LiteLLM's translations) or beside it (Anthropic), and the numbers cannot tell:
the `Convention` is therefore a required argument. Usage that contradicts itself is refused, so
that the attempt is settled on an estimate, visibly, instead of on nonsense. Rerankings count
tokens or searches, transcriptions tokens or seconds, each in words of their own.
"""

from collections.abc import Mapping
from enum import StrEnum

from ledger.journals.token_kinds import (
    AUDIO_MS_LIMIT,
    MS_PER_S,
    SEARCHES_LIMIT,
    TOKENS_LIMIT,
    TokenCounts,
)
from ledger.prices.rates import prompt_tokens

# vLLM: prompt tokens that filled new cache blocks. Telemetry, not a charge, so it may overlap.
_CREATED = ("created_cache_tokens", "created_cached_tokens")
_PLAIN = frozenset(("prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"))
_PLAIN_DETAILS = frozenset(("cached_tokens",))
_NONE: Mapping[str, object] = {}


class Convention(StrEnum):
    """Where cached reads and cache writes are counted."""

    CACHED_INSIDE = "cached_inside"  # OpenAI, vLLM: part of prompt_tokens
    CACHED_OUTSIDE = "cached_outside"  # Anthropic: input_tokens is only what was not cached


class UsageError(ValueError):
    """Usage that no provider can have meant; the message names the field."""


def tokens_from_usage(usage: Mapping[str, object], convention: Convention) -> TokenCounts:
    """Read chat, completions, embeddings, responses and Anthropic messages usage."""
    if _PLAIN.issuperset(usage) and convention is Convention.CACHED_INSIDE:
        plain = _plain(usage)
        if plain is not None:
            return plain
    prompt = _first(usage, "prompt_tokens", "input_tokens")
    if prompt is None:
        raise UsageError("neither `prompt_tokens` nor `input_tokens` is there")
    completion = _first(usage, "completion_tokens", "output_tokens") or 0
    details = _details(usage, "prompt_tokens_details", "input_tokens_details")
    cached = _cached(usage, details)
    write, write_1h = _writes(usage, details)
    audio = _first(details, "audio_tokens") or 0
    if convention is Convention.CACHED_INSIDE:
        if write_1h == 0 and _first(details, *_CREATED) is not None:
            write = min(write, max(0, prompt - cached))
        fresh = prompt - cached - write - write_1h
        if fresh < 0:
            raise UsageError(
                f"{cached} cached + {write + write_1h} written of {prompt} in the prompt"
            )
    else:
        fresh = prompt
    # Cached audio is counted in both details; what is left of the prompt bounds the audio.
    audio = min(audio, fresh)
    output, reasoning, audio_output = _output(usage, prompt, completion)
    return _limited(
        TokenCounts(
            input=fresh - audio,
            cached=cached,
            cache_write=write,
            cache_write_1h=write_1h,
            output=output,
            reasoning=reasoning,
            audio_input=audio,
            audio_output=audio_output,
        )
    )


def _plain(usage: Mapping[str, object]) -> TokenCounts | None:
    """Numbers that add up, as most answers have them; anything else is looked at closely."""
    prompt, output = _first(usage, "prompt_tokens"), _first(usage, "completion_tokens") or 0
    if prompt is None or _first(usage, "total_tokens") not in (None, prompt + output):
        return None
    details = _details(usage, "prompt_tokens_details")
    if not _PLAIN_DETAILS.issuperset(details):
        return None
    cached = _first(details, "cached_tokens") or 0
    return (
        TokenCounts(input=prompt - cached, cached=cached, output=output)
        if cached <= prompt
        else None
    )


def tokens_of_reranking(usage: Mapping[str, object]) -> TokenCounts:
    """vLLM, Jina and Voyage count tokens (some in their total alone), Cohere bills searches."""
    read = _first(usage, "prompt_tokens", "input_tokens", "total_tokens")
    searches = _first(usage, "search_units")
    if read is None and searches is None:
        raise UsageError("neither tokens nor `search_units` are there")
    if (searches or 0) > SEARCHES_LIMIT:
        raise UsageError(f"more than {SEARCHES_LIMIT} searches in one request")
    return TokenCounts(input=read or 0, searches=searches or 0)


def tokens_of_transcription(usage: Mapping[str, object]) -> TokenCounts:
    """OpenAI's two types (`tokens`, `duration`), Mistral's both at once, vLLM's in streams.

    Tokens of a prompt whose kind is not told are sound's.
    """
    audio_ms = _sound_ms(usage)
    prompt = _first(usage, "input_tokens", "prompt_tokens")
    if prompt is None:
        if audio_ms is None:
            raise UsageError("neither tokens nor seconds are there")
        return TokenCounts(audio_ms=audio_ms)
    details = _details(usage, "input_token_details", "input_tokens_details")
    text = _first(details, "text_tokens") or 0
    audio = _first(details, "audio_tokens")
    if audio is None:
        audio = max(0, prompt - text)
    if text + audio > prompt:
        raise UsageError(f"{text} of text + {audio} of sound in {prompt} input tokens")
    output = _first(usage, "output_tokens", "completion_tokens") or 0
    found = TokenCounts(
        input=prompt - audio, audio_input=audio, output=output, audio_ms=audio_ms or 0
    )
    return _limited(found)


def _sound_ms(usage: Mapping[str, object]) -> int | None:
    for name in ("seconds", "prompt_audio_seconds"):
        value = usage.get(name)
        if value is None:
            continue
        if type(value) not in (int, float):
            raise UsageError(f"`{name}` is {value!r}: not a number")
        if not 0 <= value <= AUDIO_MS_LIMIT / MS_PER_S:  # type: ignore[operator]  # by its type
            raise UsageError(f"`{name}` is {value}: not between 0 and {AUDIO_MS_LIMIT // 1000}")
        return round(value * MS_PER_S)  # type: ignore[operator]  # by its type
    return None


def _cached(usage: Mapping[str, object], details: Mapping[str, object]) -> int:
    # Top level: Anthropic, and DeepSeek's own name for the same number.
    reads = (
        _first(usage, "cache_read_input_tokens"),
        _first(details, "cached_tokens"),
        _first(usage, "prompt_cache_hit_tokens"),
    )
    return _agreed("cached reads", reads)


def _writes(usage: Mapping[str, object], details: Mapping[str, object]) -> tuple[int, int]:
    """Cache writes kept five minutes, and those kept an hour."""
    by_age = _details(usage, "cache_creation")
    if not by_age:
        by_age = _details(details, "cache_creation_token_details")
    short = _first(by_age, "ephemeral_5m_input_tokens")
    long = _first(by_age, "ephemeral_1h_input_tokens")
    totals = (
        _first(usage, "cache_creation_input_tokens"),
        _first(
            details,
            *_CREATED,
            "cache_write_tokens",
            "cache_creation_tokens",
        ),
    )
    total = _agreed("cache writes", totals)
    if short is None and long is None:
        return total, 0
    aged = (short or 0) + (long or 0)
    if total and aged != total:
        raise UsageError(f"cache writes: {total} in all, {aged} by age")
    return short or 0, long or 0


def _output(usage: Mapping[str, object], prompt: int, completion: int) -> tuple[int, int, int]:
    """Output with reasoning inside; some providers report reasoning only in their total."""
    details = _details(usage, "completion_tokens_details", "output_tokens_details")
    reasoning = _first(details, "reasoning_tokens") or 0
    audio = _first(details, "audio_tokens") or 0
    total = _first(usage, "total_tokens")
    surplus = 0 if total is None else total - prompt - completion
    if surplus < 0:
        raise UsageError(f"total_tokens {total} is less than {prompt} + {completion}")
    if surplus and reasoning not in (0, surplus):
        raise UsageError(f"total_tokens {total} is neither with nor without {reasoning} reasoning")
    output = completion + surplus
    reasoning = max(reasoning, surplus)
    if reasoning + audio > output:
        raise UsageError(f"{reasoning} reasoning + {audio} audio of {output} output tokens")
    return output, reasoning, audio


def _agreed(what: str, counts: tuple[int | None, ...]) -> int:
    """One number under several names: a zero beside a count is a name that is not in use."""
    said = {count for count in counts if count}
    if len(said) > 1:
        raise UsageError(f"{what}: reported as {' and '.join(map(str, sorted(said)))}")
    return said.pop() if said else 0


def _details(usage: Mapping[str, object], *names: str) -> Mapping[str, object]:
    for name in names:
        value = usage.get(name)
        if value is None or value == []:  # as PHP writes an object without members
            continue
        if not isinstance(value, Mapping):
            raise UsageError(f"`{name}` is no object")
        return value
    return _NONE


def _first(fields: Mapping[str, object], *names: str) -> int | None:
    """The first of the names that is there; null counts as absent, `5.0` as 5 as in JSON Schema."""
    for name in names:
        value = fields.get(name)
        if value is None:
            continue
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:  # bool is an int to isinstance, and no count
            raise UsageError(f"`{name}` is {value!r}: not a whole number")
        if not 0 <= value <= TOKENS_LIMIT:
            raise UsageError(f"`{name}` is {value}: not between 0 and {TOKENS_LIMIT}")
        return value
    return None


def _limited(tokens: TokenCounts) -> TokenCounts:
    if prompt_tokens(tokens) > TOKENS_LIMIT or tokens.output > TOKENS_LIMIT:
        raise UsageError(f"more than {TOKENS_LIMIT} tokens in one request")
    return tokens
