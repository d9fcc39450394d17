"""Rows by two names in shared memory: found, placed, displaced and cleared."""

from array import array

import pytest

from router.estimate_rows import FIRST, NAME, OWNER, WINDOW, EstimateRows, cells_of

WIDTH, SEEN = 4, 3
KEY = ("model", "team")


def memory(slots: int = 16) -> "memoryview[float]":
    return memoryview(array("d", bytes(8 * cells_of(WIDTH, slots))))


def rows(cells=None, placed=None) -> EstimateRows:
    return EstimateRows(WIDTH, 16, SEEN, cells, placed)


def test_a_row_is_placed_once_with_its_prior_and_told_of() -> None:
    told = []
    table = rows(placed=lambda slot, key: told.append((slot, key)))
    assert table.look(KEY) is None
    view = table.claim(KEY, (7.0, 0.0), 5.0)
    assert view.tolist()[FIRST:] == [7.0, 5.0]
    view[FIRST] = 8.0
    assert table.claim(KEY, (7.0, 0.0), 6.0)[FIRST] == 8.0
    ((slot, row),) = table.rows()
    assert told == [(slot, KEY)]
    assert row[FIRST] == 8.0
    assert 0.0 not in (row[OWNER], row[NAME])


def test_who_looked_in_vain_finds_what_another_placed_at_once() -> None:
    """Red before: a key that was looked for in vain was not looked for the next 16 times."""
    cells = memory()
    one, two = rows(cells), rows(cells)
    assert two.look(KEY) is None
    for number in range(3):
        one.claim(KEY, (float(number), 0.0), 1.0)
        view = two.look(KEY)
        assert view is not None
        assert view[FIRST] == number
        assert one.forget("model", "team") == 1
        assert two.look(KEY) is None


@pytest.mark.parametrize(
    ("name", "owner", "dropped"),
    [(None, None, 4), ("a", None, 2), (None, "s", 2), ("a", "s", 1), ("c", None, 0)],
)
def test_rows_are_dropped_by_name_and_owner(name, owner, dropped) -> None:
    table = rows()
    for key in (("a", "s"), ("a", "t"), ("b", "s"), ("b", "t")):
        table.claim(key, (1.0, 0.0), 1.0)
    assert table.forget(name, owner) == dropped
    assert len(list(table.rows())) == 4 - dropped


def test_an_owner_displaces_its_own_before_the_oldest() -> None:
    table = EstimateRows(WIDTH, WINDOW, SEEN)
    table.claim(("mine", "oldest"), (1.0, 0.0), 0.0)
    for number in range(2 * WINDOW):
        table.claim((f"made-up-{number}", "flood"), (1.0, 0.0), 1.0 + number)
    assert table.look(("mine", "oldest")) is not None
    assert len(list(table.rows())) == WINDOW
