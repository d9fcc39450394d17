"""One spelling for characters that look alike: full-width forms, other digits, look-alike letters.

Characters without width vanish, all others stay one for one, so that places are told easily.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

# Letters of other scripts that are drawn as Latin ones, and the Latin ones.
_ALIKE: Final = (
    # Cyrillic
    ("\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0423\u0405\u0406\u0408\u0501\u051a\u051c\u0417",
     "ABEKMHOPCTXYSIJdQW3"),
    ("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u051b\u051d\u0475\u0433\u043a\u0442\u043c\u043d\u0432\u043f\u04cf\u0440\u0454",
     "aeopcyxsijhqwvrktmhbnlpe"),
    # Greek
    ("\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
     "ABEZHIKMNOPTYX"),
    ("\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u03c5\u03c7\u03f2\u03f3\u03c9\u03b3\u03b5",
     "aopviktuxcjwye"),
    # Armenian, Cherokee, and small capitals of phonetic script
    ("\u0585\u057d\u0578\u0570\u0581\u0566\u0584\u0561", "ounhgqfw"),
    ("\u13aa\u13ac\u13a2\u13b3\u13bb\u13d7\u13da\u13de\u13df\u13e2\u13d2\u13b7\u13aa",
     "AEIWHVSLCPRMA"),
    ("\u0251\u0261\u0131\u0269\u0280\u028f\u1d00\u0299\u1d04\u1d05\u1d07\u1d0a\u1d0b\u1d0d\u1d0f\u1d18\u1d1b\u1d1c\u1d20\u1d21\u1d22",
     "agiiRYABCDEJKMOPTUVWZ"),
    ("\u2113\u01c0\u2223\u0269\u212e\u1e9f\u0185\u018d\u1d26", "llliedbgr"),
)  # fmt: skip
_DASHES: Final = (
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\u02d7\u058a\ufe58\ufe63\uff0d\u30fc"
)
_DOTS: Final = "\u2022\u2219\u22c5\u25cf\u3002\uff0e\uff61\u2024\ufe52\u00b7\u2027\u30fb\u2026"
_BARS: Final = "\u2758\u2759\u23d0\u2502\u2503\u2016"
_ARROWS: Final = "\u2192\u279c\u27a1\u21d2\u2794\u25b6\u203a"
_CROSSES: Final = "\u2795\u271a"
_BLANKS: Final = (
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
    "\u3000\u2028\u2029\u0085"
)
_OPENING: Final = "\u3008\u300a\u300c\u300e\u3010\u3014"
_CLOSING: Final = "\u3009\u300b\u300d\u300f\u3011\u3015"
_MARKS: Final = {
    " ": _BLANKS, "[": _OPENING, "]": _CLOSING, "-": _DASHES, ".": _DOTS, "|": _BARS,
    ">": _ARROWS, "+": _CROSSES,
}  # fmt: skip
NUL: Final = "\0"  # every other character where UTF-16 was read as one byte each
_WIDTHLESS: Final = NUL + (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u200c\u200d\u200e\u200f"
    "\u202a\u202b\u202c\u202d\u2060\u2061\u2062\u2063\u2064\u2065\u2066\u2067\u2068\u2069\u206a\u206b"
    "\u206c\u206d\u206e\u206f\u2800\u3164\ufeff\uffa0\ufff9\ufffa\ufffb"
)
ASCII: Final = bytes(range(1, 128))  # all that stand for themselves
# In UTF-8: what stands beside a Latin letter or a digit. Text of one other script has few such,
# so the first tells at once that there is none; the second leaves out letters with accents and
# quotation marks, which fold to nothing else.
_WORD: Final = "[0-9A-Za-z@]"
_LEADS: Final = r"\xc2\xc6\xc9-\xe1\xea\xef-\xf3"
_DRAWN: Final = r"[\xe2\xe3][\x80-\x93\xa0][\x80-\x97\xa0-\xa5\xa7-\xbf]"
BESIDE_SIGNS: Final = (rf"{_WORD}[._-]?[\x80-\xff]", rf"[\x80-\xff][._-]?{_WORD}")
MIXED_SIGNS: Final = (
    rf"{_WORD}[._-]?(?:[{_LEADS}]|{_DRAWN})",
    rf"(?:[{_LEADS}][\x80-\xbf]{{1,3}}|{_DRAWN})[._-]?{_WORD}",
)
# Dashes, dots and arrows between groups, with blanks around them. A blank in front costs twice.
_APART: Final = (
    r"\xe2(?:\x80[\x93\x94\xa2\xa6]|\x8b\x85|\x97\x8f|\x86\x92|\x9d\x98|\x9e\x95) ?[0-9]"
)
# The same of pictures, of a dot of two bytes, and of a character without width between blanks.
_BETWEEN: Final = (
    r"(?:\xf0\x9f[\x80-\xbf][\x80-\xbf]|\xe2[\x96-\x9e][\x80-\xbf]|\xc2\xb7|\xe2\x80[\x8b-\x8f])"
    r"(?:\xef\xb8\x8f)? ?[0-9]"
)
_ALONE: Final = (_APART, _BETWEEN, r"\xe2\x83[\x90-\xbf]", r"\xe3\x85\xa4", r"\xc4\xb1")
_CHINESE_MARKS: Final = b"\xef"
# Pictures stand for any mark between groups.
_PICTURES: Final = (range(0x2500, 0x2776), range(0x27C0, 0x27E6), range(0x2B00, 0x2BD2),
                    range(0x1F000, 0x1F100), range(0x1F300, 0x1FB00))  # fmt: skip
# Digits in circles that Unicode calls no digits: after nought, ten of them, in four drawings.
_CIRCLED: Final = {
    0x24FF: "0",
    **{
        first + digit: str(digit + 1)
        for first in (0x2776, 0x2780, 0x278A, 0x24F5)
        for digit in range(9)
    },
}
_TAGS: Final = range(0xE0000, 0xE0080)  # letters that no font draws
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0), range(0x0300, 0x0370),
              range(0x20D0, 0x2100))  # fmt: skip


@cache
def folded_characters() -> dict[int, str | None]:
    """Return what stands for each character that has another spelling; None: it vanishes."""
    table: dict[int, str | None] = {}
    for code in (
        *range(0xA1, 0x3400),
        *range(0xA000, 0xAC00),
        *range(0xF900, 0x10000),
        *range(0x10400, 0x1FC00),
    ):
        letter = chr(code)
        if unicodedata.category(letter) == "Nd":
            table[code] = str(unicodedata.digit(letter))
            continue
        plain = unicodedata.normalize("NFKC", letter)
        if len(plain) == 1 and plain.isascii() and plain.isprintable():
            table[code] = plain
        elif len(plain) == 3 and plain[0] == "(" and plain[2] == ")":  # a letter in brackets
            table[code] = plain[1]
    for pictures in _PICTURES:
        table.update((code, "*") for code in pictures if table.get(code) is None)
    table.update(_CIRCLED)
    for others, letters in _ALIKE:
        table.update(zip(map(ord, others), letters, strict=True))
    for mark, letters in _MARKS.items():
        table.update(dict.fromkeys(map(ord, letters), mark))
    table.update(dict.fromkeys(map(ord, _WIDTHLESS)))
    for gone in (_TAGS, *_SELECTORS):
        table.update(dict.fromkeys(gone))
    return table


@cache
def form_signs() -> tuple[str, ...]:
    """Return signs in UTF-8 of letters and digits in other forms, which may stand alone."""
    alike = {ord(letter) for others, _ in _ALIKE for letter in others}
    marks = set(map(ord, "".join(_MARKS.values())))
    ends: dict[bytes, list[int]] = {}
    for code, plain in sorted(folded_characters().items()):
        is_form = plain is not None and (plain.isalnum() or plain == "@")
        if is_form and code not in alike and code not in marks and not 0xD800 <= code < 0xE000:
            encoded = chr(code).encode()
            ends.setdefault(encoded[:-1], []).append(encoded[-1])
    return (
        *(sign for begin, last in sorted(ends.items()) for sign in _signs_of(begin, bytes(last))),
        *_ALONE,
    )


def _signs_of(begin: bytes, last: bytes) -> Iterator[str]:
    """Yield signs of characters that begin alike: each whole where Chinese marks begin so too."""
    if begin[:1] == _CHINESE_MARKS:
        yield from (_escaped(begin + last[at : at + 1]) for at in range(len(last)))
    else:
        yield f"{_escaped(begin)}[{_escaped(last)}]"


def _escaped(data: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in data)


def fold(text: str) -> str:
    """Return the text in one spelling."""
    if text.isascii() and NUL not in text:
        return text
    others = text.encode("utf-8", "replace").translate(None, ASCII)
    table = folded_characters()
    for letter in set(others.decode()):  # a pass for each is faster than one with a table
        plain = table.get(ord(letter), letter)
        if plain != letter:
            text = text.replace(letter, plain or "")
    return text


def places_of(text: str) -> list[int]:
    """Return for each character of the folded text its place in the text, and the text's end."""
    table = folded_characters()
    places = [
        place for place, letter in enumerate(text) if table.get(ord(letter), letter) is not None
    ]
    return [*places, len(text)]


class FoldedText:
    """A text that is folded in some stretches alone, which rise and do not touch."""

    __slots__ = ("_source", "_stretches", "text")

    def __init__(self, source: str, stretches: Iterable[tuple[int, int]]) -> None:
        self._source = source
        self._stretches = tuple(stretches)
        parts, at = list[str](), 0
        for begin, end in self._stretches:
            parts += (source[at:begin], fold(source[begin:end]))
            at = end
        self.text = "".join((*parts, source[at:]))

    def places(self) -> Sequence[int]:
        """Return for each of its characters its place in the source, and the source's end."""
        if len(self.text) == len(self._source):
            return range(len(self._source) + 1)
        places, at = list[int](), 0
        for begin, end in self._stretches:
            places += range(at, begin)
            places += (begin + place for place in places_of(self._source[begin:end])[:-1])
            at = min(end, len(self._source))
        return [*places, *range(at, len(self._source) + 1)]
