"""Rows of learned figures by two names, in memory that processes may share.

A row is some float64 cells; the first two are numbers made of its names, and 0 in the first is a
free place. A key has a few places that it may be at, and whoever makes up keys displaces its own
before those of others. Any process writes any row: two that write at once lose one observation of
the two, which an estimate tolerates. Before the rows stands one of marks: it is another number
whenever a row was placed, so that a process knows at a glance whether to look for its keys again.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from secrets import randbits
from typing import Final

from router.estimator_rules import AGING_S, UNUSED_S

# What it is of, and whose it is: a model and a team, a target and a provider.
RowKey = tuple[str, str]

WINDOW = 8  # places that a key may have
OWNER, NAME, FIRST = range(3)  # the cells of the names, and the first of the estimator's own
_CHANGED: Final = 0  # in the row of marks
_MARK_BITS: Final = 52  # a cell holds so many exactly


class EstimateRows:
    """Finds, places and clears rows; what their cells mean is the estimator's affair."""

    __slots__ = ("_cells", "_placed", "_places", "_seen", "_width", "slots")

    def __init__(
        self,
        width: int,
        slots: int,
        seen: int,
        cells: "memoryview[float] | None" = None,
        placed: Callable[[int, RowKey], None] | None = None,
    ) -> None:
        """`cells`: `cells_of(width, slots)` of them, zero at first; `seen`: the cell of the time.

        `placed` is told of a key's new place.
        """
        if cells is None:
            cells = memoryview(array("d", bytes(8 * cells_of(width, slots))))
        self._cells, self._width, self._seen, self._placed = cells, width, seen, placed
        self.slots = len(cells) // width - 1
        self._places: dict[RowKey, _Place] = {}

    def close(self) -> None:
        """Let go of the memory."""
        self._places.clear()
        self._cells.release()

    def look(self, key: RowKey) -> "memoryview[float] | None":
        """Return the cells of the key's row; None where it has none."""
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
            return None  # nothing was placed since it was looked for
        return self._find(place)

    def claim(self, key: RowKey, prior: Sequence[float], now_s: float) -> "memoryview[float]":
        """Return the key's row, placed with these cells after the names where it has none.

        It takes a free place, else its owner's oldest, else the oldest.
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
        view[OWNER] = place.owner  # last: only now it counts
        self.touch()
        return view

    @property
    def mark(self) -> float:
        """Return a number that changes after each `touch` and each placed row, by any process."""
        return self._cells[_CHANGED]

    def touch(self) -> None:
        """Let every process look again at what it knows of the rows."""
        self._cells[_CHANGED] = float(randbits(_MARK_BITS) + 1)

    def rows(self) -> Iterator[tuple[int, list[float]]]:
        """Yield every row that is taken, with its slot, as it is now."""
        width = self._width
        every: list[float] = self._cells.tolist()  # type: ignore[assignment]  # the stubs think of bytes only
        for slot in range(self.slots):
            start = (slot + 1) * width
            if every[start]:
                yield slot, every[start : start + width]

    def write(self, slot: int, row: Sequence[float], first: int = FIRST) -> None:
        """Write a row's cells from the first one on."""
        view = self._view(slot)
        for cell in range(first, self._width):
            view[cell] = row[cell]

    def age(self, now_s: float, aged: int, fade: Callable[[list[float], float], None]) -> None:
        """Let `fade` change each row that has an age, and drop those that nobody asked for.

        `aged`: the cell of the time until which a row has faded.
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
        """Drop the rows of a name, of an owner, or of both (None: of all); returns how many."""
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
        """Return the row that has these names, whoever placed it."""
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


class _Place:
    """The place of a key's row, as this process knows it; `changed`: the mark when it had none."""

    __slots__ = ("changed", "name", "owner", "view")

    def __init__(self, owner: float, name: float) -> None:
        self.owner, self.name, self.changed = owner, name, -1.0
        self.view: memoryview[float] | None = None


def cells_of(width: int, slots: int) -> int:
    """Return how many cells so many rows take, with the marks."""
    return width * (slots + 1)


def number_of(name: str) -> float:
    """Return the number of a name: one of 48 bits, which a cell holds exactly, and never 0."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return float(int.from_bytes(digest, "big") | 1)
