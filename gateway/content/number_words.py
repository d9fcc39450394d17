"""Numbers in words: digits of a table of languages, one by one, joined, or among digits.

A sign is a long word of a language with one more behind it, whatever marks are between: a short
first word stands everywhere in prose.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

_ENGLISH: Final = "zero one two three four five six seven eight nine"
_RUSSIAN: Final = (
    "\u043d\u043e\u043b\u044c \u043e\u0434\u0438\u043d \u0434\u0432\u0430 \u0442\u0440\u0438 "
    "\u0447\u0435\u0442\u044b\u0440\u0435 \u043f\u044f\u0442\u044c \u0448\u0435\u0441\u0442\u044c "
    "\u0441\u0435\u043c\u044c \u0432\u043e\u0441\u0435\u043c\u044c "
    "\u0434\u0435\u0432\u044f\u0442\u044c"
)
_TEEN_WORDS: Final = (
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TEN_WORDS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_FILLER_WORDS: Final = (
    "and then dash hyphen minus space blank point dot comma slash uh und dann strich punkt "
    "et puis tiret luego guion espacio next"
)
# These are read among each other, too.
_MIXED: Final = (
    _ENGLISH,
    "null eins zwei drei vier f\u00fcnf sechs sieben acht neun",
    "z\u00e9ro un deux trois quatre cinq six sept huit neuf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "zero uno due tre quattro cinque sei sette otto nove",
    "zero um dois tr\u00eas quatro cinco seis sete oito nove",
    "nul een twee drie vier vijf zes zeven acht negen",
)
# A number in one of these has all of its words: many of them are words of English.
_ALONE: Final = (
    "zero jeden dwa trzy cztery pi\u0119\u0107 sze\u015b\u0107 siedem osiem dziewi\u0119\u0107",
    "zero jeden dwa trzy cztery piec szesc siedem osiem dziewiec",
    "noll ett tv\u00e5 tre fyra fem sex sju \u00e5tta nio",
    "nul en to tre fire fem seks syv otte ni",
    "null en to tre fire fem seks sju \u00e5tte ni",
    "nolla yksi kaksi kolme nelj\u00e4 viisi kuusi seitsem\u00e4n kahdeksan yhdeks\u00e4n",
    "nula jedna dva t\u0159i \u010dty\u0159i p\u011bt \u0161est sedm osm dev\u011bt",
    "s\u0131f\u0131r bir iki \u00fc\u00e7 d\u00f6rt be\u015f alt\u0131 yedi sekiz dokuz",
    "zero unu doi trei patru cinci \u0219ase \u0219apte opt nou\u0103",
    "nulla egy kett\u0151 h\u00e1rom n\u00e9gy \u00f6t hat h\u00e9t nyolc kilenc",
    "nol satu dua tiga empat lima enam tujuh delapan sembilan",
    _RUSSIAN,
    "shunya ek do teen chaar paanch chhah saat aath nau",
    "zero ichi ni san yon go roku nana hachi kyuu",
    "ling yi er san si wu liu qi ba jiu",
)
_OTHERS: Final = (
    "oh:0 o:0 nought:0 ein:1 une:1 una:1 uma:1 zwo:2 duas:2 tree:3 fower:4 fuenf:5 fife:5 ait:8 "
    "niner:9"
)


def _digits_of(words: str) -> dict[str, str]:
    return {word: str(digit) for digit, word in enumerate(words.split())}


_DIGITS: Final[dict[str, str]] = {
    **{word: digit for words in _MIXED for word, digit in _digits_of(words).items()},
    **dict(pair.split(":") for pair in _OTHERS.split()),
}
_LANGUAGES: Final[tuple[Mapping[str, str], ...]] = tuple(map(_digits_of, _ALONE))
_TEENS: Final = {word: str(number) for number, word in enumerate(_TEEN_WORDS.split(), 10)}
_TENS: Final = {word: str(number) for number, word in enumerate(_TEN_WORDS.split(), 2)}
_TIMES: Final = {
    "plus": 0, **dict.fromkeys(("double", "doble", "doppel", "dubbel", "doppio", "duplo"), 2),
    **dict.fromkeys(("triple", "treble", "tripel", "triplo"), 3),
}  # fmt: skip
_SAID: Final = frozenset((*_DIGITS, *_TEENS, *_TENS, *_TIMES))
_MAY_SAY: Final = _SAID.union(*_LANGUAGES)
# What speakers put between digits.
_FILLERS: Final = frozenset(_FILLER_WORDS.split())
_TOKEN: Final = re.compile(r"[^\W\d_]+|\d+")
_GAP_MOST: Final = 8  # marks between two words
_LEAST: Final = 5  # digits that are a number, and no figure of speech
_LEAST_WORDS: Final = 2
_JOINED_LEAST: Final = 12  # letters of words without marks between them
_JOINED: Final = tuple(
    re.compile(f"(?:(?i:{'|'.join(sorted(words.split(), key=len, reverse=True))})|[A-Z])++")
    for words in (*_MIXED, *_ALONE)
)
_NUMERALS: Final = (
    "\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d",
    "\u96f6\u58f9\u8d30\u53c1\u8086\u4f0d\u9646\u67d2\u634c\u7396",
    "\u96f6\u58f9\u8cb3\u53c3\u8086\u4f0d\u9678\u67d2\u634c\u7396",
    "\uacf5\uc77c\uc774\uc0bc\uc0ac\uc624\uc721\uce60\ud314\uad6c",
    "\uc601\uc77c\uc774\uc0bc\uc0ac\uc624\uc721\uce60\ud314\uad6c",
)
_DRAWN: Final = {
    **{ord(letter): str(digit) for row in _NUMERALS for digit, letter in enumerate(row)},
    ord("\u25cb"): "0",
}
_NUMERAL: Final = "".join(map(chr, _DRAWN))
_NUMERAL_RUN: Final = re.compile(
    rf"[{_NUMERAL}](?:[ \t\r\n,.\u3001\uff0c/|_+-]{{0,3}}[{_NUMERAL}A-Z0-9]){{5,}}"
)


def read_words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield numbers in words, and what they say; digits and single letters may stand between."""
    run: list[tuple[int, int, str]] = []
    behind = 0
    for token in _TOKEN.finditer(text):
        word = token[0].lower()
        if run and word in _FILLERS and token.start() - behind <= _GAP_MOST:
            behind = token.end()
            continue
        parts = _parts_of(token)
        if run and (not parts or token.start() - behind > _GAP_MOST):
            yield from _said_in(run)
            run = []
        if parts:
            run += parts
            behind = token.end()
    yield from _said_in(run)


