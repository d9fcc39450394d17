"""Texts in slices that take well under a millisecond each, so that a loop may turn in between."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

SLICE: Final = 32 * 1024  # characters that are scanned at once
OVERLAP: Final = 512  # characters that two pieces of one text share


class TextPiece(NamedTuple):
    """A piece of the text at place `text`, from `start` on."""

    text: int
    start: int
    piece: str


def slices_of(texts: Sequence[str]) -> Iterator[list[TextPiece]]:
    """Yield all texts in groups of a bounded size; a long one in pieces that overlap."""
    group: list[TextPiece] = []
    size = 0
    for place, text in enumerate(texts):
        if len(text) > SLICE:
            if group:
                yield group
            group, size = [], 0
            for start in range(0, len(text) - OVERLAP, SLICE - OVERLAP):
                yield [TextPiece(place, start, text[start : start + SLICE])]
            continue
        if size + len(text) > SLICE:
            yield group
            group, size = [], 0
        group.append(TextPiece(place, 0, text))
        size += len(text) + 1
    if group:
        yield group
