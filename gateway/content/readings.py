"""The ways to read a stretch of text otherwise, each with the signs of where it is worth a look."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gateway.content.encodings import ESCAPE_SIGNS, escapes_in
from gateway.content.labels import LABEL_SIGNS, without_labels
from gateway.content.spellings import (
    ALIKE_SIGNS,
    BACKWARDS_SIGNS,
    CODE_SIGNS,
    WORD_SIGNS,
    read_alike,
    read_backwards,
    read_codes,
    read_words,
)


class Reading(NamedTuple):
    """`read` yields stretches, which rise, and what they say; `reach`: characters around a sign."""

    signs: tuple[str, ...]
    read: Callable[[str], Iterator[tuple[int, int, str]]]
    reach: int = 220


READINGS: Final = (
    Reading(ESCAPE_SIGNS, escapes_in),
    Reading(WORD_SIGNS, read_words),
    Reading(CODE_SIGNS, read_codes),
    Reading(LABEL_SIGNS, without_labels),
    Reading(BACKWARDS_SIGNS, read_backwards, 120),
    Reading(ALIKE_SIGNS, read_alike, 40),
)