def read_numerals(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield numbers in numerals of Chinese and Korean, digit by digit."""
    for match in _NUMERAL_RUN.finditer(text):
        yield *match.span(), match[0].translate(_DRAWN)


def _parts_of(token: re.Match[str]) -> list[tuple[int, int, str]]:
    """Return the words that a word is, in small letters, each with its place."""
    written = token[0]
    if len(written) == 1 or written.isdigit() or written.lower() in _MAY_SAY:
        return [(*token.span(), written.lower())]
    if len(written) < _JOINED_LEAST:
        return []
    for number, joined in enumerate(_JOINED):
        if joined.fullmatch(written) is None:
            continue
        parts = _SPLITS[number].findall(written)
        return [(*token.span(), part.lower()) for part in parts]
    return []


_SPLITS: Final = tuple(re.compile(joined.pattern[3:-3]) for joined in _JOINED)


def _said_in(run: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    """Yield words and digits beside each other where they are one number of one language."""
    words = [word for _, _, word in run]
    known = max(_LANGUAGES, key=lambda language: sum(map(language.__contains__, words)))
    if sum(map(known.__contains__, words)) <= sum(map(_DIGITS.__contains__, words)):
        known = {}
    first = 0
    for place, word in enumerate((*words, "")):
        if word and (len(word) == 1 or word.isdigit() or word in _SAID or word in known):
            continue
        yield from _one_number(run[first:place], known)
        first = place + 1


def _one_number(
    run: Sequence[tuple[int, int, str]], known: Mapping[str, str]
) -> Iterator[tuple[int, int, str]]:
    words = [known.get(word, word) for _, _, word in run]
    said = sum(len(word) > 1 and not word.isdigit() for _, _, word in run)
    if said < _LEAST_WORDS:
        return
    plain = _say(words)
    if sum(map(str.isdigit, plain)) >= _LEAST:
        yield run[0][0], run[-1][1], plain


def _say(words: Sequence[str]) -> str:
    """Return the digits that words say; letters stay beside each other."""
    plain, times, tens = "", 1, ""
    for word in words:
        if tens and word in _DIGITS:
            plain, tens = plain + tens + _DIGITS[word], ""
            continue
        plain, tens = plain + (tens and f"{tens}0"), ""
        if word in _TENS:
            tens = _TENS[word]
        elif word in _TIMES:
            times = _TIMES[word] or 1
            plain += "" if _TIMES[word] else "+"
        elif (
            (word in _DIGITS and (len(word) > 1 or plain[-1:].isdigit()))
            or len(word) > 1
            or word.isdigit()
        ):
            said = _DIGITS.get(word, _TEENS.get(word, word))
            between = " " if plain[-1:].isalpha() else ""
            plain, times = plain + between + said * times, 1
        else:
            plain += (" " if plain[-1:].isdigit() else "") + word.upper()
    return plain + (tens and f"{tens}0")


def _in_bytes(sign: str) -> str:
    return "".join(
        letter if letter.isascii() else "".join(f"\\x{byte:02x}" for byte in letter.encode())
        for letter in sign
    )


_FIRST_LEAST: Final = 4  # letters of the first word of a sign
_ENGLISH_WORDS: Final = frozenset(("fire", "hat"))  # of which prose has more than numbers


def _signs_of(words: str) -> Iterator[str]:
    """Yield signs of a language: each of its long words, and any one behind it."""
    each = words.split()
    for word in each:
        if len(word) >= _FIRST_LEAST and word not in _ENGLISH_WORDS:
            yield _in_bytes(f"(?i){word}[^a-z\x1e\x1f]{{0,6}}(?:{'|'.join(each)})")


NUMBER_WORD_SIGNS: Final = (
    *(sign for words in (*_MIXED, *_ALONE) for sign in _signs_of(words)),
    # One word each: the engine takes a while to compile the choice of all of them.
    *(f"(?i)[0-9] {word} [0-9]" for word in _ENGLISH.split()),
    *(f"(?i) {zero} (?:{'|'.join(_ENGLISH.split())}) " for zero in ("oh", "o")),
    *(
        _in_bytes(f"(?i){times} (?:{'|'.join(words.split())})")
        for times, many in _TIMES.items() if many
        for words in _MIXED
    ),
    *(f"(?i){ten}-{unit} (?:{'|'.join(_TENS)})" for ten in _TENS for unit in _ENGLISH.split()[1:]),
)  # fmt: skip
# The engine takes three literals in a row for a third of what two take, or a class.
NUMERAL_SIGNS: Final = tuple(
    _in_bytes("".join(letters))
    for row in (_NUMERALS[0] + "\u96f6", _NUMERALS[1], _NUMERALS[3], _NUMERALS[4])
    for letters in product(row, repeat=3)
)
