"""Index of the places where signs end in a text: one pass of an engine for each sort."""

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from gateway.config.content_patterns import compile_signs
from gateway.content.detectors import Detector
from gateway.content.folding import BESIDE_SIGNS, MIXED_SIGNS, NUL, form_signs
from gateway.content.readings import READINGS, WIDE, TextReader

if TYPE_CHECKING:
    import hyperscan

_SORTS: Final = tuple(map(attrgetter, ("signs", "digit_signs", "word_signs")))
_NUL: Final = NUL.encode()
ESCAPED: Final = -1  # whose signs of escapes are, beside places of detectors; then other readings

_NAMED: Final = [ESCAPED - place for place, entry in enumerate(READINGS) if entry.is_named]


def reading_of(owner: int) -> TextReader:
    """Return the reading whose signs an owner below nought has."""
    return READINGS[ESCAPED - owner]


class SignIndex:
    """Tells signs of detectors and of escapes apart; one sort of signs is one engine."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        led, digits, words = (
            [(sign, place) for place, entry in enumerate(detectors) for sign in signs_of(entry)]
            for signs_of in _SORTS
        )
        self._naming = [place for place, entry in enumerate(detectors) if entry.has_words]
        engines = {"led": led, "digits": digits, "lines": words}
        for place, entry in enumerate(READINGS):
            engines.setdefault(entry.engine, []).extend(
                (sign, ESCAPED - place) for sign in entry.signs
            )
        self._engines = [
            (name, compile_signs([sign for sign, _ in signs]), [owner for _, owner in signs])
            for name, signs in engines.items()
            if signs
        ]

    def find(self, data: bytes) -> dict[int, list[int]]:
        """Return by owner where its signs end, in order."""
        found: dict[int, list[int]] = {}
        is_ascii = data.isascii()
        for name, engine, owners in self._engines:
            if is_ascii and name == WIDE:
                continue
            for sign, end in ends_in(engine, data):
                found.setdefault(owners[sign], []).append(end)
        for named in _NAMED:
            for place in self._naming:
                if place in found:
                    found.setdefault(named, []).extend(found[place])
        for places in found.values():
            places.sort()
        return found


class FoldingIndex:
    """Tells where characters stand that may hide something."""

    def __init__(self) -> None:
        self._forms = compile_signs(form_signs())
        self._beside = compile_signs(BESIDE_SIGNS)
        self._mixed = compile_signs(MIXED_SIGNS)

    def find(self, data: bytes) -> list[int]:
        """Return where they end in UTF-8, in order."""
        found = {end for _, end in ends_in(self._forms, data)}
        if _NUL in data:
            found.update(match.end() for match in re.finditer(_NUL, data))
        if is_any(self._beside, data):  # beyond ASCII, beside a Latin letter or a digit
            found.update(end for _, end in ends_in(self._mixed, data))
        return sorted(found)


def is_any(database: "hyperscan.Database", data: bytes) -> bool:
    """Return whether a sign is anywhere."""
    import hyperscan  # noqa: PLC0415  (3 MB that only installations with detectors need)

    try:
        database.scan(data, match_event_handler=_stop)
    except hyperscan.ScanTerminated:
        return True
    return False


def _stop(*_: object) -> bool:
    return True


def ends_in(database: "hyperscan.Database", data: bytes) -> list[tuple[int, int]]:
    """Return each sign and where it ends."""
    found: list[tuple[int, int]] = []
    add: Callable[[tuple[int, int]], None] = found.append

    def on_match(sign: int, _start: int, end: int, _flags: int, _context: Any) -> None:
        add((sign, end))

    database.scan(data, match_event_handler=on_match)
    return found
