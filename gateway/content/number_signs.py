"""Signs of numbers, made so that the engine follows all of them as one automaton.

A sign that begins or ends with one of few characters is looked for by that character, and text full
of digits has those everywhere: that takes ten times as long. So what separates digits is a class of
many characters here, also where a form has one of them, and the Python that makes sure is strict.
"""

from collections.abc import Iterator
from typing import Final

# Marks of ASCII alone, without control characters: a class with more takes twice as long.
_MARK: Final = r"[\t\n\r -/:-@\[-`{-~]"
_MARKS: Final = _MARK + "{1,3}"
_INLINE: Final = r"[ ./()_|+-]"
_END: Final = "[^0-9]"
_OTHER: Final = "[^0-9A-Za-z]"
_LETTER: Final = "[A-Za-z]"
_WORD_END: Final = "[^a-z]"


def _behind(*forms: str) -> str:
    """Return forms that begin with a group's first digit."""
    return f"[^0-9](?:{'|'.join(forms)})"


def _digits(count: int | str) -> str:
    return f"[0-9]{{{count}}}"


# Groups of one number have marks alike between them: all with a point, or none. In columns of
# numbers both are everywhere, so signs tell them apart. An end of a line may stand among either.
_PLAIN: Final = r"[\t\n\r --/:-@\[-`{-~]"
_POINT: Final = rf"{_PLAIN}{{0,2}}\.{_MARK}{{0,3}}"
_LINE_END: Final = rf"(?:[\r\n]{_MARK}{{0,2}}|{_MARK}[\r\n]{_MARK}?|{_MARK}{{2}}[\r\n])"
_GAPS: Final = (f"{_PLAIN}{{1,5}}", _POINT)
_BROKEN_GAPS: Final = tuple(f"(?:{gap}|{_LINE_END})" for gap in _GAPS)
_SINGLE_GAPS: Final = (f"{_PLAIN}{{1,2}}", r"\.")

# Thousandths behind a point are no card: a group right behind a digit and a point is passed over.
_WHOLE: Final = r"(?:[^0-9.]|[^0-9]\.)"
SPREAD_SIGNS: Final = tuple(f"[^0-9][2-8](?:{gap}[0-9]){{5}}{_MARK}" for gap in _GAPS)
"""Digits one by one."""
CARD_SIGNS: Final = (
    f"{_WHOLE}[2-8]{_digits('11,18')}{_END}",
    *SPREAD_SIGNS,
    _behind(
        *(f"[2-8]{_digits(3)}{gap}(?:{_digits(4)}{gap}{_digits(4)}{gap}[0-9]|"
          f"{_digits(6)}{gap}{_digits(4)})" for gap in _BROKEN_GAPS),
        *(f"[2-8]{_digits(3)}{gap}(?:{_digits(8)}{gap}|{_digits(4)}{gap}{_digits(8)})"
          for gap in _GAPS),
        f"[2-8]{_digits(3)}{_MARKS}{_digits(11)}",
        f"[2-8]{_digits(7)}{_MARKS}{_digits(4)}",
        f"[2-8]{_digits('9,11')}{_MARKS}{_digits(4)}",
        *(f"[2-8][0-9](?:{gap}{_digits(2)}){{5}}" for gap in _SINGLE_GAPS),
        *(f"[2-8]{_digits(2)}(?:{gap}{_digits(3)}){{3}}" for gap in _SINGLE_GAPS),
        *(f"[2-8]{_digits(4)}{gap}{_digits(5)}{gap}{_digits(2)}" for gap in _SINGLE_GAPS),
        f"[2-8]{_digits(5)}{_MARK}{_digits(6)}",
    ),
)  # fmt: skip
"""Cards in one group, digit by digit, in groups of four, six and five, and of other equal sizes."""

_LINED: Final = r"[ \t/()_|-]"  # points stand in fractions
_UNLINED: Final = r"[^0-9 \t./()_|-]"
RUN_SIGN: Final = (
    f"{_UNLINED}{_LINED}{{0,3}}[2-8](?:{_LINED}{{0,3}}[0-9]){{11,18}}{_LINED}{{0,3}}{_UNLINED}"
)
"""All digits of a stretch of one line, in whatever groups, if they are as many as a card has."""

