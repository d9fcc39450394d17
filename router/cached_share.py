"""Share of an expected cached prefix that a provider really charges as cached, by target.

The share is tokens read from the cache per token of a prefix that was sent there within the
provider's cache lifetime. It is 0 until an answer shows otherwise, except where the provider
promises caching. It changes the expected cost, and so the choice, and no bound or hold. State is
one row of `router.estimate_rows` for each target, as in `router.target_output`. `now_s` is wall
clock time in seconds.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from router.estimate_rows import EstimateRows, KeyedEstimator, RowKey
from router.estimator_rules import AGING_S, CACHED_HALF_LIFE_S, share_left
from router.target_output import SLOTS, target_key

PRIOR_WEIGHT = 0.1  # of an answer
LIMIT = 1.125  # a prefix is known to its last block hash; a cache may hold up to one block more
KEPT = 0.95  # factor on earlier answers at each new one: about 20 answers count

SHARE_CELLS: Final = 6
_, _, _READ, _COUNT, _SEEN, _AGED = range(SHARE_CELLS)


class ShareRow(NamedTuple):
    """Cached share of one target, with the number of answers that it was observed in."""

    slot: int
    share: float
    observations: float
    seen_s: float


class CachedShare(KeyedEstimator):
    """Cached shares by target. All workers of a host read each new observation at once."""

    def __init__(
        self,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """Use the given shared memory; `cells` and `placed` are those of `EstimateRows`."""
        slots = SLOTS if cells is None else len(cells) // SHARE_CELLS - 1
        super().__init__(EstimateRows(SHARE_CELLS, slots, _SEEN, cells, placed), _AGED, _age)

    def observe(self, target: str, readable: int, cached: int, now_s: float) -> None:
        """Record an answer with `readable` prompt tokens, `cached` of them charged as cached."""
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
        """Return the share to expect. Before any observation it is 1 if `promised`, else 0."""
        prior = 1.0 if promised else 0.0
        view = self._rows.look(target_key(target))
        if view is None:
            return prior
        read, count = _within(view.tolist())  # type: ignore[arg-type]  # as above
        return (PRIOR_WEIGHT * prior + read) / (PRIOR_WEIGHT + count)

    def rows(self) -> Iterator[ShareRow]:
        """Yield the share of every target, in no order."""
        for slot, row in self._rows.rows():
            read, count = _within(row)
            yield ShareRow(slot, read / count if count > 0.0 else 0.0, count, row[_SEEN])


def _within(row: list[float]) -> tuple[float, float]:
    """Return the two sums, clamped to valid limits whatever the shared cells hold."""
    count = row[_COUNT] if 0.0 < row[_COUNT] <= 1.0 / (1.0 - KEPT) + 1.0 else 0.0
    read = max(0.0, row[_READ])
    return min(read, LIMIT * count), count


def _age(row: list[float], now_s: float) -> None:
    kept = share_left(now_s - row[_AGED], CACHED_HALF_LIFE_S)
    read, count = _within(row)
    row[_READ], row[_COUNT], row[_AGED] = kept * read, kept * count, now_s
