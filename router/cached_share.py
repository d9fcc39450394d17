"""Learns how much of what a provider's prompt cache may hold it is charged for as cached.

A share by target: tokens read from the cache, for each token of a prefix that is known to have been
sent there within the provider's time. Nothing is counted on before an answer showed it, but where
the provider promises it. No bound is made of it: it moves expected dollars, and so the choice.

State is one row of `router.estimate_rows` for each target, as of `router.target_output`. `now_s` is
wall clock.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from router.estimate_rows import EstimateRows, RowKey
from router.estimator_rules import AGING_S, CACHED_HALF_LIFE_S, share_left
from router.target_output import SLOTS, target_key

PRIOR_WEIGHT = 0.1  # of an answer
LIMIT = 1.125  # a beginning is known to its last mark, and a cache has up to one piece more
KEPT = 0.95  # of what was seen, at each answer: 20 of them count

SHARE_CELLS: Final = 6
_, _, _READ, _COUNT, _SEEN, _AGED = range(SHARE_CELLS)


class ShareRow(NamedTuple):
    """One target with the share that was seen there, and of how many answers it is."""

    slot: int
    share: float
    observations: float
    seen_s: float


class CachedShare:
    """Shares by target. A worker reads at once what another one of its host observed."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """`cells` and `placed` as `EstimateRows` has them."""
        slots = SLOTS if cells is None else len(cells) // SHARE_CELLS - 1
        self._rows = EstimateRows(SHARE_CELLS, slots, _SEEN, cells, placed)

    def close(self) -> None:
        """Let go of the memory."""
        self._rows.close()

    def observe(self, target: str, readable: int, cached: int, now_s: float) -> None:
        """Take an answer whose prompt had so many tokens to read, and was charged so many."""
        if readable <= 0:
            return
        view = self._rows.claim(target_key(target), (0.0, 0.0, now_s, now_s), now_s)
        row: list[float] = view.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
        if not 0.0 <= now_s - row[_AGED] < AGING_S:
            _age(row, now_s)
        read, count = _within(row)
        view[_READ] = KEPT * read + min(max(cached, 0) / readable, LIMIT)
        view[_COUNT] = KEPT * count + 1.0
        view[_AGED], view[_SEEN] = row[_AGED], now_s

    def share(self, target: str, *, promised: bool) -> float:
        """Return the share to count on; `promised`: where nothing was seen, all."""
        prior = 1.0 if promised else 0.0
        view = self._rows.look(target_key(target))
        if view is None:
            return prior
        read, count = _within(view.tolist())  # type: ignore[arg-type]  # as above
        return (PRIOR_WEIGHT * prior + read) / (PRIOR_WEIGHT + count)

    def age(self, now_s: float) -> None:
        """Let every target forget what is old, and drop those that nobody asked for."""
        self._rows.age(now_s, _AGED, _age)

    def forget(self, target: str | None) -> int:
        """Drop what is known of a target (None: of all); returns of how many."""
        return self._rows.forget(target, None)

    def rows(self) -> Iterator[ShareRow]:
        """Return what is known of every target, in no order."""
        for slot, row in self._rows.rows():
            read, count = _within(row)
            yield ShareRow(slot, read / count if count > 0.0 else 0.0, count, row[_SEEN])


def _within(row: list[float]) -> tuple[float, float]:
    """Return what was seen, within the limits whatever the cells hold."""
    count = row[_COUNT] if 0.0 < row[_COUNT] <= 1.0 / (1.0 - KEPT) + 1.0 else 0.0
    read = max(0.0, row[_READ])
    return min(read, LIMIT * count), count


def _age(row: list[float], now_s: float) -> None:
    kept = share_left(now_s - row[_AGED], CACHED_HALF_LIFE_S)
    read, count = _within(row)
    row[_READ], row[_COUNT], row[_AGED] = kept * read, kept * count, now_s
