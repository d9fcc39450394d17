"""Sum of the usage of a batch's answers, shown as the batch's `usage`. No I/O."""

from collections.abc import Iterator
from operator import add
from typing import Any, NamedTuple

import msgspec

from ledger.cache_conventions import Convention
from ledger.usage import tokens_from_usage
from ledger.usage_figures import UsageError


class _Body(msgspec.Struct):
    usage: dict[str, Any]


class _Response(msgspec.Struct):
    body: _Body


class _Answer(msgspec.Struct):
    response: _Response


_ANSWERS = msgspec.json.Decoder(_Answer)


class _Sum(NamedTuple):
    """Tokens of answers; cached tokens are part of the prompt, as in OpenAI's usage."""

    prompt: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0


class BatchUsage:
    """Token counts of the answers so far; unknown once an answer lacks its usage."""

    def __init__(self) -> None:
        self._sum: _Sum | None = _Sum()

    def count(self, answers: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the lines of the output file unchanged, and count the usage of each."""
        for answer in answers:
            if self._sum is not None:
                told = _tokens(answer)
                self._sum = None if told is None else _Sum(*map(add, self._sum, told))
            yield answer

    def document(self) -> dict[str, object] | None:
        """Return the batch's `usage`, or `None` if unknown."""
        if self._sum is None:
            return None
        prompt, cached, output, reasoning = self._sum
        return {
            "input_tokens": prompt,
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": reasoning},
            "total_tokens": prompt + output,
        }


def _tokens(answer: bytes) -> _Sum | None:
    try:
        usage = _ANSWERS.decode(answer).response.body.usage
        told = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, UsageError):
        return None  # an invalid answer must not stop the batch from ending
    return _Sum(told.whole_prompt, told.cached, told.output, told.reasoning)
