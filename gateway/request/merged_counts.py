"""Merges several figures of one attempt into the most that its target told of each kind.

Figures grow while an answer does, so the largest of each is of all of it. What stands for the same
tokens in two ways is counted once: cached tokens are those of the latest of the largest prompts, as
their discount is told last by some, and so is how long written ones are kept, where that is told.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.journals.token_kinds import TokenCounts


def merge_counts(told: Sequence[TokenCounts]) -> TokenCounts:
    """Return the most of each count, oldest first in `told`; the parts fit into their whole."""
    newest_first = told[::-1]  # of equal ones the first is the largest to `max`
    read = max(newest_first, key=lambda tokens: tokens.whole_prompt)
    made = max(newest_first, key=lambda tokens: tokens.output)
    left = read.whole_prompt
    written = min(max(tokens.cache_write + tokens.cache_write_1h for tokens in told), left)
    for_an_hour = min(max(tokens.cache_write_1h for tokens in told), written)
    heard = min(max(tokens.audio_input for tokens in told), left - written)
    cached = min(read.cached, left - written - heard)
    reasoning = min(max(tokens.reasoning for tokens in told), made.output)
    spoken = min(max(tokens.audio_output for tokens in told), made.output - reasoning)
    shown = min(max(tokens.image_output for tokens in told), made.output - reasoning - spoken)
    return TokenCounts(
        input=left - written - heard - cached,
        cached=cached,
        cache_write=written - for_an_hour,
        cache_write_1h=for_an_hour,
        output=made.output,
        reasoning=reasoning,
        audio_input=heard,
        audio_output=spoken,
        audio_ms=max(tokens.audio_ms for tokens in told),
        searches=max(tokens.searches for tokens in told),
        image_output=shown,
        characters=max(tokens.characters for tokens in told),
        pictures=max(tokens.pictures for tokens in told),
    )


def takes_back(last: TokenCounts, most: TokenCounts) -> bool:
    """Return whether the last figure has less than `most`; not to say how long is kept is none."""
    written = last.cache_write + last.cache_write_1h
    if written == most.cache_write + most.cache_write_1h:
        last = _kept_as(last, most)
    return last != most


def _kept_as(tokens: TokenCounts, other: TokenCounts) -> TokenCounts:
    if tokens.cache_write_1h == other.cache_write_1h:
        return tokens
    return replace(tokens, cache_write=other.cache_write, cache_write_1h=other.cache_write_1h)
