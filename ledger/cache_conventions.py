"""Decides whether usage counts cached tokens inside its prompt or beside it. Pure.

OpenAI counts them inside, Anthropic and Bedrock beside, and servers that translate one into the
other keep names of both. Sums tell it: a total, or more cached tokens than the prompt has. Where
they tell nothing, names do: `prompt_tokens` is OpenAI's, `input_tokens` with Anthropic's names of
cached tokens is Anthropic's.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from ledger.usage_members import UsageCount


class Convention(StrEnum):
    """The place where cached reads and cache writes are counted."""

    CACHED_INSIDE = "cached_inside"  # OpenAI, vLLM: part of prompt_tokens
    CACHED_OUTSIDE = "cached_outside"  # Anthropic: input_tokens is only what was not cached


# Names of cached tokens that are beside a prompt's count where their inventors write them.
_BESIDE: Final = frozenset((
    "cache_read_input_tokens", "cache_creation_input_tokens",
    "cacheReadInputTokens", "cacheReadInputTokenCount",
    "cacheWriteInputTokens", "cacheWriteInputTokenCount",
))  # fmt: skip
_OPENAI_PROMPT: Final = "prompt_tokens"


class CacheConvention(NamedTuple):
    """A convention; `is_told`: whether sums say so, and not names alone."""

    convention: Convention
    is_told: bool


def find_convention(
    counts: Mapping[UsageCount, int], names: Mapping[str, object], cached: int
) -> CacheConvention:
    """Return how usage counts its `cached` tokens, those that were written among them.

    `names`: the members of the usage.
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
    """Return the prompt as the total has it: with all that stands beside it, some, or none of it.

    `beside`: counts of cached tokens beside `prompt`.
    """
    total = counts.get(UsageCount.TOTAL)
    if total is None:
        return prompt
    room = total - counts.get(UsageCount.COMPLETION, 0)
    sums = sorted({prompt, prompt + sum(beside), *(prompt + part for part in beside)})
    return max((figure for figure in sums if figure <= room), default=prompt)
