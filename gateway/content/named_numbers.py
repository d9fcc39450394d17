"""Numbers behind a word that names them, whatever words and marks stand between their groups.

What is between groups is read as a blank, so that the detectors see the groups beside each other:
they still want the sizes, the lengths and the check digits of what they look for.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

NAMED_SIGNS: Final = tuple(
    rf"(?i){word}[^\x1e\x1f]{{1,40}}[0-9]"
    for word in (
        "card", "visa ", "visa:", "kreditkarte", "carte ", "tarjeta", "iban", "bank account",
        "account number", "konto", "compte ", "cuenta", "card number", "phone", "telefon",
        "handynummer", "mobile", r"num\xc3\xa9ro", r"n\xc3\xbamero",
    )
)  # fmt: skip
_TOKEN: Final = re.compile(r"(?<![0-9A-Za-z])\+?(?:[A-Z]{1,2})?\d[0-9A-Z]*(?![0-9A-Za-z])")
_WORD: Final = re.compile(r"(?<![0-9A-Za-z+/])[A-Za-z0-9+/]{12,24}={0,2}(?![0-9A-Za-z+/=])")
_PLAIN: Final = re.compile(r"\+?[0-9A-Z](?:[ .-]?[0-9A-Z]){7,}")
_GAP_MOST: Final = 28  # characters between two groups
_DIGITS_LEAST, _DIGITS_MOST = 9, 34
_GROUPS_LEAST: Final = 3
_GROUP_MOST: Final = 8
# What people put between the groups of a number, in any of the languages.
_FILLING_WORDS: Final = (
    "and then next after that followed by ends ending end in with continues finally last is the "
    "it goes on plus dash hyphen minus space blank point dot comma slash pause uh um so ok bar "
    "digits digit group groups part block first second third fourth fifth sixth und dann danach "
    "strich punkt leerzeichen endet auf mit erster zweiter dritter vierter f\xfcnfter gruppe "
    "teil et puis ensuite tiret espace finit par y luego despu\xe9s gui\xf3n guion espacio "
    "termina en primero segundo tercero e poi trattino spazio depois en dan streepje spatie"
)
_FILLING: Final = frozenset(_FILLING_WORDS.split())
_WORDS: Final = re.compile(r"[^\W\d_]+")
_LETTER: Final = re.compile(r"[A-Za-z\x80-\U0010ffff]")


def read_named(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what stands between groups of a named number as blanks, and short words in base64."""
    done = 0
    for reading in sorted((*_gaps(text), *_encoded(text))):
        if reading[0] >= done:
            yield reading
            done = reading[1]


def _gaps(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield gaps with words in them between groups that are near each other."""
    tokens: list[re.Match[str]] = []
    last = ""
    for token in _TOKEN.finditer(text):
        gap = text[tokens[-1].end() : token.start()] if tokens else ""
        if tokens and not (len(gap) <= _GAP_MOST and (_is_gap(gap) or last in ("", gap))):
            yield from _gaps_of(text, tokens)
            tokens, gap = [], ""
        if len(token[0]) <= _GROUP_MOST:
            tokens.append(token)
            last = gap
    yield from _gaps_of(text, tokens)


def _is_gap(between: str) -> bool:
    """Return whether all words between two groups are such as people put there."""
    return _FILLING.issuperset(map(str.lower, _WORDS.findall(between)))


def _gaps_of(text: str, tokens: list[re.Match[str]]) -> Iterator[tuple[int, int, str]]:
    """Yield gaps that are filled, or all alike, of as many groups and digits as a number has."""
    digits = sum(len(token[0]) for token in tokens)
    if len(tokens) < _GROUPS_LEAST or not _DIGITS_LEAST <= digits <= _DIGITS_MOST:
        return
    gaps = [(token.end(), after.start()) for token, after in pairwise(tokens)]
    written = [text[begin:end] for begin, end in gaps]
    if len(set(written)) > 1 and not all(map(_is_gap, written)):
        return
    for begin, end in gaps:
        if _LETTER.search(text, begin, end):
            yield begin, end, " "


def _encoded(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield words that are base64 of nothing but a number; longer ones are read without a name."""
    for word in _WORD.finditer(text):
        if len(word[0]) % 4 or word[0].isdigit() or word[0].isalpha():
            continue
        try:
            plain = base64.b64decode(word[0]).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if _PLAIN.fullmatch(plain):
            yield *word.span(), plain
