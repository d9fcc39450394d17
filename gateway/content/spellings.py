"""Numbers and letters in other words: codes of letters, letters like digits, text backwards.

Each entry of the table has a pattern that tells what stands for what; the rest of the text stays,
so that a find is masked where it was written. Signs for the engine are literals of two words or
codes: a class or a choice of short words costs as much as all other signs.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

_CODE: Final = "(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])"  # of a letter in ASCII
_TWO: Final = "[2-7][0-9A-Fa-f]"
_APART: Final = r"(?:,\s{0,2}| )"
_CHR: Final = r"(?:chr|char|CHR|CHAR|Chr|Char|fromCharCode)\(\s?"
_CALL: Final = re.compile("[A-Za-z]+")


def _read_codes(base: int) -> Callable[[str], str]:
    """Return a reader of codes of letters in a base."""
    code = re.compile(r"(?:0x|U\+)?([0-9A-Fa-f]{2,8})")

    def read(written: str) -> str:
        codes = code.findall(_CALL.sub("", written) if base == 10 else written)
        return "".join(chr(int(letter, base)) for letter in codes)

    return read


def _read_bytes(written: str) -> str:
    return bytes.fromhex(written).decode("latin-1")


def _read_groups(written: str) -> str:
    """Return groups that are base64 each, or what is written where one is no text."""
    try:
        return " ".join(
            base64.b64decode(group, validate=True).decode("ascii")
            for group in _GROUP_MARKS.split(written)
        )
    except (binascii.Error, UnicodeDecodeError):
        return written


def _joined_letters(written: str) -> str:
    mark = " " if " " in written else "-"
    return "".join(_MARKS_SAID.get(letter, letter) for letter in written.split(mark))


_GROUP_MARKS: Final = re.compile(r"[ ,;\"'\r\n\t]+")
# Letters of a word one by one, and the names of the marks between them.
_MARKS_SAID: Final = {
    "dot": ".", "punkt": ".", "point": ".", "punto": ".", "at": "@", "arroba": "@", "dash": "-",
    "hyphen": "-", "minus": "-", "underscore": "_",
}  # fmt: skip
_LETTER: Final = rf"(?:{'|'.join(_MARKS_SAID)}|[\w@.+-])"
_LETTERS_APART: Final = re.compile(
    rf"(?<![^\s(\"'])(?:{_LETTER}(?: {_LETTER}){{11,}}|{_LETTER}(?:-{_LETTER}){{11,}})"
    r"(?![^\s)\"',.;])"
)
_QUOTED: Final = re.compile(r"[\"']([^\"'\s])[\"']")
_LISTED: Final = re.compile(r"([\"'])[^\"'\s]\1(?:,\s?\1[^\"'\s]\1){11,}")


# What stands for what.
_READINGS: Final[tuple[tuple[re.Pattern[str], Callable[[str], str]], ...]] = (
    (_LETTERS_APART, _joined_letters),
    (_LISTED, lambda written: "".join(_QUOTED.findall(written))),
    (re.compile(rf"(?<![0-9A-Za-z]){_TWO}(?:[ :-]{_TWO}){{5,}}(?![0-9A-Za-z])"), _read_codes(16)),
    (
        re.compile(rf"(?<![0-9A-Za-z])(?:{_TWO}{_TWO} ){{3,}}(?:{_TWO}){{1,2}}(?![0-9A-Za-z])"),
        _read_bytes,
    ),
    (re.compile(rf"0x{_TWO}(?:{_APART}0x{_TWO}){{5,}}(?![0-9A-Za-z])"), _read_codes(16)),
    (re.compile(rf"U\+00{_TWO}(?:{_APART}U\+00{_TWO}){{5,}}"), _read_codes(16)),
    (re.compile(rf"(?<![\d.]){_CODE}(?:{_APART}{_CODE}){{5,}}(?![\d.])"), _read_codes(10)),
    (re.compile(r"(?<!\d)0?[01][0-7]{2}(?:[ ,\\]{1,2}0?[01][0-7]{2}){5,}(?!\d)"), _read_codes(8)),
    (
        re.compile(
            r"[A-Za-z0-9+/]{2,22}={1,2}(?:[ ,;\"'\r\n\t]{1,4}(?:[A-Za-z0-9+/]{4}){1,6}|"
            r"[ ,;\"'\r\n\t]{1,4}[A-Za-z0-9+/]{2,22}={1,2}){1,12}(?![A-Za-z0-9+/=])"
        ),
        _read_groups,
    ),
    (
        re.compile(rf"{_CHR}{_CODE}\s?\)(?:\s?[+.,&|]{{0,2}}\s?{_CHR}{_CODE}\s?\)){{5,}}"),
        _read_codes(10),
    ),
    (re.compile(r"(?<!\d)0[01]{7}(?:[ ,]{1,2}0[01]{7}){5,}(?!\d)"), _read_codes(2)),
)  # fmt: skip
# Letters that look like digits, among digits; an account number begins with its country.
_ALIKE: Final = re.compile(
    r"(?<![0-9A-Za-z])((?:[A-Z]{2}(?=[0-9OolISB]{2}))?)([0-9OolISBZ](?:[ -]?[0-9OolISBZ]){8,33})"
    r"(?![0-9A-Za-z])"
)
_DRAWN: Final = str.maketrans("OolISBZ", "0011582")
_DIGITS_LEAST: Final = 0.5  # of what is read as digits
# Backwards is read what a word, a call or a mark of direction calls so.
_BACKWARDS: Final = re.compile(
    r"revers|backward|r\u00fcckw\u00e4rts|al rev\u00e9s|l['\u2019]envers|strrev|\[::-1\]|\u202e",
    re.IGNORECASE,
)
_PART: Final = r"[^\s\"'`(),\[\]]"
_TURNED: Final = re.compile(rf"(?={_PART}*[\d@]){_PART}++(?: (?={_PART}*\d){_PART}++)*+")
_MAY_BE_NUMBER: Final = re.compile("[0-9]" + "[ .-]?[0-9]" * 6)  # a group takes longer
_MAY_BE_KEY: Final = re.compile("[0-9A-Za-z_-]{20}")
_KEY_LEAST: Final = 20
_TURNED_LEAST: Final = 8


_CODE_OF_DIGIT: Final = "(?:4[89]|5[0-7])"
# How keys begin, and the sign of an address, where each letter stands apart or is its code.
_BEGINS: Final = (
    "AKIA", "ghp_", "gith", "glpa", "sk-a", "sk-p", "sk_l", "sk_t", "xoxb", "xoxp", "AIza", "hf_",
    "npm_",
)  # fmt: skip
_SEPARATE: Final = (" ", "', '", '", "')
_APART_SIGNS: Final = (
    *(mark.join(begin) for begin in _BEGINS for mark in _SEPARATE),
    *(mark.join(str(ord(letter)) for letter in begin) for begin in _BEGINS for mark in (", ", ",")),
    "(?i) @ [a-z] [a-z] ",
    "(?i) (?:at|dot) [a-z0-9] [a-z0-9] ",
    "(?i)-(?:at|dot)-[a-z0-9]-",
    "(?i) (?:dash|underscore) [a-z0-9] ",
    *(rf"{mark}64{mark}(?:9[7-9]|1[01][0-9]){mark}" for mark in (", ", ",", " ")),
)
CODE_SIGNS: Final = (
    *_APART_SIGNS,
    "3[0-9] 3[0-9] 3[0-9] 3[0-9]",
    "3[0-9]3[0-9] 3[0-9]3[0-9] 3[0-9]",
    *(mark.join(["0x[2-7][0-9A-Fa-f]"] * 2) for mark in (" ", ", ", ",")),
    *(mark.join([_CODE_OF_DIGIT] * 4) for mark in (" ", ", ", ",")),
    r"(?i)(?:chr|char)\([0-9]{2,3}\)",
    r"U\+00[2-7][0-9A-F] U\+00",
    "0011[01]{4} 0011[01]{4}",
    ":".join(["3[0-9]"] * 4),
    *(mark.join(["06[0-7]"] * 3) for mark in (" ", ", ")),
    "==[ ,;\"'\n]{1,3}[MNOQRSTU]",
)
BACKWARDS_SIGNS: Final = (
    r"(?i)(?:revers(?:ed|e)[^(=a-z_]|backwards|r\xc3\xbcckw\xc3\xa4rts|al rev\xc3\xa9s|l'envers)",
    r"\.reverse\(\)",
    r"strrev\(",
    r"[\"']\[::-1\]",
    r"\xe2\x80\xae",
)
# Code writes octal numbers as "0o60".
ALIKE_SIGNS: Final = (
    "[1-9][OolI][0-9][0-9]",
    "0[OlI][0-9][0-9]",
    "[0-9]0o[0-9][0-9]",
    "[0-9][0-9][OolI][0-9]",
    "[0-9][SZ][0-9][0-9]",
    "[0-9][0-9][SZ][0-9]",
    "[0-9][SBZ][0-9] [0-9OolISBZ]{3}",
    "[0-9][0-9][OlI][ -][0-9]",
    "[0-9][0-9][OlI][^0-9A-Za-z]",
)


def read_codes(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield letters that are written as codes or stand apart, and what they are, in order."""
    found = [
        (*match.span(), read(match[0]))
        for pattern, read in _READINGS
        for match in pattern.finditer(text)
    ]
    done = 0
    for begin, end, plain in sorted(found, key=_most_digits):
        if begin >= done:
            yield begin, end, plain
            done = end


