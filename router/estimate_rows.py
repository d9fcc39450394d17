"""Rows of learned estimates, keyed by two names, in memory that processes may share.

A row is a number of float64 cells. The first two are hashes of its names; 0 in the first marks a
free row. A key has `WINDOW` possible places, and an owner that invents keys displaces its own rows
before those of others. Any process writes any row: of two concurrent writes one observation is
lost, which an estimate tolerates. A row of marks stands before the others. Its number changes
whenever a row is placed, so that a process knows whether to search for its keys again.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from secrets import randbits
from typing import Final

from router.estimator_rules import AGING_S, UNUSED_S

# A name and its owner: a model and a team, or a target and a provider.
RowKey = tuple[str, str]

WINDOW = 8  # places that a key may have
OWNER, NAME, FIRST = range(3)  # the cells of the names, and the first of the estimator's own
_CHANGED: Final = 0  # in the row of marks
_MARK_BITS: Final = 52  # a float64 holds integers up to 2**53 exactly


class EstimateRows:
    """Table that finds, places and clears rows. Each estimator defines its cells."""

    __slots__ = ("_cells", "_placed", "_places", "_seen", "_width", "slots")

    def __init__(
        self,
        width: int,
        slots: int,
        seen: int,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """Use `cells` (zeroed at first, `cells_of(width, slots)` of them), or private memory.

        `seen` is the index of the cell with the time of the last observation. `placed` is called
        with the slot and the key of each new row.
        """
        if cells is None:
            cells = memoryview(array("d", bytes(8 * cells_of(width, slots))))
        self._cells, self._width, self._seen, self._placed = cells, width, seen, placed
        self.slots = len(cells) // width - 1
        self._places: dict[RowKey, _Place] = {}

    def close(self) -> None:
        """Release the memory."""
        self._places.clear()
        self._cells.release()

    def look(self, key: RowKey) -> "memoryview[float] | None":
        """Return the cells of the key's row, or `None` if it has none."""
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= self.slots:
                self._places.clear()
            place = self._places[key] = _Place(number_of(key[1]), number_of(key[0]))
        view = place.view
        if view is not None:
            if view[OWNER] == place.owner and view[NAME] == place.name:
                return view
            place.view = None  # another process cleared it, or gave it to another key
        elif place.changed == self._cells[_CHANGED]:
            return None  # no row was placed since the last search
        return self._find(place)

    def claim(self, key: RowKey, prior: Sequence[float], now_s: float) -> "memoryview[float]":
        """Return the key's row. A key without one gets a row with `prior` after the names.

        A new row takes a free place, else the place of its owner's oldest row, else of the oldest
        row.
        """
        if (view := self.look(key)) is not None:
            return view
        place = self._places[key]
        every = {slot: self._view(slot) for slot in self._window(place)}
        free = [slot for slot, view in every.items() if not view[OWNER]]
        own = [slot for slot, view in every.items() if view[OWNER] == place.owner]
        slot = free[0] if free else min(own or every, key=lambda slot: every[slot][self._seen])
        view = place.view = every[slot]
        self.clear(slot)
        for cell, value in enumerate(prior, FIRST):
            view[cell] = float(value)
        view[self._seen] = now_s
        if self._placed is not None:
            self._placed(slot, key)
        view[NAME] = place.name
        view[OWNER] = place.owner  # written last: the row is valid from here on
        self.touch()
        return view

    @property
    def mark(self) -> float:
        """Return a number that changes after each `touch` and each placed row, by any process."""
        return self._cells[_CHANGED]

    def touch(self) -> None:
        """Change the mark, so that every process searches for its keys again."""
        self._cells[_CHANGED] = float(randbits(_MARK_BITS) + 1)

    def rows(self) -> Iterator[tuple[int, list[float]]]:
        """Yield the slot and a copy of the cells of every row in use."""
        width = self._width
        every: list[float] = self._cells.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
        for slot in range(self.slots):
            start = (slot + 1) * width
            if every[start]:
                yield slot, every[start : start + width]

    def write(self, slot: int, row: Sequence[float], first: int = FIRST) -> None:
        """Write a row's cells, starting at index `first`."""
        view = self._view(slot)
        for cell in range(first, self._width):
            view[cell] = row[cell]

    def age(self, now_s: float, aged: int, fade: Callable[[list[float], float], None]) -> None:
        """Apply `fade` to each row that is due, and drop rows that were not used for `UNUSED_S`.

        `aged` is the index of the cell with the time until which a row has faded.
        """
        for slot, row in self.rows():
            if now_s - row[self._seen] >= UNUSED_S:
                self.clear(slot)
            elif not 0.0 <= now_s - row[aged] < AGING_S:
                fade(row, now_s)
                self.write(slot, row)

    def clear(self, slot: int) -> None:
        view = self._view(slot)
        for cell in range(self._width):
            view[cell] = 0.0

    def forget(self, name: str | None, owner: str | None) -> int:
        """Drop the rows that match `name` and `owner` (`None` matches all) and return how many."""
        of_name, of_owner = (None if text is None else number_of(text) for text in (name, owner))
        found = [
            slot
            for slot, row in self.rows()
            if of_name in (None, row[NAME]) and of_owner in (None, row[OWNER])
        ]
        for slot in found:
            self.clear(slot)
        return len(found)

    def _find(self, place: "_Place") -> "memoryview[float] | None":
        """Return the row that has these names, whichever process placed it."""
        changed = self._cells[_CHANGED]
        for slot in self._window(place):
            view = self._view(slot)
            if view[OWNER] == place.owner and view[NAME] == place.name:
                place.view = view
                return view
        place.changed = changed
        return None

    def _window(self, place: "_Place") -> list[int]:
        home = (int(place.owner) ^ int(place.name)) >> 1
        return [(home + step) % self.slots for step in range(WINDOW)]

    def _view(self, slot: int) -> "memoryview[float]":
        start = (slot + 1) * self._width
        return self._cells[start : start + self._width]


class KeyedEstimator:
    """Estimator whose state is one row for each key; `fade` ages a row since its cell `aged`."""

    def __init__(
        self, rows: EstimateRows, aged: int, fade: Callable[[list[float], float], None]
    ) -> None:
        self._rows, self._aged, self._fade = rows, aged, fade

    def close(self) -> None:
        """Release the memory."""
        self._rows.close()

    def age(self, now_s: float) -> None:
        """Fade old observations of every key, and drop keys that are not used."""
        self._rows.age(now_s, self._aged, self._fade)

    def forget(self, name: str | None, owner: str | None = None) -> int:
        """Drop the rows that match both (`None` matches all) and return how many were dropped."""
        return self._rows.forget(name, owner)


class _Place:
    """Place of a key's row, as this process knows it; `changed` is the mark when it had none."""

    __slots__ = ("changed", "name", "owner", "view")

    def __init__(self, owner: float, name: float) -> None:
        self.owner, self.name, self.changed = owner, name, -1.0
        self.view: memoryview[float] | None = None


def cells_of(width: int, slots: int) -> int:
    """Return the number of cells for `slots` rows, including the row of marks."""
    return width * (slots + 1)


def number_of(name: str) -> float:
    """Return a 48-bit hash of a name, never 0, which a float64 cell holds exactly."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return float(int.from_bytes(digest, "big") | 1)
