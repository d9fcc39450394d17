"""Scans texts in one pass of a linear-time engine, and makes sure of what it points at.

Hyperscan (Vectorscan) tells where a sign ends. The Python patterns that make sure look at a bounded
stretch around it alone, so the whole takes time in proportion to the text, whatever the text is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gateway.config.content_patterns import compile_patterns, compile_signs
from gateway.content.detectors import DETECTORS, Detector
from gateway.content.encodings import (
    ENCODED_SIGNS,
    ESCAPE_SIGNS,
    is_file,
    read_run,
    run_around,
    unescape,
)
from gateway.content.folding import (
    ASCII,
    FOLDING_SIGNS,
    fold,
    folded_characters,
    places_of,
)
from gateway.content.secret_formats import is_bare_secret
from gateway.content.stretches import stretches

if TYPE_CHECKING:
    import hyperscan

DEPTH: Final = 3  # of encodings inside of each other
DERIVED_BYTES: Final = 256 * 1024  # that are read out of encodings, of one request
_ESCAPED: Final = -1  # beside places of detectors
_JOINT: Final = "\x1e"
_END: Final = b"\x1f"  # where a text ends, a number in it ends
_ESCAPE_REACH: Final = 220
_FEW_BYTES: Final = 4096  # of characters beyond ASCII: fewer are told apart one by one
_TOLD_MOST: Final = 64  # places in one run before the engine is stopped
_ORDER: Final = {
    kind: place
    for place, kind in enumerate(
        ("secret", "iban", "card", "random_secret", "email", "ip", "national_id", "phone")
    )
}


class TextFind(NamedTuple):
    """A find in a text of those that were scanned: its place there, in that text's characters."""

    kind: str
    text: int
    start: int
    end: int
    value: str


def is_surer(find: TextFind, other: TextFind) -> bool:
    """Return whether a find's kind goes before another's where both are of the same text."""
    return _ORDER.get(find.kind, -1) < _ORDER.get(other.kind, -1)


class ScanResult(NamedTuple):
    """`unread`: runs that are no text to any reading, or were beyond the bounds."""

    finds: list[TextFind]
    unread: int


