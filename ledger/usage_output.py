"""Output counts of usage: reasoning inside or outside the completion, audio and images.

Some providers count reasoning outside the completion: in a member of its own (Gemini), only in the
total (xAI), as a separate step (Perplexity's deep research, which also counts cited tokens), or in
a member that exceeds the completion and so cannot be part of it. No I/O.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ledger.usage_members import UsageCount


class OutputCounts(NamedTuple):
    """Tokens of an output, and the reasoning, audio and image tokens among them."""

    whole: int
    reasoning: int
    audio: int
    image: int


def read_output(
    counts: Mapping[UsageCount, int], prompt: int, note: Callable[[str], None]
) -> OutputCounts:
    """Return the output counts; the highest, with a `note`, if they contradict each other.

    `prompt`: the whole prompt in tokens.
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
    """Return the completion's count, or what the total has beyond the prompt without one."""
    beside = counts.get(UsageCount.THOUGHT_BESIDE, 0)
    rest = counts.get(UsageCount.TOTAL, 0) - prompt - beside
    return counts.get(UsageCount.COMPLETION, max(0, rest))


def _thoughts(counts: Mapping[UsageCount, int], completion: int, surplus: int) -> tuple[int, int]:
    """Return reasoning tokens inside the completion, and outside it.

    `surplus`: tokens of the total beyond prompt and completion.
    """
    told = counts.get(UsageCount.THOUGHT, 0)
    is_anywhere = not told
    told = told or counts.get(UsageCount.THOUGHT_ANYWHERE, 0)
    # Reasoning above the completion cannot be part of it, unless a total says so.
    is_apart = told > completion and not surplus
    if UsageCount.CITED in counts or (is_apart and (is_anywhere or UsageCount.TOTAL not in counts)):
        return 0, told
    return told, 0
