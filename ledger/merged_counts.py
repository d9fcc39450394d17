"""Merging of several usage reports of one attempt into the highest count of each kind.

Counts grow during an answer, so the largest count covers all of it. Counts that describe the same
tokens are taken from one report: cached tokens come from the latest report with the largest prompt,
because some providers report the discount last. The same holds for the lifetime of cache writes.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from ledger.journals.token_kinds import TOKEN_KINDS, TokenCounts


def merge_counts(told: Sequence[TokenCounts]) -> TokenCounts:
    """Return the maximum of each count; parts never exceed their whole.

    `told` holds the reports, oldest first.
    """
    most = {kind.field: max(getattr(tokens, kind.field) for tokens in told) for kind in TOKEN_KINDS}
    left = most["output"]
    for kind in TOKEN_KINDS:
        if kind.part_of == "output":
            most[kind.field] = min(most[kind.field], left)
            left -= most[kind.field]
    # Of equal prompts the latest report: `max` returns the first one of the reversed list.
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
    """Return whether the last report has less than `most`.

    A missing lifetime of cache writes does not count as less.
    """
    written = last.cache_write + last.cache_write_1h
    if written == most.cache_write + most.cache_write_1h:
        last = _kept_as(last, most)
    return last != most


def _kept_as(tokens: TokenCounts, other: TokenCounts) -> TokenCounts:
    if tokens.cache_write_1h == other.cache_write_1h:
        return tokens
    return replace(tokens, cache_write=other.cache_write, cache_write_1h=other.cache_write_1h)
