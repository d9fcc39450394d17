"""Telephone numbers: in international form, in North American punctuation, or named as such."""

import re
from typing import Final

# Country codes of the numbering plan, by their first digits.
_CODES: Final = re.compile(
    r"1|7|2(?:0|7|1[1-368]|[23]\d|4\d|5\d|6[0-9]|9[017-9])|3(?:[0-469]|5\d|7\d|8[0-35-79])|"
    r"4(?:[013-9]|2[013])|5(?:[1-8]|0\d|9\d)|6(?:[0-6]|7[02-9]|8\d|9[0-2])|8(?:[1246]|5[0235-6]|8\d?|0\d)|"
    r"9(?:[0-58]|6\d|7[0-79]|9[2-68])"
)
_NAMED: Final = re.compile(
    r"(?<![a-z])(?:t[e\u00e9]l(?:[e\u00e9]phone|[e\u00e9]fono|efon(?:nummer)?)?|phone|mob(?:ile?|ilnummer)?|"
    r"cell(?:ular)?|fax|call|sms|text|whatsapp|handy(?:nummer)?|rufnummer|fon|festnetz|durchwahl|"
    r"appel(?:ez|er)?|appelez-moi|portable|ring|dial|reach|hotline)(?![a-z])",
    re.IGNORECASE,
)
_VERBS: Final = frozenset((
    "call", "text", "ring", "dial", "reach", "portable", "appel", "appelez", "appeler",
))  # fmt: skip
# One of these is in each word above: to look for them takes a twentieth of the time.
STEMS: Final = (
    "tel", "t\u00e9l", "fon", "phone", "mob", "cell", "fax", "call", "sms", "text", "whatsapp",
    "handy", "rufnummer", "festnetz", "durchwahl", "appel", "portable", "ring", "dial", "reach",
    "hotline",
)  # fmt: skip
_AMERICAN: Final = re.compile(
    r"(?:1[ .-]?)?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}([ .-]))[2-9]\d{2}(?:[ .-])\d{4}"
)
_GROUP: Final = re.compile(r"\d+")
_DATE: Final = re.compile(r"(?:19|20)\d\d[-./ ]?[01]\d[-./ ]?[0-3]\d")
# Things have numbers in the same groups.
_ARTICLE: Final = re.compile(
    r"(?<![a-z])(?:parts?|pn|p/n|sku|articles?|art\.?|item|drawing|drw|dwg|model|serial|s/n|sn|order|"
    r"invoice|ref|rev|doi|isbn|issn|gtin|ean|upc|lot|batch|catalog(?:ue)?|cat|asin|ticket|bug|case|"
    r"artikel|bestell|rechnung|zeichnung|auftrag|modell|pi\xe8ce|r\xe9f|pedido|factura)"
    r"(?:[ .:#=-]|no\b|nr\b|n\xb0|number|nummer|num){0,4}\Z",
    re.IGNORECASE,
)
_ARTICLE_NEAR: Final = 24
_OTHER_MOST: Final = 2  # digits between a name and a number: of which it is
_LEAST, _MOST = 7, 15


def is_telephone(written: str, before: str) -> bool:
    """Return whether digits as they are written are a telephone number.

    `written` includes what stands at once before its first digit (`+`, `00`, a bracket); `before`
    is the text before it.
    """
    digits = "".join(_GROUP.findall(written))
    if written[:2] in ("(+", "(0"):  # a bracket before the whole
        written = written[1:]
    if written.startswith("+"):
        code = _CODES.match(digits)
        return code is not None and 8 <= len(digits) <= _MOST and len(set(digits)) > 1
    if _DATE.match(written):
        return False
    if written.startswith("00") and 10 <= len(digits) <= _MOST + 2 and _CODES.match(digits[2:]):
        return len(written) > len(digits) or _is_named(before[-40:])
    if _AMERICAN.fullmatch(written):
        return not _is_article(before) or _is_named(before[-32:])
    if not _LEAST <= len(digits) <= _MOST or len(set(digits)) < 3:
        return False
    return _is_named(before[-32:])


def _is_named(before: str) -> bool:
    """Return whether a word names the number behind it; after a verb no other number stands."""
    lowered = before.lower()
    if not any(stem in lowered for stem in STEMS):
        return False
    return any(
        _digits_in(before[match.end() :]) <= (0 if match[0].lower() in _VERBS else _OTHER_MOST)
        for match in _NAMED.finditer(before)
        if before[max(0, match.start() - 1) : match.start()] != "."  # a part of a name in code
    )


def _digits_in(between: str) -> int:
    return sum(map(str.isdigit, between))


def _is_article(before: str) -> bool:
    """Return whether a word at once before a number says that it is of a thing."""
    return _ARTICLE.search(before[-_ARTICLE_NEAR:]) is not None
