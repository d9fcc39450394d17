"""Bisection of a batch into parts, each applied wholly or not at all, to find bad records.

A batch is halved only where something is rejected; other records stay together. A part with a
transient failure (others were in its way) is retried at once in halves, and later parts are no
larger until some have passed: where any row may fail, a small part passes where a large one never
would. A transient failure does not reject a record.
"""

from collections.abc import Callable, Iterable, Sequence

from ledger.writing.fold import JournalItem

ALL_AT_ONCE = 8192  # records: as many as a batch may have
FEWEST_AT_ONCE = 16
TRIES_ALONE = 5


class RecordsRejected(Exception):
    """The database rejects some of these records whenever they are tried; the text says why."""


class TransientDbError(Exception):
    """A transient failure: the same statement may pass at once."""


class BatchBisector:
    """Sizes of parts, learned from batch to batch. For use by one thread."""

    def __init__(self) -> None:
        self._at_once = ALL_AT_ONCE
        self._refused: dict[tuple[str, int, int], tuple[JournalItem, str]] = {}

    def is_whole(self, items: Sequence[JournalItem]) -> bool:
        """Return whether a batch of this size may pass as a whole."""
        return len(items) <= self._at_once

    def record_failure(self, items: Sequence[JournalItem]) -> None:
        """Record a transient failure of all these items together, which halves the part size."""
        self._at_once = max(FEWEST_AT_ONCE, (len(items) + 1) // 2)

    def apply_parts(
        self, items: Sequence[JournalItem], apply: Callable[[Sequence[JournalItem]], None]
    ) -> None:
        """Apply parts in order. A part for which `apply` raises an error of this module is undone.

        Raises `TransientDbError` if a single record failed so repeatedly.
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
        """Return the items without those known as rejected, and the rejected ones with reasons.

        If a transaction fails after the search, the next one need not repeat it. `forget_items`
        removes items.
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
        """Forget items that are in the database or quarantined."""
        if self._refused:
            for item in items:
                self._refused.pop(_position_of(item), None)


def _halves(some: Sequence[JournalItem]) -> list[Sequence[JournalItem]]:
    """Return both halves, second half first, so that the first is taken next from the stack.

    A single record is not split.
    """
    middle = len(some) // 2
    return [part for part in (some[middle:], some[:middle]) if part]


def _position_of(item: JournalItem) -> tuple[str, int, int]:
    return item.journal, item.segment, item.offset
