"""Counts what a provider's result file tells, to find lines that were done and are not in it.

A provider may leave results out, write them twice, under other names, or so that nobody reads them.
What it did is billed all the same.
"""

from collections.abc import Container
from dataclasses import dataclass, field

from gateway.batches.line_settlement import LineResult


@dataclass(slots=True)
class ResultFile:
    """`known`: attempts that results are of; `odd`: results that are of none."""

    known: set[str] = field(default_factory=set)
    odd: int = 0

    def add(self, result: LineResult | None, ours: Container[str]) -> LineResult | None:
        """Count a result; return it where it is the first of an attempt of ours."""
        if result is None or result.custom_id not in ours:
            self.odd += 1
            return None
        if result.custom_id in self.known:
            return None
        self.known.add(result.custom_id)
        return result
