"""Numbers and letters in other words: digits that are spelled, codes of letters, text backwards.

Each entry of the table has a pattern that tells what stands for what; the rest of the text stays,
so that a find is masked where it was written. Signs for the engine are literals of two words or
codes: a class or a choice of short words costs as much as all other signs.
"""

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

# Of English, German, French, Spanish, Italian, Portuguese and Dutch.
_LANGUAGES: Final = (
    "zero one two three four five six seven eight nine",
    "null eins zwei drei vier f\u00fcnf sechs sieben acht neun",
    "z\u00e9ro un deux trois quatre cinq six sept huit neuf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "zero uno due tre quattro cinque sei sette otto nove",
    "zero um dois tr\u00eas quatro cinco seis sete oito nove",
    "nul een twee drie vier vijf zes zeven acht negen",
)
_OTHERS: Final = "oh:0 o:0 nought:0 ein:1 une:1 una:1 uma:1 zwo:2 duas:2 tree:3 fower:4 fuenf:5 fife:5 niner:9"
_DIGITS: Final[dict[str, str]] = {
    **{word: str(digit) for words in _LANGUAGES for digit, word in enumerate(words.split())},
    **dict(pair.split(":") for pair in _OTHERS.split()),
}
_TEENS: Final = {
    word: str(number)
    for number, word in enumerate(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(),
        10,
    )
}
_TENS: Final = {
    word: str(number)
    for number, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), 2
    )
}
_TIMES: Final = {"double": 2, "triple": 3, "plus": 0}
_WORD: Final = "|".join(sorted((*_DIGITS, *_TEENS, *_TENS), key=len, reverse=True))
_MARKS: Final = r"[\s!-/:-@\[-`{-~]"
_ONE: Final = r"(?<![A-Za-z0-9])[A-Za-z](?![A-Za-z0-9])"  # a letter of a number that stands apart
_TOKEN: Final = rf"(?>(?:(?:double|triple) )?(?:{_WORD})|\d++|{_ONE})"
_SPELLED: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:plus{_MARKS}{{1,4}})?{_TOKEN}(?:{_MARKS}{{0,8}}{_TOKEN})++(?![a-z])",
    re.IGNORECASE,
)
_SPOKEN: Final = re.compile(rf"double|triple|plus|{_WORD}|\d+|[a-z]", re.IGNORECASE)
_LEAST: Final = 5  # digits that are a number, and no figure of speech
_LEAST_WORDS: Final = 2

# Of Chinese, as they are said and as they stand on cheques.
_CHINESE: Final = (
    "\u3007\u96f6\u4e00\u5e7a\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d",
    "\u96f6\u58f9\u8d30\u53c1\u8086\u4f0d\u9646\u67d2\u634c\u7396",
    "\u96f6\u58f9\u8cb3\u53c3\u8086\u4f0d\u9678\u67d2\u634c\u7396",
)
_CHARACTERS: Final = {
    ord(sign): digit
    for signs, digits in zip(_CHINESE, ("001123456789", *["0123456789"] * 2), strict=True)
    for sign, digit in zip(signs, digits, strict=True)
}
_CHARACTER: Final = f"[{''.join(_CHINESE)}]"
_CODE: Final = "(?:3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])"  # of a letter in ASCII
_TWO: Final = "[2-7][0-9A-Fa-f]"
_APART: Final = r"(?:,\s{0,2}| )"
_CHR: Final = r"(?:chr|char|CHR|CHAR|Chr|Char|fromCharCode)\(\s?"
_CALL: Final = re.compile("[A-Za-z]+")


def _read_words(written: str) -> str:
    """Return the digits that words say; letters stay beside each other."""
    plain, times, tens = "", 1, ""
    for word in map(str.lower, _SPOKEN.findall(written)):
        if tens and word in _DIGITS:
            plain, tens = plain + tens + _DIGITS[word], ""
            continue
        plain, tens = plain + (tens and f"{tens}0"), ""
        if word in _TENS:
            tens = _TENS[word]
        elif word in _TIMES:
            times = _TIMES[word] or 1
            plain += "" if _TIMES[word] else "+"
        elif word in _DIGITS and (len(word) > 1 or plain[-1:].isdigit()):
            plain, times = plain + _DIGITS[word] * times, 1
        elif word in _TEENS or word.isdigit():
            plain, times = plain + _TEENS.get(word, word) * times, 1
        else:
            between = " " if plain[-1:].isdigit() else ""
            plain += between + word.upper()
            continue
        if plain[-2:-1].isalpha():
            plain = f"{plain[:-1]} {plain[-1]}"
    return plain + (tens and f"{tens}0")


