"""Scans texts in one pass of a linear-time engine, and makes sure of what it points at.

Hyperscan (Vectorscan) tells where a sign ends. The Python patterns that make sure look at a bounded
stretch around it alone, so the whole takes time in proportion to the text, whatever the text is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

from gateway.config.content_patterns import compile_patterns, compile_signs
from gateway.content.detectors import DETECTORS, Detector
from gateway.content.encodings import (
    ENCODED_SIGNS,
    is_file,
    plain_until,
    read_run,
    reread,
    run_around,
)
from gateway.content.folding import NUL, FoldedText
from gateway.content.numbers import is_named
from gateway.content.readings import TextReader
from gateway.content.secret_formats import is_bare_secret
from gateway.content.sign_index import FoldingIndex, SignIndex, reading_of
from gateway.content.stretches import stretches

DEPTH: Final = 3  # of encodings inside of each other
DERIVED_BYTES: Final = 256 * 1024  # that are read out of encodings, of one request
_JOINT: Final = "\x1e"  # it stands before the first text too: a number begins where a text does
_END: Final = "\x1f"  # where a text ends, a number in it ends
_CONTINUED: Final = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character
_INSIDE: Final = frozenset(bytes((byte,)) for byte in _CONTINUED)
_NUL: Final = NUL.encode()
_FOLDED_REACH: Final = 80  # characters around one that may hide something
_NAMED_BEFORE: Final = 48  # characters before a run in which a word may name what it says
_TOLD_MOST: Final = 12  # places in one run before the engine is stopped
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


class SourceTexts:
    """Texts as the engines read them, in one piece of UTF-8, and where each place of it is."""

    __slots__ = ("_starts", "data", "is_ascii", "joined", "texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.joined = f"{_JOINT}{_JOINT.join(texts)}{_END}"
        self.is_ascii = self.joined.isascii()
        self.data = self.joined.encode("utf-8", "replace")
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=1))[:-1]

    def by_text(self, ends: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield each text that signs end in, by ends in the bytes, and where they do there."""
        text, inside = -1, list[int]()
        for place in self._characters(ends):
            owner = max(0, bisect_right(self._starts, place - 1) - 1)
            if owner != text:
                if inside:
                    yield text, inside
                text, inside = owner, []
            inside.append(place - self._starts[owner])
        if inside:
            yield text, inside

    def place(self, begin: int, end: int) -> tuple[int, int, int]:
        """Return the text that a stretch of characters begins in, and begin and end there."""
        text = max(0, bisect_right(self._starts, begin) - 1)
        return text, begin - self._starts[text], end - self._starts[text]

    def characters_of(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return stretches of bytes, by where they begin, as stretches of characters."""
        if self.is_ascii:
            return list(spans)
        begins = self._characters([begin for begin, _ in spans])
        return [
            (start, start + len(self.data[begin:end].decode("utf-8", "ignore")))
            for start, (begin, end) in zip(begins, spans, strict=True)
        ]

    def _characters(self, places: Sequence[int]) -> Sequence[int]:
        """Return places in the bytes, which rise, as places in the characters.

        One inside of a character, where signs of single bytes may end, is before it.
        """
        if self.is_ascii:
            return places
        data, found, at, character = self.data, [], 0, 0
        for place in places:
            character += len(data[at:place].translate(None, _CONTINUED))
            found.append(character - (data[place : place + 1] in _INSIDE))
            at = place
        return found


class TextScanner:
    """Finds kinds of content and an operator's own patterns. Raises `PatternError`."""

    def __init__(self, kinds: Iterable[str], patterns: Sequence[tuple[str, str]] = ()) -> None:
        import hyperscan  # noqa: PLC0415  (3 MB that only installations with detectors need)

        self._stopped: type[Exception] = hyperscan.ScanTerminated
        wanted = frozenset(kinds)
        self._kinds = wanted
        self._detectors = [entry for entry in DETECTORS if entry.kinds & wanted]
        self._signs = SignIndex(self._detectors)
        self._folding = FoldingIndex()
        self._encoded = compile_signs(ENCODED_SIGNS)
        self._names = [name for name, _ in patterns]
        self._patterns = (
            compile_patterns([pattern for _, pattern in patterns]) if patterns else None
        )

    @property
    def has_patterns(self) -> bool:
        """Return whether an operator's own patterns are searched for."""
        return self._patterns is not None

    def scan(self, texts: Sequence[str]) -> ScanResult:
        """Return what the texts hold, each find once."""
        return self._scan(texts, 0, [DERIVED_BYTES])

    def _scan(self, texts: Sequence[str], depth: int, room: list[int]) -> ScanResult:
        source = SourceTexts(texts)
        folded: Mapping[int, FoldedText] = {}
        has_forms = not source.is_ascii or _NUL in source.data
        if has_forms and (places := self._folding.find(source.data)):
            folded = {
                text: FoldedText(texts[text], stretches(inside, _FOLDED_REACH, _FOLDED_REACH))
                for text, inside in source.by_text(places)
            }
            source = SourceTexts([
                folded[place].text if place in folded else text for place, text in enumerate(texts)
            ])  # fmt: skip
        finds, unread = self._scan_plain(source, depth, room)
        if self._patterns is not None:
            finds += self._match_patterns(source)
        return ScanResult(_unfolded(_without_overlaps(finds), folded), unread)

    def _scan_plain(
        self, source: SourceTexts, depth: int, room: list[int]
    ) -> tuple[list[TextFind], int]:
        finds: list[TextFind] = []
        unread = 0
        for owner, places in self._signs.find(source.data).items():
            if owner >= 0:
                finds += self._find(self._detectors[owner], places, source)
            else:
                more = self._read_otherwise(reading_of(owner), places, source, depth, room)
                finds, unread = finds + more.finds, unread + more.unread
        if runs := self._runs(source.data):
            more = self._read_runs(source.characters_of(runs), source, depth, room)
            finds, unread = finds + more.finds, unread + more.unread
        return finds, unread

    def _runs(self, data: bytes) -> list[tuple[int, int]]:
        """Return where runs of base64 and the like stand.

        The engine tells each place in a run; in a long one it is stopped, and goes on behind it.
        """
        found: list[tuple[int, int]] = []
        begun = until = told = 0
        letters = ""

        def on_match(_sign: int, _start: int, end: int, _flags: int, _context: Any) -> bool:
            nonlocal until, told, letters
            if begun + end <= until:
                told += 1
                return told > _TOLD_MOST
            letters = letters or data.decode("latin-1")
            if (plain := plain_until(letters, begun + end)) >= begun + end:
                until, told = plain, 0
                return False
            run = run_around(letters, begun + end)
            found.append(run)
            until, told = run[1], 0
            return until - begun - end > _TOLD_MOST

        while begun < len(data):
            part = data[begun:] if begun else data
            try:
                self._encoded.scan(part, match_event_handler=on_match)
                break
            except self._stopped:
                begun, told = until, 0
        return found

    def _find(self, entry: Detector, places: list[int], source: SourceTexts) -> list[TextFind]:
        return [
            TextFind(span.kind, text, span.start, span.end, span.value)
            for text, inside in source.by_text(places)
            for span in entry.find(source.texts[text], inside)
            if span.kind in self._kinds
        ]

    def _read_otherwise(
        self, entry: TextReader, places: list[int], source: SourceTexts, depth: int, room: list[int]
    ) -> ScanResult:
        """Read stretches with escapes and the like as what they stand for."""
        readings, owners = [], []
        for text, begin, end in (
            (text, *stretch)
            for text, inside in source.by_text(places)
            for stretch in stretches(inside, entry.reach, entry.reach)
        ):
            stretch = source.texts[text][begin:end]
            reading = reread(stretch, entry.read(stretch))
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
        self, runs: list[tuple[int, int]], source: SourceTexts, depth: int, room: list[int]
    ) -> ScanResult:
        """Read runs of base64 and hexadecimal; a find in one is the whole run."""
        texts, owners, unread = [], [], 0
        finds: list[TextFind] = []
        begins: list[int] = []
        joined = source.joined
        for begin, end in runs:
            run = joined[begin:end]
            place = source.place(begin, end)
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
                named = _name_before(joined, begin)
                texts.append(named + plain)
                owners.append(place)
                begins.append(len(named))
        if texts:
            inner = self._scan(texts, depth + 1, room)
            finds += [
                TextFind(find.kind, *owners[find.text], find.value)
                for find in inner.finds
                if find.end > begins[find.text]
            ]
            unread += inner.unread
        return ScanResult(finds, unread)

    def _match_patterns(self, source: SourceTexts) -> list[TextFind]:
        """Find an operator's own patterns; of matches that begin together the longest."""
        data = source.data[1:-1]
        longest: dict[tuple[int, int], int] = {}

        def on_match(sign: int, start: int, end: int, _flags: int, _context: Any) -> None:
            longest[sign, start] = max(end, longest.get((sign, start), 0))

        assert self._patterns is not None
        vectors: Any = [data]  # the stubs know one block alone
        self._patterns.scan(vectors, match_event_handler=on_match)
        matches = sorted(longest.items(), key=lambda match: match[0][1])
        spans = source.characters_of([(start + 1, end + 1) for (_, start), end in matches])
        finds = []
        for ((sign, _), _), (begin, end) in zip(matches, spans, strict=True):
            text, start, finish = source.place(begin, end)
            finish = min(finish, len(source.texts[text]))
            if finish > start:
                value = source.texts[text][start:finish]
                finds.append(TextFind(self._names[sign], text, start, finish, value))
        return finds