def read_backwards(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what may be numbers, addresses and keys backwards; what calls them so is read once."""
    if not _may_hold_one(text):
        return
    found = [(*match.span(), " ") for match in _BACKWARDS.finditer(text)]
    found += [
        (*match.span(), match[0].strip("\u202e\u202c")[::-1])
        for match in _TURNED.finditer(text)
        if match.end() - match.start() >= _TURNED_LEAST
    ]
    done = 0
    for begin, end, plain in sorted(found, key=_widest):
        if begin >= done:
            yield begin, end, plain
            done = end


def _may_hold_one(text: str) -> bool:
    """Return whether a number, an address or a key may be in a text; words tell most at once."""
    return (
        "@" in text
        or (max(map(len, text.split()), default=0) >= _KEY_LEAST and bool(_MAY_BE_KEY.search(text)))
        or _MAY_BE_NUMBER.search(text) is not None
    )


def _most_digits(found: tuple[int, int, str]) -> tuple[int, int]:
    return found[0], -sum(map(str.isdigit, found[2]))


def _widest(found: tuple[int, int, str]) -> tuple[int, int]:
    return found[0], -found[1]


def read_alike(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield digits with letters among them that look like digits, as digits alone."""
    for match in _ALIKE.finditer(text):
        if _is_mostly_digits(match[2]):
            yield *match.span(), match[1] + match[2].translate(_DRAWN)


def _is_mostly_digits(written: str) -> bool:
    digits = sum(map(str.isdigit, written))
    return _DIGITS_LEAST * sum(map(str.isalnum, written)) <= digits < sum(map(str.isalnum, written))
