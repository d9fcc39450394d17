"""Sums tell where cached tokens are counted, and names where sums do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.cache_conventions import (
    CacheConvention,
    Convention,
    find_convention,
    summed_prompt,
)
from ledger.usage import other_reading, tokens_from_usage
from ledger.usage_members import UsageCount as Count

INSIDE, OUTSIDE = Convention.CACHED_INSIDE, Convention.CACHED_OUTSIDE
OPENAI, ANTHROPIC = {"prompt_tokens": 1}, {"input_tokens": 1, "cache_read_input_tokens": 1}
BOTH = OPENAI | ANTHROPIC


@pytest.mark.parametrize(
    ("names", "counts", "cached", "convention", "is_told"),
    [
        (OPENAI, {Count.PROMPT: 9}, 0, INSIDE, True),
        (OPENAI, {Count.PROMPT: 9}, 4, INSIDE, True),
        (OPENAI, {Count.PROMPT: 9}, 40, INSIDE, True),  # which is refused
        (OPENAI, {Count.PROMPT: 9, Count.TOTAL: 49}, 40, OUTSIDE, True),
        (OPENAI, {Count.PROMPT: 9, Count.TOTAL: 13}, 4, INSIDE, True),  # four thoughts
        (ANTHROPIC, {Count.PROMPT: 9}, 40, OUTSIDE, True),
        (ANTHROPIC, {Count.PROMPT: 9}, 4, OUTSIDE, False),
        (ANTHROPIC, {Count.PROMPT: 9, Count.TOTAL: 9}, 4, INSIDE, True),
        (ANTHROPIC, {Count.PROMPT: 9, Count.TOTAL: 13}, 4, OUTSIDE, True),
        (BOTH, {Count.PROMPT: 9}, 4, INSIDE, False),
        (BOTH, {Count.PROMPT: 9, Count.COMPLETION: 5, Count.TOTAL: 18}, 4, OUTSIDE, True),
        (BOTH, {Count.PROMPT: 9, Count.COMPLETION: 5, Count.TOTAL: 14}, 4, INSIDE, True),
    ],
)
def test_where_cached_tokens_are(names, counts, cached, convention, is_told) -> None:
    assert find_convention(counts, names, cached) == CacheConvention(convention, is_told)


@given(
    fresh=st.integers(1, 10**6), read=st.integers(0, 10**6), written=st.integers(0, 10**6),
    output=st.integers(1, 10**5),
    names=st.sampled_from((("prompt_tokens", "completion_tokens"), ("input_tokens",
                           "output_tokens"))),
    total=st.sampled_from(("none", "all", "fresh")),
)  # fmt: skip
def test_anthropics_names_beside_the_prompt_are_read_whatever_else_is_told(
    fresh, read, written, output, names, total
) -> None:
    """But where neither sums nor names tell: that is left to the prompt's bounds."""
    usage = {
        names[0]: fresh, names[1]: output,
        "cache_read_input_tokens": read, "cache_creation_input_tokens": written,
    }  # fmt: skip
    if total != "none":
        usage["total_tokens"] = fresh + output + (read + written if total == "all" else 0)
    found = tokens_from_usage(usage, INSIDE)
    honest = (fresh, read, written, output)
    told = (found.input, found.cached, found.cache_write, found.output)
    if total != "fresh" and (total == "all" or names[0] == "input_tokens"):
        assert told == honest
    elif told != honest:
        other = other_reading(usage)
        assert read + written <= fresh
        assert total == "fresh" or (other is not None and other.cached == read)


def test_a_total_may_have_some_of_what_stands_beside() -> None:
    for total, prompt in ((None, 10), (15, 10), (115, 110), (35, 30), (135, 130), (3, 10)):
        counts = {Count.COMPLETION: 5} | ({} if total is None else {Count.TOTAL: total})
        assert summed_prompt(counts, 10, (100, 20)) == prompt
