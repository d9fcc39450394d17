"""Counts what a provider's result file tells, to find lines that were done and are not in it.

A provider may leave results out, write them twice, under other names, or so that nobody reads them.
What it did is billed all the same.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from gateway.batches.line_settlement import LineResult


@dataclass(slots=True)
class ResultFile:
    """Counts the results of a file.

    `known`: attempts that results are of, also of the files beside it; `done`: those that it
    answers; `odd`: results that may be answers and are of no attempt.
    """

    known: set[str] = field(default_factory=set)
    done: int = 0
    odd: int = 0
    has_failures: bool = False

    def add_answer(self, result: LineResult | None, ours: Container[str]) -> LineResult | None:
        """Count a result; return it where it is the first answer of an attempt of ours.

        A failure is left to a second look: an answer may stand behind it, in this file or another.
        A result that says neither tells nothing of its line.
        """
        if result is not None and not result.is_answered:
            self.has_failures = self.has_failures or result.is_failed
            return None
        if result is None or result.custom_id not in ours:
            self.odd += 1
            return None
        if result.custom_id in self.known:
            return None
        self.known.add(result.custom_id)
        self.done += 1
        return result

    def add_failure(self, result: LineResult | None, ours: Container[str]) -> LineResult | None:
        """Return a failure where it is the first result of an attempt of ours that has no answer.

        Call it once all files were read for their answers.
        """
        if result is None or not result.is_failed or result.custom_id not in ours:
            return None
        if result.custom_id in self.known:
            return None
        self.known.add(result.custom_id)
        return result
