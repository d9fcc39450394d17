"""Texts that are one only when they are put together: what stands across the ends of parts."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.content.text_scanner import ScanResult, TextFind

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
) -> list[SplitFind]:
    """Return what stands across seams, of each order in which texts may be put together.

    `known`: finds inside of one text; what crosses a seam only because one of them ends there is
    no other find.
    """
    windows = [
        window for places in orders if len(places) > 1 for window in seam_windows(texts, places)
    ]
    if not windows:
        return []
    spans: dict[int, list[tuple[int, int]]] = {}
    for find in known:
        spans.setdefault(find.text, []).append((find.start, find.end))
    found: dict[tuple[int, int], SplitFind] = {}
    for find in scan([window.text for window in windows]).finds:
        parts = windows[find.text].parts_of(find.start, find.end)
        if len(parts) < 2 or any(
            begin < last and first < end
            for text, begin, end in parts
            for first, last in spans.get(text, ())
        ):
            continue
        split = SplitFind(TextFind(find.kind, *part, find.value) for part in parts)
        found.setdefault((parts[0][0], parts[0][1]), split)
    return list(found.values())
