"""Usage that cannot be right as a whole, and usage that an answer tells in several places.

Both have figures that contradict each other. The most of each count is what may have been made, so
that is kept: whoever reads it books no more than it holds for, and disputes the rest.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from ledger.journals.token_kinds import TokenCounts
from ledger.merged_counts import merge_counts, takes_back

# Of usage: further figures of the same answer, as the wire clients put them there.
BESIDE: Final = "told_beside"
MOST_FIGURES: Final = 100  # of one answer that are read


class UsageError(ValueError):
    """Usage that no provider can have meant; the message names the field."""


class NoCountsError(UsageError):
    """Usage that says nothing that is charged."""


class UsageContradiction(UsageError):  # what it is, not that it failed
    """Usage whose figures speak against each other: `most` has the most of each count."""

    def __init__(self, message: str, most: TokenCounts) -> None:
        super().__init__(message)
        self.most = most


def figures_of(usage: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return usage and the figures beside it, each alone; of what a target nests so, few."""
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
    """Return what usage and the figures beside it tell, each by `read`.

    A figure without counts says nothing. Raises `UsageContradiction` where the usage itself tells
    less than those beside it, or one of them contradicts itself, and `UsageError` for what no
    figure can have meant.
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
