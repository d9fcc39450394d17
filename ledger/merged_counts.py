"""Merges several figures of one attempt into the most that its target told of each kind.

Figures grow while an answer does, so the largest of each is of all of it. What stands for the same
tokens in two ways is counted once: cached tokens are those of the latest of the largest prompts, as
their discount is told last by some, and so is how long written ones are kept, where that is told.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.journals.token_kinds import TOKEN_KINDS, TokenCounts


def merge_counts(told: Sequence[TokenCounts]) -> TokenCounts:
    """Return the most of each count, oldest first in `told`; the parts fit into their whole."""
    most = {kind.field: max(getattr(tokens, kind.field) for tokens in told) for kind in TOKEN_KINDS}
    left = most["output"]
    for kind in TOKEN_KINDS:
        if kind.part_of == "output":
            most[kind.field] = min(most[kind.field], left)
            left -= most[kind.field]
    # Of equal ones the latest, which is the first to `max`.
    read = max(told[::-1], key=lambda tokens: tokens.whole_prompt)
    left = read.whole_prompt
    written = min(max(tokens.cache_write + tokens.cache_write_1h for tokens in told), left)
    most["cache_write_1h"] = min(most["cache_write_1h"], written)
    most["cache_write"] = written - most["cache_write_1h"]
    left -= written
    for name, limit in (("audio_input", left), ("cached", read.cached)):
        most[name] = min(most[name], limit, left)
        left -= most[name]
    return TokenCounts(**{**most, "input": left})


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
