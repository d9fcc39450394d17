"""A batch in parts, each whole or not at all, down to the records that the books refuse.

Halves are taken only where something is refused; what stands beside it stays together. A part
that failed for a moment (others were in its way) is tried again at once in halves, and the parts
after it are no larger until some have passed: where any row may fail, a few pass together and
many never would. A record that failed for a moment is never one that is refused.
"""

from collections.abc import Callable, Iterable, Sequence

from ledger.writing.fold import JournalItem

ALL_AT_ONCE = 8192  # records: as many as a batch may have
FEWEST_AT_ONCE = 16
TRIES_ALONE = 5


class RecordsRejected(Exception):
    """The books will not take some of these records, whenever they are tried; says why."""


class TransientDbError(Exception):
    """It failed for a moment: the same may pass at once."""


class BatchBisector:
    """The learned sizes of parts from batch to batch. For one thread."""

    def __init__(self) -> None:
        self._at_once = ALL_AT_ONCE
        self._refused: dict[tuple[str, int, int], tuple[JournalItem, str]] = {}

    def is_whole(self, items: Sequence[JournalItem]) -> bool:
        """Whether so many together have a chance."""
        return len(items) <= self._at_once

    def record_failure(self, items: Sequence[JournalItem]) -> None:
        """For a moment, all of them together."""
        self._at_once = max(FEWEST_AT_ONCE, (len(items) + 1) // 2)

    def apply_parts(
        self, items: Sequence[JournalItem], apply: Callable[[Sequence[JournalItem]], None]
    ) -> None:
        """`apply` parts in their order; what it raised for (the two of this module) it did not do.

        Raises `TransientDbError` when a record by itself failed so again and again.
        """
        left, tries = [items] if items else [], 0
        while left:
            some = left.pop()
            if not self.is_whole(some):
                left += (some[self._at_once :], some[: self._at_once])
                continue
            try:
                apply(some)
            except RecordsRejected as refused:
                if len(some) == 1:
                    self._refused[_position_of(some[0])] = (some[0], str(refused))
                else:
                    left += _halves(some)
            except TransientDbError:
                self.record_failure(some)
                tries = tries + 1 if len(some) == 1 else 0
                if tries == TRIES_ALONE:
                    raise
                left += _halves(some)
            else:
                tries = 0
                if len(some) == self._at_once:
                    self._at_once = min(ALL_AT_ONCE, 2 * self._at_once)

    def split_known(
        self, items: Sequence[JournalItem]
    ) -> tuple[Sequence[JournalItem], list[tuple[JournalItem, str]]]:
        """The items without those refused alone; and these, with why. Until `forget_items`.

        A transaction may fail after it found them: the next one need not search again.
        """
        if not self._refused:
            return items, []
        rest: list[JournalItem] = []
        aside: list[tuple[JournalItem, str]] = []
        for item in items:
            found = self._refused.get(_position_of(item))
            if found is not None and found[0] == item:
                aside.append(found)
            else:
                rest.append(item)
        return rest, aside

    def forget_items(self, items: Iterable[JournalItem]) -> None:
        """They are in the books, or set aside."""
        if self._refused:
            for item in items:
                self._refused.pop(_position_of(item), None)


def _halves(some: Sequence[JournalItem]) -> list[Sequence[JournalItem]]:
    """The first is last: it is taken next. One record stays one."""
    middle = len(some) // 2
    return [part for part in (some[middle:], some[:middle]) if part]


def _position_of(item: JournalItem) -> tuple[str, int, int]:
    return item.journal, item.segment, item.offset
