"""Registry of readers of spellings that are not plain text, each with its signs."""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from gateway.content.encodings import ESCAPE_SIGNS, escapes_in
from gateway.content.labels import LABEL_SIGNS, without_labels
from gateway.content.named_numbers import NAMED_SIGNS, read_named
from gateway.content.number_words import (
    NUMBER_WORD_SIGNS,
    NUMERAL_SIGNS,
    read_numerals,
    read_words,
)
from gateway.content.spellings import (
    ALIKE_SIGNS,
    BACKWARDS_SIGNS,
    CODE_SIGNS,
    read_alike,
    read_backwards,
    read_codes,
)

WIDE: Final = "wide"


class TextReader(NamedTuple):
    """A reader of another spelling, with the signs of where it is worth a try.

    `read` yields stretches in rising order with their meaning. `reach` is in characters around a
    sign. `engine`: of which signs are found together; those of "wide" stand beyond ASCII.
    `is_named`: it is tried, too, where signs of detectors are that are words.
    """

    signs: tuple[str, ...]
    read: Callable[[str], Iterator[tuple[int, int, str]]]
    reach: int = 220
    engine: str = "led"
    is_named: bool = False


READINGS: Final = (
    TextReader(ESCAPE_SIGNS, escapes_in),
    TextReader(NUMBER_WORD_SIGNS, read_words),
    TextReader(NUMERAL_SIGNS, read_numerals, engine=WIDE),
    TextReader(CODE_SIGNS, read_codes),
    TextReader(LABEL_SIGNS, without_labels, is_named=True),
    TextReader(NAMED_SIGNS, read_named, is_named=True),
    TextReader(BACKWARDS_SIGNS, read_backwards, 120),
    TextReader(ALIKE_SIGNS, read_alike, 60, is_named=True),
)
