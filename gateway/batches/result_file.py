"""Counts of a provider's result file, to find lines that were processed but are not in it.

A provider may omit results, repeat them, use other names or write unreadable lines. It bills all
lines that it processed.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from gateway.batches.line_settlement import LineResult


@dataclass(slots=True)
class ResultFile:
    """Counts of the results in a file.

    `known`: attempts with a result, including the batch's other file. `done`: answered attempts.
    `odd`: possible answers that belong to no attempt.
    """

    known: set[str] = field(default_factory=set)
    done: int = 0
    odd: int = 0
    has_failures: bool = False

    def add_answer(self, result: LineResult | None, ours: Container[str]) -> LineResult | None:
        """Count a result; return it if it is the first answer of one of our attempts.

        Failures are read in a second pass, because an answer may follow, in this file or the other.
        A result that is neither is ignored.
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
        """Return a failure if it is the first result of one of our attempts without an answer.

        Call it after all files were read for answers.
        """
        if result is None or not result.is_failed or result.custom_id not in ours:
            return None
        if result.custom_id in self.known:
            return None
        self.known.add(result.custom_id)
        return result
