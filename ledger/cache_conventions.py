"""Detection of whether usage counts cached tokens inside the prompt or outside it. No I/O.

OpenAI counts them inside, Anthropic and Bedrock outside. Servers that translate one format into the
other keep the names of both. The sums decide first: a total, or more cached tokens than prompt
tokens. Where sums are inconclusive, names decide: `prompt_tokens` means OpenAI's convention,
`input_tokens` together with Anthropic's names of cached tokens means Anthropic's.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from ledger.usage_members import UsageCount


class Convention(StrEnum):
    """The place where cache reads and cache writes are counted."""

    CACHED_INSIDE = "cached_inside"  # OpenAI, vLLM: part of prompt_tokens
    CACHED_OUTSIDE = "cached_outside"  # Anthropic: input_tokens excludes cached tokens


# Names of cached tokens that the providers who introduced them count outside the prompt.
_BESIDE: Final = frozenset((
    "cache_read_input_tokens", "cache_creation_input_tokens",
    "cacheReadInputTokens", "cacheReadInputTokenCount",
    "cacheWriteInputTokens", "cacheWriteInputTokenCount",
))  # fmt: skip
_OPENAI_PROMPT: Final = "prompt_tokens"


class CacheConvention(NamedTuple):
    """A detected convention. `is_told` is true if sums prove it, false if names suggest it."""

    convention: Convention
    is_told: bool


def find_convention(
    counts: Mapping[UsageCount, int], names: Mapping[str, object], cached: int
) -> CacheConvention:
    """Return the convention by which usage counts its `cached` tokens (reads and writes).

    `names` is the usage object, of which only the member names are read.
    """
    prompt = counts.get(UsageCount.PROMPT, 0) + counts.get(UsageCount.PROMPT_BESIDE, 0)
    inside = CacheConvention(Convention.CACHED_INSIDE, is_told=True)
    outside = CacheConvention(Convention.CACHED_OUTSIDE, is_told=True)
    if not cached:
        return inside
    made = counts.get(UsageCount.COMPLETION, 0) + counts.get(UsageCount.THOUGHT_BESIDE, 0)
    total = counts.get(UsageCount.TOTAL)
    thoughts = counts.get(UsageCount.THOUGHT) or counts.get(UsageCount.THOUGHT_ANYWHERE, 0)
    has_both = total is not None and total - prompt - cached - made in (0, thoughts)
    is_named = not _BESIDE.isdisjoint(names)
    if cached > prompt:
        return outside if is_named or has_both else inside
    if is_named and total is not None:
        return outside if has_both else inside
    if is_named and not names.get(_OPENAI_PROMPT):
        return CacheConvention(Convention.CACHED_OUTSIDE, is_told=False)
    return CacheConvention(Convention.CACHED_INSIDE, is_told=not is_named)


def summed_prompt(counts: Mapping[UsageCount, int], prompt: int, beside: Collection[int]) -> int:
    """Return the prompt size that fits the total: with all, one or none of `beside`.

    `beside`: counts of cached tokens that stand outside `prompt`.
    """
    total = counts.get(UsageCount.TOTAL)
    if total is None:
        return prompt
    room = total - counts.get(UsageCount.COMPLETION, 0)
    sums = sorted({prompt, prompt + sum(beside), *(prompt + part for part in beside)})
    return max((figure for figure in sums if figure <= room), default=prompt)
