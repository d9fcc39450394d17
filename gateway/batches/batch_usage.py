"""Sum of the usage of a batch's answers, shown as the batch's `usage`. No I/O."""

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
    """Token counts of the answers so far; unknown once an answer lacks its usage."""

    def __init__(self) -> None:
        self._counts: Counter[UsageCount] | None = Counter()

    def count(self, answers: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the lines of the output file unchanged, and count the usage of each."""
        for answer in answers:
            if self._counts is not None:
                told = _counts(answer)
                self._counts = None if told is None else self._counts + told
            yield answer

    def document(self) -> dict[str, object] | None:
        """Return the batch's `usage`, or `None` if unknown."""
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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, UsageError):
        return None  # an invalid answer must not stop the batch from ending
    return None if odd or UsageCount.PROMPT not in told else Counter(told)
