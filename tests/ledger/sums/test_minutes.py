"""A day's minutes come back as they were, in as few bytes as their largest number needs."""

import pytest

from ledger.sums.minutes import MINUTES_OF_DAY, SPARSE, numbers, pack_day, spread, unpack_day


def minutes(count: int, largest: int) -> dict[int, tuple[int, int, int, int, int]]:
    return {n * MINUTES_OF_DAY // count: (largest, n, 0, 1, 2) for n in range(count)}


@pytest.mark.parametrize("count", [1, SPARSE, SPARSE + 1, MINUTES_OF_DAY])
@pytest.mark.parametrize("largest", [255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63])
def test_a_day_comes_back(count, largest) -> None:
    day = pack_day(minutes(count, largest))
    assert dict(unpack_day(day)) == minutes(count, largest)
    assert (day.minutes == b"") == (count > SPARSE)
    tokens = spread(numbers(day.minutes), day.tokens)
    assert len(tokens) == MINUTES_OF_DAY
    assert tokens.count(largest) == count


@pytest.mark.parametrize(("largest", "width"), [(255, 1), (256, 2), (65_536, 4), (2**32, 8)])
def test_a_column_is_as_narrow_as_its_largest_number(largest, width) -> None:
    assert len(pack_day(minutes(MINUTES_OF_DAY, largest)).tokens) == 1 + width * MINUTES_OF_DAY
    assert numbers(b"") == []


def test_the_same_minutes_are_the_same_bytes() -> None:
    item = minutes(7, 9)
    assert pack_day(item) == pack_day(dict(reversed(item.items())))
