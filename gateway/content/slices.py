"""Texts in slices that take well under a millisecond each, so that a loop may turn in between."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SLICE: Final = 32 * 1024  # characters that are scanned at once, at most
LEAST: Final = 1024
FIRST: Final = 2 * 1024
OVERLAP: Final = 512  # characters that two pieces of one text share
_LONG_S, _SHORT_S = 1e-3, 2.5e-4


class TextPiece(NamedTuple):
    """A piece of the text at place `text`, from `start` on.

    It owns what begins from `first` on and before `last`: what two pieces have, one of them owns.
    """

    text: int
    start: int
    piece: str
    first: int
    last: int


class SlicePace:
    """The number of characters of the next slice: a log of numbers takes longer than prose."""

    __slots__ = ("characters",)

    def __init__(self, characters: int = FIRST) -> None:
        self.characters = characters

    def record(self, took_s: float) -> None:
        """Learn how long the last slice took."""
        if took_s > _LONG_S:
            self.characters = max(LEAST, self.characters // 2)
        elif took_s < _SHORT_S:
            self.characters = min(SLICE, self.characters * 2)


def slices_of(texts: Sequence[str], pace: SlicePace) -> Iterator[list[TextPiece]]:
    """Yield all texts in groups as large as the pace allows; a long one in pieces that overlap."""
    group: list[TextPiece] = []
    size = 0
    for place, text in enumerate(texts):
        if size + len(text) > pace.characters and group:
            yield group
            group, size = [], 0
        if len(text) > pace.characters:
            start = first = 0
            while start == 0 or start + OVERLAP < len(text):
                end = start + pace.characters
                last = end - OVERLAP // 2 if end < len(text) else len(text)
                yield [TextPiece(place, start, text[start:end], first, last)]
                start, first = end - OVERLAP, last
            continue
        group.append(TextPiece(place, 0, text, 0, len(text)))
        size += len(text) + 1
    if group:
        yield group