class TextScanner:
    """Finds kinds of content and an operator's own patterns. Raises `PatternError`."""

    def __init__(self, kinds: Iterable[str], patterns: Sequence[tuple[str, str]] = ()) -> None:
        import hyperscan  # noqa: PLC0415  (3 MB that only installations with detectors need)

        self._stopped: type[Exception] = hyperscan.ScanTerminated
        wanted = frozenset(kinds)
        self._kinds = wanted
        self._detectors = [entry for entry in DETECTORS if entry.kinds & wanted]
        signs: list[tuple[str, int]] = [
            (sign, place) for place, entry in enumerate(self._detectors) for sign in entry.signs
        ]
        signs += [(sign, _ESCAPED) for sign in ESCAPE_SIGNS]
        self._owners = [owner for _, owner in signs]
        self._signs = compile_signs([sign for sign, _ in signs])
        self._encoded = compile_signs(ENCODED_SIGNS)
        self._folding = compile_signs(FOLDING_SIGNS)
        self._names = [name for name, _ in patterns]
        self._patterns = (
            compile_patterns([pattern for _, pattern in patterns]) if patterns else None
        )

    def scan(self, texts: Sequence[str]) -> ScanResult:
        """Return what the texts hold, each find once."""
        return self._scan(texts, 0, [DERIVED_BYTES])

    def _scan(self, texts: Sequence[str], depth: int, room: list[int]) -> ScanResult:
        joined = _JOINT.join(texts)
        plain: Sequence[str] = texts
        folded: Collection[int] = ()
        if not joined.isascii():
            starts = _starts_of(texts)
            folded = self._texts_to_fold(joined, starts)
            if folded:
                plain = [
                    fold(text) if place in folded else text for place, text in enumerate(texts)
                ]
                joined = _JOINT.join(plain)
        finds, unread = self._scan_plain(joined, plain, depth, room)
        if self._patterns is not None:
            finds += self._match_patterns(joined, plain)
        return ScanResult(_unfolded(_without_overlaps(finds), texts, folded), unread)

    def _texts_to_fold(self, joined: str, starts: Sequence[int]) -> Collection[int]:
        """Return which texts have characters that may hide something."""
        data = joined.encode("utf-8", "replace")
        if len(others := data.translate(None, ASCII)) <= _FEW_BYTES:
            letters = set(map(ord, set(others.decode())))
            hides = not letters.isdisjoint(folded_characters())
            return range(len(starts)) if hides else ()
        ends = _ends(self._folding, data)
        if len(starts) == 1 or not ends:
            return range(bool(ends))
        found, at, place = set(), 0, 0
        for _, end in ends:  # bytes to characters, from sign to sign
            place += len(data[at:end].decode("utf-8", "ignore"))
            at = end
            found.add(bisect_right(starts, max(0, place - 2)) - 1)
            found.add(bisect_right(starts, place) - 1)
        return found

    def _scan_plain(
        self, joined: str, plain: Sequence[str], depth: int, room: list[int]
    ) -> tuple[list[TextFind], int]:
        data = joined.encode("latin-1", "replace") + _END
        ends = _ends(self._signs, data)
        runs = self._runs(data, joined)
        if not ends and not runs:
            return [], 0
        starts = _starts_of(plain)
        by_owner: dict[int, list[int]] = {}
        for sign, end in ends:
            by_owner.setdefault(self._owners[sign], []).append(end)
        finds: list[TextFind] = []
        unread = 0
        for owner, places in by_owner.items():
            if owner >= 0:
                finds += self._find(self._detectors[owner], places, plain, starts)
            else:
                more = self._read_escapes(places, plain, starts, depth, room)
                finds, unread = finds + more.finds, unread + more.unread
        if runs:
            more = self._read_runs(runs, joined, starts, depth, room)
            finds, unread = finds + more.finds, unread + more.unread
        return finds, unread

    def _runs(self, data: bytes, joined: str) -> list[tuple[int, int]]:
        """Return where runs of base64 and the like stand.

        The engine tells each place in a run; in a long one it is stopped, and goes on behind it.
        """
        found: list[tuple[int, int]] = []
        begun = until = told = 0

        def on_match(_sign: int, _start: int, end: int, _flags: int, _context: Any) -> bool:
            nonlocal until, told
            if begun + end <= until:
                told += 1
                return told > _TOLD_MOST
            run = run_around(joined, begun + end)
            found.append(run)
            until, told = run[1], 0
            return False

        while begun < len(data):
            part = data[begun:] if begun else data
            try:
                self._encoded.scan(part, match_event_handler=on_match)
                break
            except self._stopped:
                begun, told = until, 0
        return found

    def _find(
        self, entry: Detector, places: list[int], plain: Sequence[str], starts: Sequence[int]
    ) -> list[TextFind]:
        return [
            TextFind(span.kind, text, span.start, span.end, span.value)
            for text, inside in _by_text(places, starts)
            for span in entry.find(plain[text], inside)
            if span.kind in self._kinds
        ]

    def _read_escapes(
        self,
        places: list[int],
        plain: Sequence[str],
        starts: Sequence[int],
        depth: int,
        room: list[int],
    ) -> ScanResult:
        """Read stretches with escapes as what they stand for."""
        readings, owners = [], []
        for text, begin, end in (
            (text, *stretch)
            for text, inside in _by_text(places, starts)
            for stretch in stretches(inside, _ESCAPE_REACH, _ESCAPE_REACH)
        ):
            stretch = plain[text][begin:end]
            reading = unescape(stretch)
            if reading is None or reading.text == stretch:
                continue
            if depth >= DEPTH or room[0] < len(reading.text):
                return ScanResult([], 1)
            room[0] -= len(reading.text)
            readings.append(reading)
            owners.append((text, begin))
        if not readings:
            return ScanResult([], 0)
        inner = self._scan([reading.text for reading in readings], depth + 1, room)
        finds = []
        for find in inner.finds:
            reading, (text, begin) = readings[find.text], owners[find.text]
            start, end = reading.starts[find.start], reading.ends[find.end - 1]
            finds.append(TextFind(find.kind, text, begin + start, begin + end, find.value))
        return ScanResult(finds, inner.unread)

    def _read_runs(
        self,
        runs: list[tuple[int, int]],
        joined: str,
        starts: Sequence[int],
        depth: int,
        room: list[int],
    ) -> ScanResult:
        """Read runs of base64 and hexadecimal; a find in one is the whole run."""
        texts, owners, unread = [], [], 0
        finds: list[TextFind] = []
        for begin, end in runs:
            run = joined[begin:end]
            text = bisect_right(starts, begin) - 1
            place = text, begin - starts[text], end - starts[text]
            plain = read_run(run)
            if plain is None:
                if "random_secret" in self._kinds and is_bare_secret(
                    run, joined[max(0, begin - 12) : begin]
                ):
                    finds.append(TextFind("random_secret", *place, run))
                else:
                    unread += is_file(run)
            elif depth >= DEPTH or room[0] < len(plain):
                unread += 1
            else:
                room[0] -= len(plain)
                texts.append(plain)
                owners.append(place)
        if texts:
            inner = self._scan(texts, depth + 1, room)
            finds += [TextFind(find.kind, *owners[find.text], find.value) for find in inner.finds]
            unread += inner.unread
        return ScanResult(finds, unread)

    def _match_patterns(self, joined: str, plain: Sequence[str]) -> list[TextFind]:
        """Find an operator's own patterns; of matches that begin together the longest."""
        data = joined.encode("utf-8", "replace")
        longest: dict[tuple[int, int], int] = {}

        def on_match(sign: int, start: int, end: int, _flags: int, _context: Any) -> None:
            longest[sign, start] = max(end, longest.get((sign, start), 0))

        assert self._patterns is not None
        vectors: Any = [data]  # the stubs know one block alone
        self._patterns.scan(vectors, match_event_handler=on_match)
        starts, ascii_ = _starts_of(plain), len(data) == len(joined)
        finds = []
        for (sign, start), end in sorted(longest.items()):
            begin = start if ascii_ else len(data[:start].decode("utf-8", "ignore"))
            size = end - start if ascii_ else len(data[start:end].decode("utf-8", "ignore"))
            text = bisect_right(starts, begin) - 1
            at = begin - starts[text]
            finish = min(at + size, len(plain[text]))
            if finish > at:
                value = plain[text][at:finish]
                finds.append(TextFind(self._names[sign], text, at, finish, value))
        return finds


