"""Texts that are one only when they are put together: what stands across the ends of parts."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Final

from gateway.content.numbers import is_named
from gateway.content.text_scanner import ScanResult, TextFind, is_surer
from gateway.content.turn_taker import TurnTaker

REACH: Final = 160  # characters on each side of a seam
CARRIED: Final = 4096  # characters that a window has of the one before: no find is longer
WINDOW: Final = 3 * CARRIED
_VALUE: Final = 4 * REACH  # characters of a value that are looked at under its name
_PAIRS: Final = 16  # names and values in one window
_MARK: Final = -1  # in place of a text: a mark between two
BRIEF: Final = 64  # characters of a text that is a piece of something
_BRIEF_MOST: Final = 32  # such texts: more are data
_PIECE: Final = re.compile(
    r"^(?=.*\d)[A-Za-z0-9_+/=-]{6,}$|\+?(?:\b[A-Z]{1,2})?\d(?:.*[0-9A-Z])?(?![A-Za-z])|^[0-9A-Z]{1,8}$"
)
_AT_ONCE: Final = 16  # finds that are placed before others have a turn


class SeamWindow:
    """A stretch of several texts put together, and where each piece of it comes from.

    `goes_on`: the next one begins with its end. `follows`: it begins with the end of another.
    """

    __slots__ = ("_starts", "follows", "goes_on", "pieces", "text")

    def __init__(
        self,
        pieces: Sequence[tuple[int, int, str]],
        *,
        follows: bool = False,
        goes_on: bool = False,
    ) -> None:
        """`pieces`: of which text, from which place on, and what of it."""
        self.pieces = pieces
        self.follows, self.goes_on = follows, goes_on
        self.text = "".join(piece for _, _, piece in pieces)
        self._starts = [0, *accumulate(len(piece) for _, _, piece in pieces)]

    def parts_of(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """Return the text, begin and end of all that a stretch of the window is made of."""
        found = []
        for place in range(max(0, bisect_right(self._starts, start) - 1), len(self.pieces)):
            text, begin, piece = self.pieces[place]
            at = self._starts[place]
            if at >= end:
                break
            first, last = max(start, at), min(end, at + len(piece))
            if first < last and text >= 0:
                found.append((text, begin + first - at, begin + last - at))
        return found

    def is_cut(self, start: int, end: int) -> bool:
        """Return whether a neighbouring window has more of the text there."""
        at_begin, at_end = self.follows and start == 0, self.goes_on and end == len(self.text)
        return (at_begin or at_end) and end - start < CARRIED


def seam_windows(texts: Sequence[str], places: Sequence[int]) -> Iterator[SeamWindow]:
    """Yield windows over the seams of the texts at these places.

    Short texts are in one window, up to its size: many of them are in several that overlap.
    """
    pieces: list[tuple[int, int, str]] = []
    size, follows = 0, False
    for number, place in enumerate(places):
        text = texts[place]
        first, last = number == 0, number == len(places) - 1
        if len(text) > 2 * REACH and not (first and last):
            if not first:
                pieces.append((place, 0, text[:REACH]))
                yield SeamWindow(pieces, follows=follows)
            begin = len(text) - REACH
            pieces, size, follows = [(place, begin, text[begin:])], REACH, False
            continue
        pieces.append((place, 0, text))
        size += len(text)
        if size >= WINDOW and not last:
            if len(pieces) > 1:
                yield SeamWindow(pieces, follows=follows, goes_on=True)
            pieces, size = _end_of(pieces)
            follows = True
    if len(pieces) > 1:
        yield SeamWindow(pieces, follows=follows)


def _end_of(pieces: Sequence[tuple[int, int, str]]) -> tuple[list[tuple[int, int, str]], int]:
    """Return the last pieces, of so many characters as are carried on, and how many these are."""
    first, size = len(pieces), 0
    while size < CARRIED and first:
        first -= 1
        size += len(pieces[first][2])
    return list(pieces[first:]), size


def named_windows(texts: Sequence[str], named: Sequence[tuple[int, int]]) -> Iterator[SeamWindow]:
    """Yield windows over names and the values under them, as JSON would show them."""
    for first in range(0, len(named), _PAIRS):
        pieces: list[tuple[int, int, str]] = []
        for name, value in named[first : first + _PAIRS]:
            begin = max(0, len(texts[name]) - REACH)
            pieces += (
                (_MARK, 0, '"'), (name, begin, texts[name][begin:]), (_MARK, 0, '": "'),
                (value, 0, texts[value][:_VALUE]), (_MARK, 0, '",\n'),
            )  # fmt: skip
        yield SeamWindow(pieces)


def brief_windows(texts: Sequence[str], places: Sequence[int]) -> Iterator[SeamWindow]:
    """Yield a window over the short texts that have digits, without all that is said between.

    A number may be told in pieces, each in a message or a call of its own. A text with a word
    alone that names one stands apart from what is behind it.
    """
    pieces = _brief_pieces(texts, places)
    if sum(text >= 0 for text, _, _ in pieces) > 1:
        yield SeamWindow(pieces)


def brief_tail(texts: Sequence[str], places: Sequence[int], before: str) -> str:
    """Return what of the short texts of a turn, and of those before it, may go on in the next."""
    return (before + "".join(piece for _, _, piece in _brief_pieces(texts, places)))[-BRIEF:]


def _brief_pieces(texts: Sequence[str], places: Sequence[int]) -> list[tuple[int, int, str]]:
    short = [(place, _PIECE.search(texts[place])) for place in places if len(texts[place]) <= BRIEF]
    many = sum(piece is not None for _, piece in short)
    if not 0 < many <= _BRIEF_MOST or len(short) > 2 * _BRIEF_MOST:
        return []
    mark = (_MARK, 0, " ")
    pieces = [mark]
    for place, piece in short:
        text = texts[place]
        if piece is None:
            pieces += (mark, (place, 0, text), mark) if is_named(f"{text} ") else ()
        elif piece.start() and is_named(text[: piece.start()]):
            pieces += (mark, (place, 0, text[: piece.end()]))
        else:
            pieces.append((place, piece.start(), piece[0]))
    return [*pieces, mark]


class SplitFind(tuple[TextFind, ...]):
    """The parts of one find that stands in several texts."""

    __slots__ = ()


class SeamFinds:
    """Collects finds that only texts together tell, and those inside of one that a larger takes in.

    `known`: finds inside of one text, in the order of texts and of their places there, where a
    window may have more of it.
    """

    def __init__(self, known: Sequence[TextFind]) -> None:
        self.absorbed: set[TextFind] = set()
        self._known = known
        self._found: dict[tuple[int, int], SplitFind] = {}
        self._ends: set[tuple[str, int, int]] = set()  # by value: another order may tell it, too

    @property
    def splits(self) -> list[SplitFind]:
        return list(self._found.values())

    def add(self, window: SeamWindow, find: TextFind) -> None:
        """Add what was found in a window, unless another has more of it or it is nothing new."""
        if window.is_cut(find.start, find.end):
            return
        parts = window.parts_of(find.start, find.end)
        if len(parts) < 2 and (find.start == 0 or find.end == len(window.text)):
            return  # a part of something longer
        within = {
            other
            for text, begin, end in parts
            for other in _around(self._known, text, begin, end)
            if begin < other.end and other.start < end
        }
        size = sum(end - begin for _, begin, end in parts)
        if len(parts) < 2 and within:
            return
        if any(
            is_surer(other, find) or (other.end - other.start >= size and not is_surer(find, other))
            for other in within
        ):
            return
        end = find.value, parts[-1][0], parts[-1][2]
        if end in self._ends:
            return
        self._ends.add(end)
        self.absorbed |= within
        split = SplitFind(TextFind(find.kind, *part, find.value) for part in parts)
        self._found.setdefault((parts[0][0], parts[0][1]), split)


async def find_across(
    texts: Sequence[str],
    orders: Sequence[Sequence[int]],
    scan: Callable[[Sequence[str]], Awaitable[ScanResult]],
    known: Sequence[TextFind],
    named: Sequence[tuple[int, int]] = (),
    brief: Sequence[int] = (),
) -> tuple[list[SplitFind], set[TextFind]]:
    """Return what only texts together tell, of each order in which they may be put together.

    `known`: finds inside of one text, of which the second are those that a larger one takes in.
    `named`: names and the values under them. `brief`: texts of which the short ones may be pieces.
    """
    finds, turns = SeamFinds(known), TurnTaker()
    windows = chain(
        *(seam_windows(texts, places) for places in orders if len(places) > 1),
        named_windows(texts, named),
        brief_windows(texts, brief),
    )
    for group in _in_groups(windows):
        scanned = await scan([window.text for window in group])
        await turns.rest()
        for number, find in enumerate(scanned.finds, 1):
            finds.add(group[find.text], find)
            if number % _AT_ONCE == 0:
                await turns.rest()
    return finds.splits, finds.absorbed


def _in_groups(windows: Iterable[SeamWindow]) -> Iterator[list[SeamWindow]]:
    """Yield as many windows as are scanned at once."""
    group: list[SeamWindow] = []
    size = 0
    for window in windows:
        if group and size + len(window.text) > WINDOW:
            yield group
            group, size = [], 0
        group.append(window)
        size += len(window.text)
    if group:
        yield group


def _around(finds: Sequence[TextFind], text: int, begin: int, end: int) -> Sequence[TextFind]:
    """Return those of a text's finds that may reach into a stretch of it."""
    first = bisect_left(finds, (text, begin - 2 * CARRIED), key=_place_of)
    return finds[first : bisect_left(finds, (text, end), lo=first, key=_place_of)]


def _place_of(find: TextFind) -> tuple[int, int]:
    return find.text, find.start
