"""Errors of implausible usage, and the merging of several usage reports of one answer.

Contradicting counts are merged to the highest of each kind, which may have been generated. Callers
book at most the held amount and dispute the rest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ledger.journals.token_kinds import TokenCounts
from ledger.merged_counts import merge_counts, takes_back

# Member of usage in which the wire clients put further usage reports of the same answer.
BESIDE: Final = "told_beside"
MOST_FIGURES: Final = 100  # of one answer that are read


class UsageError(ValueError):
    """Usage that no provider can mean; the message names the field."""


class NoCountsError(UsageError):
    """Usage without any count that is charged."""


class UsageContradiction(UsageError):  # what it is, not that it failed
    """Usage with contradicting counts; `most` holds the highest of each."""

    def __init__(self, message: str, most: TokenCounts) -> None:
        super().__init__(message)
        self.most = most


def figures_of(usage: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return usage and its nested further reports as a flat list of up to `MOST_FIGURES`."""
    left: list[Any] = [usage]
    found: list[Mapping[str, Any]] = []
    while left and len(found) < MOST_FIGURES:
        figure = left.pop(0)
        if isinstance(figure, Mapping):
            found.append({name: value for name, value in figure.items() if name != BESIDE})
            beside = figure.get(BESIDE)
            left += beside if isinstance(beside, list) else [beside]
    return found


def read_figures(
    usage: Mapping[str, Any], read: Callable[[Mapping[str, Any]], TokenCounts]
) -> TokenCounts:
    """Return the merged counts of usage and its further reports, each parsed by `read`.

    A report without counts is skipped. Raises `UsageContradiction` if a report contradicts itself
    or the usage has less than the further reports, and `UsageError` for invalid counts.
    """
    told: list[TokenCounts] = []
    first: UsageError | None = None
    contradicts = False
    for figure in reversed(figures_of(usage)):
        try:
            told.append(read(figure))
        except UsageContradiction as error:
            told.append(error.most)
            contradicts = True
        except UsageError as error:
            first = error
            contradicts = contradicts or not isinstance(error, NoCountsError)
    if not told:
        assert first is not None, "a figure that is not told was refused"
        raise first
    most = merge_counts(told)
    if contradicts or takes_back(told[-1], most):
        raise UsageContradiction("several figures of one answer are not alike", most)
    return most
