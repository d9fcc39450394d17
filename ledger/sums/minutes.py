"""A packed day of a load: columns of numbers by minute, as narrow as the day's maximum.

A day with requests in most minutes stores all 1,440 minutes, quiet ones as zeros. Another day
stores only the minutes in `places`, in order. Equal minutes always give equal bytes. Reading needs
no decoder.
"""

import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ledger.sums.rollup import Load

MINUTES_OF_DAY = 1_440
SPARSE = MINUTES_OF_DAY // 2  # so many minutes are named, more are not
_QUIET: Load = (0, 0, 0, 0, 0)
_WIDTHS = (("B", 2**8), ("H", 2**16), ("I", 2**32), ("Q", 2**64))  # array's, 1 to 8 bytes


class LoadDay(NamedTuple):
    """A day's load with the columns of `orm.RollupLoadDayRow`."""

    minutes: bytes
    tokens: bytes
    output_tokens: bytes
    good_tokens: bytes
    good_output_tokens: bytes
    requests: bytes


def pack_day(minutes: Mapping[int, Load]) -> LoadDay:
    """Pack loads by minute of the day; at least one minute is required."""
    places = sorted(minutes)
    dense = len(places) > SPARSE
    loads = [minutes.get(index, _QUIET) for index in (range(MINUTES_OF_DAY) if dense else places)]
    return LoadDay(
        b"" if dense else _pack_values(places), *map(_pack_values, zip(*loads, strict=True))
    )


def unpack_day(day: LoadDay) -> Iterator[tuple[int, Load]]:
    """Yield every minute with requests and its load."""
    places = numbers(day.minutes) or range(MINUTES_OF_DAY)
    for place, *load in zip(places, *map(numbers, day[1:]), strict=True):
        if load[-1]:
            yield place, tuple(load)


def spread(places: Sequence[int], packed: bytes) -> list[int]:
    """Return a column as 1,440 numbers.

    `places` is empty for a whole day, else from `numbers`.
    """
    column = numbers(packed)
    if not places:
        return column
    whole = [0] * MINUTES_OF_DAY
    for place, value in zip(places, column, strict=True):
        whole[place] = value
    return whole


def numbers(packed: bytes) -> list[int]:
    """Return the numbers of a packed column; none for an empty column."""
    if not packed:
        return []
    column = array(chr(packed[0]))
    column.frombytes(memoryview(packed)[1:])
    return _little(column).tolist()


def _pack_values(values: Sequence[int]) -> bytes:
    largest = max(values)
    code = next(code for code, limit in _WIDTHS if largest < limit)
    return code.encode() + _little(array(code, values)).tobytes()


def _little(column: "array[int]") -> "array[int]":
    """Return the column in little-endian byte order, which is stored on every machine."""
    if sys.byteorder == "big":
        column.byteswap()
    return column
