"""Numbers of people that a word names, in whatever groups and with whatever marks between them."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from gateway.content.national_ids import NATIONAL_IDS, NationalId

_GAP: Final = r"[^0-9A-Za-z\x1e\x1f]{0,5}"
_CLASSES: Final = {"d": "[0-9]", "a": "[A-Za-z]", "x": "[0-9A-Za-z]"}
# By country: what stands where (a digit, a letter, either), and what names one that needs no word
# where it is written as usual.
_SHAPES: Final = (
    ("IT", "aaaaaaddaddaddda", r"codice\W?fiscale|cod\W{0,2}fisc\w*|c\.\s?f\b"),
    ("FR", "ddddddxdddddddd", r"nir|s[e\xe9]curit[e\xe9]\W?sociale|s[e\xe9]cu|insee"),
    ("CH", "ddddddddddddd", r"ahv\w*|avs|sozialversicherung\w*"),
    ("ES", "xddddddda", r"dni|nie|nif|documento\W?de\W?id\w*|extranjero"),
    ("FI", "ddddddxdddx", r"henkil[o\xf6]tunnus|hetu|finnish"),
    ("FI", "dddddddddx", r"henkil[o\xf6]tunnus|hetu|finnish"),
    *((country, "d" * digits, "") for country, digits in (
        ("NL", 9), ("PT", 9), ("CA", 9), ("AU", 9), ("US", 9), ("SE", 10), ("SE", 12), ("GB", 10),
        ("DE", 11), ("PL", 11), ("NO", 11), ("BE", 11), ("BR", 11), ("TR", 11), ("IN", 12),
    )),
)  # fmt: skip
_INSURANCE: Final = re.compile(
    r"(?<![a-z])(?:national\W?insurance\w*|nino|ni\W?(?:number|no|nr)|nat\W{1,2}ins\w*)(?![a-z])",
    re.IGNORECASE,
)
_INSURANCE_FORM: Final = re.compile(
    "(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][0-9]{6}[A-D]"
)
_WITHOUT_CENTURY: Final = 10
_GROUP: Final = re.compile("[0-9]+")
_MORE: Final = re.compile(rf"{_GAP}(?=[0-9])")
_APART: Final = 9  # groups of digits one by one
_USUAL: Final = frozenset(((9,), (3, 2, 4), (3, 3, 3), (1,) * 9))


class _Spread(NamedTuple):
    """A number of one state: its letters and digits, the words that name it, and its check."""

    form: re.Pattern[str]
    words: re.Pattern[str]
    is_one: Callable[[str], bool]
    is_checked: bool = True


def _pattern(shape: str) -> re.Pattern[str]:
    each = _GAP.join(_CLASSES[kind] for kind in shape)
    return re.compile(rf"(?<![0-9A-Za-z]){each}(?![0-9A-Za-z])")


def _spreads() -> Iterator[_Spread]:
    for country, shape, words in _SHAPES:
        named = re.compile(rf"(?<![a-z])(?:{words})(?![a-z])", re.IGNORECASE) if words else None
        for entry in NATIONAL_IDS:
            if entry.country == country and (beside := named or entry.words) is not None:
                yield _Spread(_pattern(shape), beside, partial(_is_one, entry), country != "US")
    yield _Spread(
        _pattern("aadddddda"), _INSURANCE, lambda number: bool(_INSURANCE_FORM.fullmatch(number))
    )


def _is_one(entry: NationalId, number: str) -> bool:
    if entry.country == "FI" and len(number) == _WITHOUT_CENTURY:
        number = f"{number[:6]}-{number[6:]}"
    return entry.form.fullmatch(number) is not None and entry.check(number)


_SPREADS: Final = tuple(_spreads())


def find_spread(text: str, begin: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield begin, end and number of each between two places that a word there names."""
    window = text[begin:end]
    for spread in _SPREADS:
        if spread.words.search(window) is None:
            continue
        for match in spread.form.finditer(window):
            number = "".join(filter(str.isalnum, match[0])).upper()
            if not spread.is_checked and not _is_usual(window, match):
                continue
            if spread.is_one(number):
                yield begin + match.start(), begin + match.end(), number


def _is_usual(window: str, match: re.Match[str]) -> bool:
    """Return whether digits without a check digit stand in usual groups, and no more of them."""
    sizes = tuple(map(len, _GROUP.findall(match[0])))
    behind = _MORE.match(window, match.end())
    return sizes in _USUAL and (behind is None or (len(behind[0]) > 1 and len(sizes) < _APART))
