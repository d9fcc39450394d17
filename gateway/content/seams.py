"""Texts that are one only when they are put together: what stands across the ends of parts."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.content.text_scanner import ScanResult, TextFind, is_surer

REACH: Final = 160  # characters on each side of a seam


class SeamWindow:
    """A stretch of several texts put together, and where each piece of it comes from."""

    __slots__ = ("pieces", "text")

    def __init__(self, pieces: Sequence[tuple[int, int, str]]) -> None:
        """`pieces`: of which text, from which place on, and what of it."""
        self.pieces = pieces
        self.text = "".join(piece for _, _, piece in pieces)

    def parts_of(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Return the text, begin and end of all that a stretch of the window is made of."""
        found, at = [], 0
        for text, begin, piece in self.pieces:
            first, last = max(start, at), min(end, at + len(piece))
            if first < last:
                found.append((text, begin + first - at, begin + last - at))
            at += len(piece)
        return found


def seam_windows(texts: Sequence[str], places: Sequence[int]) -> list[SeamWindow]:
    """Return windows over the seams of the texts at these places; short texts are in one window."""
    windows: list[SeamWindow] = []
    pieces: list[tuple[int, int, str]] = []
    for number, place in enumerate(places):
        text = texts[place]
        first, last = number == 0, number == len(places) - 1
        if len(text) > 2 * REACH and not (first and last):
            if not first:
                pieces.append((place, 0, text[:REACH]))
                windows.append(SeamWindow(pieces))
            begin = len(text) - REACH
            pieces = [(place, begin, text[begin:])]
        else:
            pieces.append((place, 0, text))
    if len(pieces) > 1:
        windows.append(SeamWindow(pieces))
    return [window for window in windows if len(window.pieces) > 1]


class SplitFind(tuple[TextFind, ...]):
    """The parts of one find that stands in several texts."""

    __slots__ = ()


def find_across(
    texts: Sequence[str],
    orders: Sequence[Sequence[int]],
    scan: Callable[[Sequence[str]], ScanResult],
    known: Sequence[TextFind],
) -> tuple[list[SplitFind], set[TextFind]]:
    """Return what only texts together tell, of each order in which they may be put together.

    `known`: finds inside of one text. The second is those of them that a larger one takes in.
    """
    windows = [
        window for places in orders if len(places) > 1 for window in seam_windows(texts, places)
    ]
    if not windows:
        return [], set()
    by_text: dict[int, list[TextFind]] = {}
    for find in known:
        by_text.setdefault(find.text, []).append(find)
    found: dict[tuple[int, int], SplitFind] = {}
    absorbed: set[TextFind] = set()
    for find in scan([window.text for window in windows]).finds:
        window = windows[find.text]
        parts = window.parts_of(find.start, find.end)
        if len(parts) < 2 and (find.start == 0 or find.end == len(window.text)):
            continue  # a part of something longer
        within = {
            other
            for text, begin, end in parts
            for other in by_text.get(text, ())
            if begin < other.end and other.start < end
        }
        size = sum(end - begin for _, begin, end in parts)
        if len(parts) < 2 and within:
            continue
        if any(other.end - other.start >= size and not is_surer(find, other) for other in within):
            continue
        absorbed |= within
        split = SplitFind(TextFind(find.kind, *part, find.value) for part in parts)
        found.setdefault((parts[0][0], parts[0][1]), split)
    return list(found.values()), absorbed