NUMBER_SIGNS: Final = (
    f"{_WHOLE}[1-8]{_digits(14)}{_END}",
    f"{_WHOLE}[1-9]{_digits(17)}{_END}",
    f"{_WHOLE}[5-9]{_digits(12)}{_END}",
    _behind(
        f"{_digits(3)}(?:{_INLINE}|[()|/_.-] ){_digits('2,4')}{_INLINE}{_digits('3,4')}{_END}",
        f"{_digits(2)}{_INLINE}{_digits(2)}{_INLINE}{_digits(2)}{_INLINE}{_digits(3)}",
        f"{_digits(6)}{_INLINE}{_digits('4,8')}{_END}",
    ),
)
"""Numbers of persons that need no word beside them, and telephones in American punctuation."""

WRITTEN_SIGNS: Final = (
    _behind(
        f"{_digits(8)}[ -]?{_LETTER}{_OTHER}",
        f"{_digits(7)}[ -]?{_LETTER}{_OTHER}",
        f"{_digits(6)}[ ./()_|+Aa-]{_digits(3)}[0-9A-Ya-y]{_OTHER}",
        f"{_digits(17)}[Xx]{_OTHER}",
        f"{_digits(2)}{_LETTER}{_digits(2)}[ -]?{_LETTER}{_digits(3)}{_LETTER}{_OTHER}",
    ),
)
"""Numbers of persons with letters in them."""

ADDRESS_SIGN: Final = _behind(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]")
"""Addresses of hosts in version 4."""

_HEX: Final = "[0-9A-Fa-f]"


def _between_colons(*sizes: int) -> str:
    """Return groups of these sizes between two others.

    The engine looks for a colon alone where a group may have any size, and JSON is full of those.
    """
    return ":".join((_HEX, *(f"{_HEX}{{{size}}}" for size in sizes), _HEX))


SIXTH_SIGNS: Final = (
    "[23f][0-9a-fA-F]{3}::",
    f"{_HEX}:{_HEX}{{1,4}}::",
    f"::{_HEX}{{1,4}}:{_HEX}{{1,4}}:{_HEX}",
    *map(_between_colons, (1, 3, 4)),
    *(_between_colons(2, size) for size in (1, 2, 3, 4)),
)
"""Addresses of hosts in version 6: two colons beside groups, or the second group of eight."""

_SPREAD: Final = r"[ \t\r\n./()_|-]{0,3}"
_ANY_MARKS: Final = r"[^0-9A-Za-z\x1e\x1f]{0,5}"
TELEPHONE_WORDS: Final = (
    r"tel|tele|telephone|telefon|telefonnummer|telefono|t\xc3\xa9l|t\xc3\xa9l\xc3\xa9phone|tel\xc3\xa9fono|"
    "phone|mobil|mobile|mob|mobilnummer|cell|cellular|fax|call|sms|text|whatsapp|fon|festnetz|"
    "durchwahl|appel|appelez|appeler|handy|handynummer|rufnummer|portable|ring|dial|reach|hotline"
)
TELEPHONE_SIGNS: Final = (
    rf"\+ ?\(?[0-9](?:{_SPREAD}[0-9]){{7}}",
    rf"[^0-9.]00[1-9](?:{_SPREAD}[0-9]){{7}}",
    (
        rf"(?i)[^a-z](?:{TELEPHONE_WORDS}|my number)[^a-z][^\x1e]{{0,30}}[0-9]"
        rf"(?:{_ANY_MARKS}[0-9]){{6}}"
    ),
)
"""Telephones with a country's code, and numbers that a word before them calls so."""

_MAYBE: Final = "[^a-z0-9]?"


def _joined(first: str, *behind: str) -> Iterator[str]:
    """Yield two words with each mark between them: literals cost less than a class."""
    for mark in ("", " ", "-", "_", r"\.", ":", "/", "'", r"\n", "#", "&", "=", '"'):
        yield f"{first}{mark}(?:{'|'.join(behind)})"


def _ended(*words: str) -> Iterator[str]:
    """Yield short words with each mark that ends one."""
    for word in words:
        yield f"{word}(?:{'|'.join(_ENDS)})"


