"""Reads the output that usage counts: thoughts inside it or beside it, sound and pictures. Pure.

Some providers count reasoning beside the completion: in a member that always is (Gemini), in their
total alone (xAI), as a step of its own (Perplexity's research, which counts what it cited, too), or
in one that has more than the completion, which cannot be a part of it.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ledger.usage_members import UsageCount


class OutputCounts(NamedTuple):
    """Tokens of an output, and of it those of reasoning, sound and pictures."""

    whole: int
    reasoning: int
    audio: int
    image: int


def read_output(
    counts: Mapping[UsageCount, int], prompt: int, note: Callable[[str], None]
) -> OutputCounts:
    """Return the output; of figures that contradict each other, which `note` is told, the most.

    `prompt`: all of it.
    """
    completion = _completion(counts, prompt)
    audio, image = counts.get(UsageCount.AUDIO_OUT, 0), counts.get(UsageCount.IMAGE_OUT, 0)
    beside, total = counts.get(UsageCount.THOUGHT_BESIDE, 0), counts.get(UsageCount.TOTAL)
    surplus = 0 if total is None else total - prompt - completion
    if surplus < 0:
        note(f"total_tokens {total} is less than {prompt} + {completion}")
        surplus = 0
    inside, thought = _thoughts(counts, completion, surplus)
    beside += thought
    for name, told in (("reasoning", inside if not beside else 0), ("thoughts", beside)):
        if surplus and told not in (0, surplus):
            note(f"total_tokens {total} is neither with nor without {told} {name}")
    beside = max(beside, surplus)
    reasoning = max(inside, beside)
    parts, output = reasoning + audio + image, completion + beside
    if parts > output:
        note(f"{reasoning} reasoning + {audio} audio + {image} image of {output} output tokens")
        output = max(completion + reasoning, parts)
    return OutputCounts(output, reasoning, audio, image)


def _completion(counts: Mapping[UsageCount, int], prompt: int) -> int:
    """Return what the completion counts; what nobody counts apart from the total is all of it."""
    beside = counts.get(UsageCount.THOUGHT_BESIDE, 0)
    rest = counts.get(UsageCount.TOTAL, 0) - prompt - beside
    return counts.get(UsageCount.COMPLETION, max(0, rest))


def _thoughts(counts: Mapping[UsageCount, int], completion: int, surplus: int) -> tuple[int, int]:
    """Return reasoning inside the completion, and beside it; `surplus`: of the total."""
    told = counts.get(UsageCount.THOUGHT, 0)
    is_anywhere = not told
    told = told or counts.get(UsageCount.THOUGHT_ANYWHERE, 0)
    # A member that is inside by its name is not where it cannot be, and no total says otherwise.
    is_apart = told > completion and not surplus
    if UsageCount.CITED in counts or (is_apart and (is_anywhere or UsageCount.TOTAL not in counts)):
        return 0, told
    return told, 0