def _ends(database: "hyperscan.Database", data: bytes) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    add: Callable[[tuple[int, int]], None] = found.append

    def on_match(sign: int, _start: int, end: int, _flags: int, _context: Any) -> None:
        add((sign, end))

    database.scan(data, match_event_handler=on_match)
    return found


def _starts_of(texts: Sequence[str]) -> list[int]:
    starts, at = [], 0
    for text in texts:
        starts.append(at)
        at += len(text) + 1
    return starts


def _by_text(places: Sequence[int], starts: Sequence[int]) -> Iterable[tuple[int, list[int]]]:
    """Yield each text that signs end in, and where they do there."""
    text, inside = -1, list[int]()
    for place in places:
        owner = bisect_right(starts, place - 1) - 1
        if owner != text:
            if inside:
                yield text, inside
            text, inside = owner, []
        inside.append(place - starts[owner])
    if inside:
        yield text, inside


def _without_overlaps(finds: list[TextFind]) -> list[TextFind]:
    """Return the finds without those that are a part of another; own patterns count first."""
    if len(finds) < 2:
        return finds
    taken: dict[int, list[tuple[int, int]]] = {}
    kept = []
    for find in sorted(finds, key=lambda each: (_ORDER.get(each.kind, -1), each.text, each.start)):
        spans = taken.setdefault(find.text, [])  # that rise and do not overlap
        place = bisect_left(spans, (find.end, 0))
        if place and find.start < spans[place - 1][1]:
            continue
        spans.insert(place, (find.start, find.end))
        kept.append(find)
    return sorted(kept, key=lambda each: (each.text, each.start))


def _unfolded(
    finds: list[TextFind], texts: Sequence[str], folded: Collection[int]
) -> list[TextFind]:
    """Return the finds with their places in the texts as they were sent."""
    if not folded:
        return finds
    places = {
        text: places_of(texts[text]) for text in {find.text for find in finds} if text in folded
    }
    return [
        find
        if find.text not in places
        else find._replace(
            start=places[find.text][find.start], end=places[find.text][find.end - 1] + 1
        )
        for find in finds
    ]