def _is_number(written: str, plain: str) -> bool:
    """Return whether words and digits beside each other are one number, and no other codes."""
    words = sum(len(word) > 1 and word[0].isalpha() for word in _SPOKEN.findall(written))
    return words >= _LEAST_WORDS and sum(map(str.isdigit, plain)) >= _LEAST


def _read_codes(base: int) -> Callable[[str], str]:
    """Return a reader of codes of letters in a base."""
    code = re.compile(r"(?:0x|U\+)?([0-9A-Fa-f]{2,8})")

    def read(written: str) -> str:
        codes = code.findall(_CALL.sub("", written) if base == 10 else written)
        return "".join(chr(int(found, base)) for found in codes)

    return read


def _read_bytes(written: str) -> str:
    return bytes.fromhex(written).decode("latin-1")


_LETTERS_APART: Final = re.compile(r"(?<!\S)[\w@.+-](?: [\w@.+-]){11,}(?!\S)")
_QUOTED: Final = re.compile(r"[\"']([^\"'\s])[\"']")
_LISTED: Final = re.compile(r"([\"'])[^\"'\s]\1(?:,\s?\1[^\"'\s]\1){11,}")


# What stands for what.
_READINGS: Final[tuple[tuple[re.Pattern[str], Callable[[str], str]], ...]] = (
    (_LETTERS_APART, lambda written: written.replace(" ", "")),
    (_SPELLED, _read_words),
    (
        re.compile(rf"{_CHARACTER}(?:[ -]?{_CHARACTER}){{5,}}"),
        lambda written: re.sub("[ -]", "", written.translate(_CHARACTERS)),
    ),
    (re.compile(rf"(?<![0-9A-Za-z]){_TWO}(?:[ :-]{_TWO}){{5,}}(?![0-9A-Za-z])"), _read_codes(16)),
    (re.compile(rf"(?<![0-9A-Za-z])(?:{_TWO}){{2}}(?: (?:{_TWO}){{2}}){{2,}}(?: {_TWO})?(?![0-9A-Za-z])"), _read_bytes),
    (re.compile(rf"0x{_TWO}(?:{_APART}0x{_TWO}){{5,}}(?![0-9A-Za-z])"), _read_codes(16)),
    (re.compile(rf"U\+00{_TWO}(?:{_APART}U\+00{_TWO}){{5,}}"), _read_codes(16)),
    (re.compile(rf"(?<![\d.]){_CODE}(?:{_APART}{_CODE}){{5,}}(?![\d.])"), _read_codes(10)),
    (re.compile(rf"{_CHR}{_CODE}\s?\)(?:\s?[+.,&|]{{0,2}}\s?{_CHR}{_CODE}\s?\)){{5,}}"), _read_codes(10)),
    (re.compile(r"(?<!\d)0[01]{7}(?:[ ,]{1,2}0[01]{7}){5,}(?!\d)"), _read_codes(2)),
    (re.compile(r"(?<!\d)(?:0[4-7][0-7]|1[0-7][0-7])(?: (?:0[4-7][0-7]|1[0-7][0-7])){5,}(?!\d)"), _read_codes(8)),
)  # fmt: skip
# Letters that look like digits, among digits; an account number begins with its country.
_ALIKE: Final = re.compile(
    r"(?<![0-9A-Za-z])((?:[A-Z]{2}(?=[0-9OolI]{2}))?)([0-9OolISB](?:[ -]?[0-9OolISB]){8,33})(?![0-9A-Za-z])"
)
_DRAWN: Final = str.maketrans("OolISB", "001158")
_DIGITS_LEAST: Final = 0.6  # of what is read as digits
# Backwards is read what a word, a call or a mark of direction calls so.
_BACKWARDS: Final = re.compile(
    r"revers|backward|r\u00fcckw\u00e4rts|al rev\u00e9s|l['\u2019]envers|strrev|\[::-1\]|\u202e",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(r"[^\s\"'`(),\[\]]*[\d@][^\s\"'`(),\[\]]*(?: [^\s\"'`]*\d[^\s\"'`]*)*")
_TURNED_LEAST: Final = 8


def _pairs(words: str, marks: str, *, third: bool = True) -> str:
    """Return a sign of two words of a language, as literals, and of one more."""
    each = words.split()
    behind = f"(?:{marks}(?:{'|'.join(each)}))" if third else ""
    return f"(?i)(?:{'|'.join(first + marks + last for first, last in product(each, each))}){behind}"


def _in_bytes(sign: str) -> str:
    return "".join(
        letter if letter.isascii() else "".join(f"\\x{byte:02x}" for byte in letter.encode())
        for letter in sign
    )


_SPACED: Final = (" ", ", ", "-")
_ONES: Final = _LANGUAGES[0].split()[1:]
_CODE_OF_DIGIT: Final = "(?:4[89]|5[0-7])"
_ANY_WORD: Final = "|".join(_LANGUAGES[0].split())
# How keys begin, and the sign of an address, where each letter stands apart or is its code.
_BEGINS: Final = (
    "AKIA", "ghp_", "gith", "glpa", "sk-a", "sk-p", "sk_l", "sk_t", "xoxb", "xoxp", "AIza", "hf_", "npm_",
)  # fmt: skip
_SEPARATE: Final = (" ", "', '", '", "', '","')
_APART_SIGNS: Final = (
    *(mark.join(begin) for begin in _BEGINS for mark in _SEPARATE),
    *(
        mark.join(str(ord(letter)) for letter in begin)
        for begin in _BEGINS
        for mark in (", ", ",", " ")
    ),
    "(?i) @ [a-z] [a-z] ",
    *(rf"{mark}64{mark}(?:9[7-9]|1[01][0-9]){mark}" for mark in (", ", ",", " ")),
)
SPELLING_SIGNS: Final = (
    *_APART_SIGNS,
    *(_in_bytes(_pairs(words, mark)) for words in _LANGUAGES for mark in _SPACED[:1]),
    *(_in_bytes(_pairs(words, mark)) for words in _LANGUAGES[:4] for mark in _SPACED[1:]),
    f"(?i)[0-9] (?:{_ANY_WORD}) [0-9]",
    *(_pairs(_LANGUAGES[0], mark) for mark in ("\n", r'", "', r"\*\* \*\*", r"\n- ", r"\. ")),
    f"(?i) (?:oh|o) (?:{_ANY_WORD}) ",
    f"(?i)(?:double|triple) (?:{_ANY_WORD})",
    f"(?i)(?:{'|'.join(f'{ten}-{one}' for ten in _TENS for one in _ONES)}) (?:{'|'.join(_TENS)})",
    "[0-9][OolI][0-9]",
    "3[0-9] 3[0-9] 3[0-9] 3[0-9]",
    "3[0-9]:3[0-9]:3[0-9]:3[0-9]",
    "3[0-9]3[0-9] 3[0-9]3[0-9] 3[0-9]",
    *(mark.join(["0x[2-7][0-9A-Fa-f]"] * 2) for mark in (" ", ", ", ",")),
    *(mark.join([_CODE_OF_DIGIT] * 4) for mark in (" ", ", ", ",")),
    r"(?i)(?:chr|char)\([0-9]{2,3}\)",
    r"fromCharCode\(",
    r"U\+00[2-7][0-9A-F] U\+00",
    "0011[01]{4} 0011[01]{4}",
    "06[0-7] 06[0-7] 06[0-7]",
    r"(?i)(?:reverse|backwards|r\xc3\xbcckw\xc3\xa4rts|al rev\xc3\xa9s|l'envers|strrev)",
    r"\[::-1\]",
    r"\xe2\x80\xae",
)


def join_listed(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield lists of single characters in quotes, and what they are together."""
    for match in _LISTED.finditer(text):
        yield *match.span(), "".join(_QUOTED.findall(match[0]))


def respell(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield what stands otherwise in a text and what it says, in order."""
    found = [
        (*match.span(), plain)
        for pattern, read in _READINGS
        for match in pattern.finditer(text)
        if (plain := read(match[0])) != match[0]
        and (pattern is not _SPELLED or _is_number(match[0], plain))
    ]
    found += [
        (*match.span(), match[1] + match[2].translate(_DRAWN))
        for match in _ALIKE.finditer(text)
        if _is_mostly_digits(match[2])
    ]
    if turned := [(*match.span(), " ") for match in _BACKWARDS.finditer(text)]:
        found += turned  # what called it so is read once
        found += [
            (*match.span(), match[0].strip("\u202e\u202c")[::-1])
            for match in _TURNED.finditer(text)
            if match.end() - match.start() >= _TURNED_LEAST
        ]
    done = 0
    for begin, end, plain in sorted(found, key=_rank):
        if begin >= done:
            yield begin, end, plain
            done = end


def _is_mostly_digits(written: str) -> bool:
    digits = sum(map(str.isdigit, written))
    return _DIGITS_LEAST * sum(map(str.isalnum, written)) <= digits < sum(map(str.isalnum, written))


def _rank(found: tuple[int, int, str]) -> tuple[int, int]:
    """Return what goes first: of two readings the one that says more letters and digits."""
    begin, _, plain = found
    return begin, -sum(map(str.isalnum, plain))
