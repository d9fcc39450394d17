"""Bounded stretches of a text around places in it."""

from collections.abc import Iterable, Iterator


def stretches(places: Iterable[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of what is around the places, which rise; what overlaps is one."""
    begin = end = -1
    for place in places:
        if begin >= 0 and place - before <= end:
            end = place + behind
            continue
        if begin >= 0:
            yield begin, end
        begin, end = max(0, place - before), place + behind
    if begin >= 0:
        yield begin, end