_ENDS: Final = (
    " ",
    ":",
    "=",
    r"\.",
    ",",
    r"\)",
    "#",
    r"\n",
    "-",
    "_",
    '"',
    "'",
    "/",
    r"\(",
    r"\]",
    r"\|",
    ";",
    r"\t",
    r"\r",
    r"\*",
    "<",
    ">",
    r"\}",
    "`",
    r"\?",
    "!",
    "[0-9]",
    r"[\x80-\xff]",
)
PERSON_WORDS: Final = (
    *_joined("tax", "id", "no", "nr", "number", "file", "payer"), *_ended("tin"),
    f"national{_MAYBE}(?:id|insurance|number)", f"personal{_MAYBE}(?:id|number|code|no)",
    *_joined("id", "card", "number", f"no{_WORD_END}", f"nr{_WORD_END}"),
    f"identity{_MAYBE}(?:card|number|no|nr){_WORD_END}",
    f"identification{_MAYBE}(?:number|no|code)", "citizen", "steuer", "idnr",
    f"german{_WORD_END}", f"bsn{_WORD_END}", "burgerservice", "sofi", f"dutch{_WORD_END}", "pesel",
    f"polish{_WORD_END}", f"nif{_WORD_END}", "contribuinte", "personnummer",
    f"swedish{_WORD_END}", r"f(?:o|\xc3\xb8)dselsnummer", f"norwegian{_WORD_END}",
    "rijksregister", f"niss{_WORD_END}", f"insz{_WORD_END}", f"belgian{_WORD_END}",
    f"registre{_WORD_END}", f"nhs{_WORD_END}", f"patient{_WORD_END}", f"cpf{_WORD_END}",
    f"cadastro{_WORD_END}", f"sin{_WORD_END}", f"social{_MAYBE}(?:insurance|security)",
    f"tfn{_WORD_END}", f"australian{_WORD_END}", "aadhaar", "aadhar", f"uidai{_WORD_END}",
    r"uid[^a-z0-9][^0-9\x1e]{0,12}[0-9]{4}[ .-]?[0-9]{4}[ .-]?[0-9]{4}[^0-9.-]",
    f"tckn{_WORD_END}", "kimlik", f"turkish{_WORD_END}", f"ssn{_WORD_END}", f"my{_MAYBE}social",
    "codice fiscale", r"cod\. fisc", "henkil", "ahv-n", "ahvn",
    *_ended("nir", "hetu", "dni", "nino", "fnr", "ahv", "avs"),
    r"nie[^a-z][^\x1e]{0,24}[xyz][^a-z]{1,5}[0-9]", "documento de id", "extranjero", "ni number",
    f"insee{_WORD_END}", r"s\xc3\xa9cu", "securite sociale", r"c\. ?f\.",
    r"nat\. ins", "personnr", r"num\xc3\xa9ro national", "pessoa f",
)  # fmt: skip
PERSON_SIGN: Final = f"(?i)[^a-z](?:{'|'.join(PERSON_WORDS)})"
"""Words that name a number of a person within a line or two."""
FRENCH_SIGN: Final = "[0-9]{3} ?2[AaBb] ?[0-9]{3}"

_BLANK: Final = _MARK
_SMALL: Final = r"[ .\t\n_:]"  # UUIDs have dashes between small letters
_ANY: Final = "[A-Za-z0-9]"
_ALIKE_CASE: Final = (
    f"[{letters}]{{2}}{mark}?{_digits(2)}{mark}{{1,2}}{_ANY}{{4}}{mark}{{1,2}}{_ANY}{{4}}"
    f"{mark}{{1,2}}{_ANY}"
    for letters, mark in (("A-Z", _BLANK), ("a-z", _SMALL))
)
_ONE_WORD: Final = f"{_LETTER}{{2}}{_digits(2)}(?:{_ANY}{{11}}|(?:{_BLANK}?[0-9]){{11}})"
_APART: Final = f"{_MARK}{{0,5}}"
_CAPITALS: Final = f"[A-Z]{{2}}{_BLANK}?[0-9]{_BLANK}?[0-9](?:{_APART}[0-9A-Z]){{11}}"
ACCOUNT_SIGNS: Final = (
    f"{_OTHER}(?:{'|'.join((_ONE_WORD, *_ALIKE_CASE))})",
    f"{_OTHER}{_CAPITALS}",
)
"""Numbers of bank accounts: one word, groups of four, or capitals and digits in any groups."""
ACCOUNT_WORD: Final = r"(?i)iban[A-Za-z]{2}[0-9]{2}"
ACCOUNT_BRACKET: Final = r"\([A-Z]{2}\) ?[0-9]{2}[0-9A-Z ]{2}"
"""A country in brackets before its check digits."""
