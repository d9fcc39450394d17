"""Numbers behind a word that names them, whatever words and marks stand between their groups.

What is between groups is read as a blank, so that the detectors see the groups beside each other:
they still want the sizes, the lengths and the check digits of what they look for.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

_NAMES: Final = (
    r"card|visa|mastercard|amex|kreditkarte|karte|carte|tarjeta|carta|cart\xe3o|kort|iban|account|"
    r"konto|compte|cuenta|conto|rekening|number|nummer|num[\xe9e]ro|n[\xfau]mero|phone|telefon|"
    r"mobile|handy|tel|ssn|nino|passport"
)
NAMED_SIGNS: Final = tuple(
    rf"(?i){word}[^\x1e\x1f]{{1,40}}[0-9]"
    for word in (
        "card", "visa ", "visa:", "kreditkarte", "carte ", "tarjeta", "iban", "bank account",
        "account number", "konto", "compte ", "cuenta", "card number", "phone", "telefon",
        "handynummer", "mobile", r"num\xc3\xa9ro", r"n\xc3\xbamero",
    )
)  # fmt: skip
_NAME: Final = re.compile(rf"(?<![a-z])(?:{_NAMES})(?![a-z])", re.IGNORECASE)
_TOKEN: Final = re.compile(r"(?<![0-9A-Za-z])\+?(?:[A-Z]{1,2})?\d[0-9A-Z]*(?![0-9A-Za-z])")
_WORD: Final = re.compile(r"(?<![0-9A-Za-z+/])[A-Za-z0-9+/]{12,24}={0,2}(?![0-9A-Za-z+/=])")
_PLAIN: Final = re.compile(r"\+?[0-9A-Z](?:[ .-]?[0-9A-Z]){7,}")
_REACH: Final = 200  # characters behind a name
_GAP_MOST: Final = 28  # characters between two groups
_DIGITS_LEAST, _DIGITS_MOST = 9, 34
_GROUPS_LEAST: Final = 3
_GROUP_MOST: Final = 8
_LETTER: Final = re.compile(r"[A-Za-z\x80-\U0010ffff]")


def read_named(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what stands between groups of a named number as blanks, and short words in base64."""
    done = 0
    for name in _NAME.finditer(text):
        begin = max(done, name.end())
        for found in sorted((*_gaps(text, begin), *_encoded(text, begin))):
            if found[0] >= done:
                yield found
                done = found[1]


def _gaps(text: str, begin: int) -> Iterator[tuple[int, int, str]]:
    """Yield gaps with words in them between the first groups behind a place."""
    tokens: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text, begin, begin + _REACH):
        if len(token[0]) > _GROUP_MOST or (
            tokens and token.start() - tokens[-1].end() > _GAP_MOST
        ):
            break
        tokens.append(token)
    digits = sum(len(token[0]) for token in tokens)
    if len(tokens) < _GROUPS_LEAST or not _DIGITS_LEAST <= digits <= _DIGITS_MOST:
        return
    for token, after in zip(tokens, tokens[1:], strict=False):
        if _LETTER.search(text, token.end(), after.start()):
            yield token.end(), after.start(), " "


def _encoded(text: str, begin: int) -> Iterator[tuple[int, int, str]]:
    """Yield words that are base64 of nothing but a number; longer ones are read without a name."""
    for word in _WORD.finditer(text, begin, begin + _REACH):
        if len(word[0]) % 4 or word[0].isdigit() or word[0].isalpha():
            continue
        try:
            plain = base64.b64decode(word[0]).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if _PLAIN.fullmatch(plain):
            yield *word.span(), plain
