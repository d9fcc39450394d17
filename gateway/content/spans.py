"""Finds in a text, and what a pattern finds around places."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gateway.content.stretches import stretches


class Span(NamedTuple):
    """A find from `start` to `end` of a stretch; `value`: the same for each way to write it."""

    kind: str
    start: int
    end: int
    value: str


def matches_around(
    pattern: re.Pattern[str], text: str, places: Sequence[int], reach: tuple[int, int]
) -> Iterator[re.Match[str]]:
    """Yield what matches around the places."""
    for begin, end in stretches(places, *reach):
        yield from pattern.finditer(text, begin, end)
