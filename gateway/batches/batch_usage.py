"""Adds up what the answers of a batch say that they used, as `usage` of a batch tells it. Pure."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from ledger.usage import counts_of
from ledger.usage_figures import UsageError
from ledger.usage_members import UsageCount


class _Body(msgspec.Struct):
    usage: dict[str, Any]


class _Response(msgspec.Struct):
    body: _Body


class _Answer(msgspec.Struct):
    response: _Response


_ANSWERS = msgspec.json.Decoder(_Answer)


class BatchUsage:
    """Counts of the answers so far; all are unknown once an answer does not say its own."""

    def __init__(self) -> None:
        self._counts: Counter[UsageCount] | None = Counter()

    def count(self, answers: Iterator[bytes]) -> Iterator[bytes]:
        """Pass lines of the output file on, each counted."""
        for answer in answers:
            if self._counts is not None:
                told = _counts(answer)
                self._counts = None if told is None else self._counts + told
            yield answer

    def document(self) -> dict[str, object] | None:
        """Return it as a batch has it, or `None` where it is not known."""
        counts = self._counts
        if counts is None:
            return None
        prompt, completion = counts[UsageCount.PROMPT], counts[UsageCount.COMPLETION]
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": counts[UsageCount.CACHED]},
            "output_tokens": completion,
            "output_tokens_details": {"reasoning_tokens": counts[UsageCount.THOUGHT]},
            "total_tokens": prompt + completion,
        }


def _counts(answer: bytes) -> Counter[UsageCount] | None:
    odd: list[str] = []
    try:
        told = counts_of(_ANSWERS.decode(answer).response.body.usage, odd.append)
    except (msgspec.DecodeError, UsageError):
        return None
    return None if odd or UsageCount.PROMPT not in told else Counter(told)