def _name_before(joined: str, begin: int) -> str:
    """Return the end of a text before a run, if a word there may name a number."""
    before = joined[max(0, begin - _NAMED_BEFORE) : begin].rpartition(_JOINT)[2]
    return before if is_named(before) else ""


def _without_overlaps(finds: list[TextFind]) -> list[TextFind]:
    """Return the finds without those that are a part of another; own patterns count first."""
    if len(finds) < 2:
        return finds
    taken: dict[int, list[tuple[int, int]]] = {}
    kept = []
    for find in sorted(finds, key=_rank):  # of two that begin together the longer
        spans = taken.setdefault(find.text, [])  # that rise and do not overlap
        place = bisect_left(spans, (find.end, 0))
        if place and find.start < spans[place - 1][1]:
            continue
        spans.insert(place, (find.start, find.end))
        kept.append(find)
    return sorted(kept, key=lambda each: (each.text, each.start))


def _rank(find: TextFind) -> tuple[int, int, int, int]:
    return _ORDER.get(find.kind, -1), find.text, find.start, -find.end


def _unfolded(finds: list[TextFind], folded: Mapping[int, FoldedText]) -> list[TextFind]:
    """Return the finds with their places in the texts as they were sent."""
    places = {text: folded[text].places() for text in {find.text for find in finds} & folded.keys()}
    return [
        find
        if find.text not in places
        else find._replace(
            start=places[find.text][find.start], end=places[find.text][find.end - 1] + 1
        )
        for find in finds
    ]
