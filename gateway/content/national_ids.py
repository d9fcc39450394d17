"""Numbers that states give to people: their forms, check digits, and words that stand beside them.

A number of nine to eleven digits has a valid check digit by chance one time in ten, and there are
many such numbers in logs and orders. So the weak ones count where a word beside them names them, or
in the punctuation that they are written in; strong ones (a date, letters, two check digits) always.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.content.checksums import (
    is_luhn,
    is_mod_11_2,
    is_mod_11_10,
    is_verhoeff,
    weighted,
)

Check = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class NationalId:
    """One state's number. `form`: of the digits and letters without what separates them.

    `written`: the punctuation that by itself tells what it is. `words`: what names it nearby; None:
    its form and check are enough.
    """

    country: str
    form: re.Pattern[str]
    check: Check
    words: re.Pattern[str] | None
    written: re.Pattern[str] | None = None


def _near(*words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![a-z])(?:{'|'.join(words)})(?![a-z])", re.IGNORECASE)


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _is_date(year: str, month: str, day: str) -> bool:
    return year.isdigit() and 1 <= int(month) <= 12 and 1 <= int(day) <= 31


_CF_ODD: Final = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3,
         6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip
_CF_EVEN: Final = {
    **{str(number): number for number in range(10)},
    **{chr(65 + number): number for number in range(26)},
}
_ES_LETTERS: Final = "TRWAGMYFPDXBNJZSQVHLCKE"
_FI_LETTERS: Final = "0123456789ABCDEFHJKLMNPRSTUVWXY"


def _is_codice_fiscale(text: str) -> bool:
    letters = text.upper()
    total = sum(_CF_ODD[letter] for letter in letters[:15:2])
    total += sum(_CF_EVEN[letter] for letter in letters[1:15:2])
    return chr(65 + total % 26) == letters[15]


def _is_nir(text: str) -> bool:
    body = text[:13].upper().replace("2A", "19").replace("2B", "18")
    return body.isdigit() and 97 - int(body) % 97 == int(text[13:])


def _is_dni(text: str) -> bool:
    letters = text.upper()
    number = letters[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return number.isdigit() and _ES_LETTERS[int(number) % 23] == letters[-1]


def _is_bsn(digits: str) -> bool:
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return digits != "000000000" and weighted(digits.zfill(9), weights) % 11 == 0


def _is_pesel(digits: str) -> bool:
    if not _is_date(digits[:2], str(int(digits[2:4]) % 20), digits[4:6]):
        return False
    return weighted(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)) % 10 == 0


def _is_nif(digits: str) -> bool:
    check = 11 - weighted(digits[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if check > 9 else check) == int(digits[8])


def _is_personnummer(text: str) -> bool:
    digits = re.sub(r"\D", "", text)[-10:]
    day = int(digits[4:6])
    return _is_date(digits[:2], digits[2:4], str(day - 60 if day > 60 else day)) and is_luhn(digits)


def _is_hetu(text: str) -> bool:
    digits = text[:6] + text[7:10]
    if not _is_date(digits[4:6], digits[2:4], digits[:2]):
        return False
    return _FI_LETTERS[int(digits) % 31] == text[10].upper()


def _is_fodselsnummer(digits: str) -> bool:
    day = int(digits[:2]) % 40
    if not _is_date(digits[4:6], digits[2:4], str(day)):
        return False
    first = weighted(digits, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)) % 11
    return first == 0 and weighted(digits, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)) % 11 == 0


def _is_rijksregister(digits: str) -> bool:
    body, check = int(digits[:9]), int(digits[9:])
    return check in (97 - body % 97, 97 - (2_000_000_000 + body) % 97)


def _is_nhs(digits: str) -> bool:
    check = 11 - weighted(digits[:9], (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return check != 10 and check % 11 == int(digits[9])


def _is_cpf(digits: str) -> bool:
    if len(set(digits)) == 1:
        return False
    first = weighted(digits[:9], range(10, 1, -1)) * 10 % 11 % 10
    second = weighted(digits[:10], range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def _is_tfn(digits: str) -> bool:
    return weighted(digits, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0


def _is_tckn(digits: str) -> bool:
    numbers = [int(digit) for digit in digits]
    tenth = (7 * sum(numbers[0:9:2]) - sum(numbers[1:8:2])) % 10
    return tenth == numbers[9] and sum(numbers[:10]) % 10 == numbers[10]


def _is_ahv(digits: str) -> bool:
    return (10 - weighted(digits, (1, 3) * 6) % 10) % 10 == int(digits[12])


def _is_ssn(digits: str) -> bool:
    return digits[:3] not in ("000", "666") and digits[3:5] != "00" and digits[5:] != "0000"


def _is_resident(text: str) -> bool:
    return _is_date(text[6:10], text[10:12], text[12:14]) and is_mod_11_2(text)


_TAX: Final = (r"tax\W?(?:id|no|nr|number|file|payer)\w*", "tin", r"taxpayer\w*")
_PERSON: Final = (
    r"national\W?(?:id|identity|insurance|number)\w*", r"personal\W?(?:id\w*|number|code|no)",
    r"id(?:entity)?\W?(?:card|number|no|nr)", r"identification\W?(?:number|no|code)", r"citizen\w*",
)  # fmt: skip

NATIONAL_IDS: Final = (
    NationalId(
        "IT", _form(r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]"), _is_codice_fiscale, None
    ),
    NationalId(
        "FR", _form(r"[1-478]\d{2}(?:0[1-9]|1[0-2]|[2-4]\d|99)(?:\d{2}|2[AB])\d{8}"), _is_nir, None
    ),
    NationalId("CN", _form(r"[1-9]\d{5}(?:19|20)\d{9}[\dX]"), _is_resident, None),
    NationalId("FI", _form(r"\d{6}[-+A]\d{3}[0-9A-Y]"), _is_hetu, None),
    NationalId("CH", _form(r"756\d{10}"), _is_ahv, None),
    NationalId("ES", _form(r"[XYZ]\d{7}[A-Z]"), _is_dni, None),
    NationalId("ES", _form(r"\d{8}[A-Z]"), _is_dni, None),
    NationalId(
        "DE", _form(r"[1-9]\d{10}"), is_mod_11_10,
        _near(*_TAX, *_PERSON, r"steuer\W?id\w*", r"steuernummer", r"idnr", r"steuer\w*", "german"),
    ),
    NationalId(
        "NL", _form(r"\d{9}"), _is_bsn,
        _near(*_TAX, *_PERSON, "bsn", "burgerservicenummer", "sofi\\w*", "dutch"),
    ),
    NationalId("PL", _form(r"\d{11}"), _is_pesel, _near(*_TAX, *_PERSON, "pesel", "polish")),
    NationalId(
        "PT", _form(r"[1-35689]\d{8}"), _is_nif, _near(*_TAX, *_PERSON, "nif", "contribuinte"),
    ),
    NationalId(
        "SE", _form(r"(?:19|20)?\d{6}[-+]?\d{4}"), _is_personnummer,
        _near(*_TAX, *_PERSON, "personnummer", "personnr", "swedish"), _form(r"\d{6}[-+]\d{4}"),
    ),
    NationalId(
        "NO", _form(r"\d{11}"), _is_fodselsnummer,
        _near(*_TAX, *_PERSON, "f(?:\xf8|o)dselsnummer", "personnummer", "fnr", "norwegian"),
        _form(r"\d{6} \d{5}"),
    ),
    NationalId(
        "BE", _form(r"\d{11}"), _is_rijksregister,
        _near(
            *_TAX, *_PERSON, "rijksregister\\w*", "niss", "insz", "belgian", "registre",
            r"num\xe9ro\W?national",
        ),
        _form(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d"),
    ),
    NationalId(
        "GB", _form(r"\d{10}"), _is_nhs, _near("nhs", "patient", *_PERSON),
        _form(r"\d{3} \d{3} \d{4}"),
    ),
    NationalId(
        "BR", _form(r"\d{11}"), _is_cpf, _near(*_TAX, *_PERSON, "cpf", "cadastro"),
        _form(r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    ),
    NationalId(
        "CA", _form(r"[1-79]\d{8}"), is_luhn,
        _near(*_TAX, *_PERSON, "sin", r"social\W?insurance"),
    ),
    NationalId("AU", _form(r"\d{9}"), _is_tfn, _near(*_TAX, *_PERSON, "tfn", "australian")),
    NationalId(
        "IN", _form(r"[2-9]\d{11}"), is_verhoeff,
        _near(*_TAX, *_PERSON, "aadhaar", "aadhar", "uid", "uidai"),
    ),
    NationalId(
        "TR", _form(r"[1-9]\d{10}"), _is_tckn,
        _near(*_TAX, *_PERSON, "tckn", "kimlik", "turkish"),
    ),
    NationalId(
        "US", _form(r"(?!9)\d{9}"), _is_ssn,
        _near("ssn", r"social\W?security\w*", r"my\W?social", *_TAX),
        _form(r"(?!9)\d{3}-\d\d-\d{4}"),
    ),
)  # fmt: skip


_STRONG: Final = tuple(entry for entry in NATIONAL_IDS if entry.words is None)
# By how many digits a number has that has no letters.
_COUNTRIES: Final = {
    9: ("NL", "PT", "CA", "AU", "US"), 10: ("SE", "GB"), 11: ("DE", "PL", "NO", "BE", "BR", "TR"),
    12: ("SE", "IN"), 13: ("CH",), 15: ("FR",), 18: ("CN",),
}  # fmt: skip
_BY_DIGITS: Final = {
    digits: tuple(entry for entry in NATIONAL_IDS if entry.country in countries)
    for digits, countries in _COUNTRIES.items()
}
# One of these is in each word that names a number: to look for them takes a hundredth of the time.
STEMS: Final = (
    "tax", "tin", "national", "personal", "id", "citizen", "steuer", "german", "bsn", "burger",
    "sofi", "dutch", "pesel", "polish", "nif", "contribu", "person", "swed", "norw", "dselsn",
    "rijks", "niss", "insz", "belg", "registre", "nhs", "patient", "cpf", "cadastro", "sin",
    "social", "tfn", "austral", "aadha", "tckn", "kimlik", "turk", "ssn", "fnr",
)  # fmt: skip


def find_country(number: str, written: str, beside: str) -> str | None:
    """Return whose number it is, or None.

    `number`: without what separates; `written`: as it stands there; `beside`: the text around it.
    """
    for entry in _BY_DIGITS.get(len(number), ()) if number.isdigit() else _STRONG:
        if entry.form.fullmatch(number) is None or not entry.check(number):
            continue
        if entry.words is None or (entry.written and entry.written.fullmatch(written)):
            return entry.country
        if _has_stem(beside.lower()) and entry.words.search(beside):
            return entry.country
    return None


def _has_stem(text: str) -> bool:
    return any(stem in text for stem in STEMS)
