"""Addresses of e-mail, also with words and brackets in the places of their marks."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.content.domains import TOP_DOMAINS
from gateway.content.spans import Span

_AT: Final = r"(?: ?@ ?| ?[\[({<] ?(?:at|@) ?[\])}>] ?)"
_BARE_DOT: Final = r"(?:\.| ?[\[({] ?(?:dot|\.) ?[\])}] ?)"
_DOT: Final = rf"(?:{_BARE_DOT}| \. )"
# What ends an address: letters of scripts without blanks and the mark of emphasis may stand behind.
_END: Final = r"(?![A-Za-z0-9\u00c0-\u024f(@]|_\w|-\w|\.\w+\()"
_TOP: Final = "(xn--[a-z0-9-]{2,40}|[a-z]{2,24})"
_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_DOT}){{1,6}}){_TOP}{_END}", re.IGNORECASE
)
# A sentence may go on behind a point with blanks around it.
_BARE_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_BARE_DOT}){{1,6}}){_TOP}{_END}", re.IGNORECASE
)
_SPOKEN: Final = re.compile(
    r"(?<![\w.@-])([\w-]+(?: dot [\w-]+){0,3}) at ([\w-]+(?: dot [\w-]+){0,3}) dot "
    r"([a-z]{2,24})(?![\w-])",
    re.IGNORECASE,
)
# Sites are spoken of so too: "look at example dot com".
_WRITES: Final = re.compile(r"mail|contact|write|reach|address", re.IGNORECASE)
_NEAR: Final = 40
_SPOKEN_BEFORE: Final = 140  # characters before the last point of an address in words
EMAIL_SIGNS: Final = (
    "@",
    r"(?i)(?:\(at|\( at|\[at|\[ at|\{at|\{ at|<at|< at) ?[\])}>]",
    "(?i) dot [a-z]{2}",
)
_BARE_DOMAIN: Final = re.compile(r"[\w.-]+")
_DOTTED: Final = re.compile(r"[\[({] ?(?:dot|\.) ?[\])}]", re.IGNORECASE)
_NO_DOMAIN: Final = re.compile(r"[^\w.-]")
_SCALE: Final = re.compile(r"\d+x\.")
_LOCAL_PART: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"


def find_emails(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield addresses whose last part is a domain that exists."""
    done = 0
    for place in places:
        match = _match_at(text, place)
        if match is None or match.start() < done:
            continue
        done = match.end()
        domain = match[2]
        if not _BARE_DOMAIN.fullmatch(domain):
            domain = _NO_DOMAIN.sub("", _DOTTED.sub(".", domain))
        yield Span("email", *match.span(), f"{match[1]}@{domain}{match[3]}".lower())


def _match_at(text: str, place: int) -> re.Match[str] | None:
    """Return the address around the sign that ends at a place."""
    if text[place - 1].isalpha():
        found = _SPOKEN.finditer(text, max(0, place - _SPOKEN_BEFORE), place + 24)
        spoken = next((match for match in found if match.end() >= place), None)
        return spoken if spoken is not None and _is_spoken(text, spoken) else None
    begin = _local_begin(text, place)
    if begin is None:
        return None
    readings = (_EMAIL.match(text, begin), _BARE_EMAIL.match(text, begin))
    return next((match for match in readings if match is not None and _is_address(match)), None)


def _is_spoken(text: str, match: re.Match[str]) -> bool:
    """Return whether words are an address, and no site that somebody looks at."""
    start = match.start()
    is_named = _WRITES.search(text, max(0, start - _NEAR), start) is not None
    return match[3].lower() in TOP_DOMAINS and (" dot " in match[1].lower() or is_named)


def _local_begin(text: str, place: int) -> int | None:
    """Return where the part before the sign that ends at `place` begins; None: there is none."""
    if text[place - 1] == "@":
        end, blank = place - 1, text[place : place + 1] == " "
    else:
        end, blank = max(text.rfind(mark, max(0, place - 6), place) for mark in "[({<"), True
    if end > 0 and text[end - 1] == " ":
        if not blank:
            return None
        end -= 1
    first = max(0, end - 65)
    begin = first + len(text[first:end].rstrip(_LOCAL_PART))
    while begin > first and text[begin - 1].isalnum():  # letters beyond ASCII
        begin -= 1
    return begin if begin < end else None


def _is_address(match: re.Match[str]) -> bool:
    top, whole = match[3].lower(), match[0]
    if top not in TOP_DOMAINS and not top.startswith("xn--"):
        return False
    if match[2][:1].isdigit() and _SCALE.match(match[2]):  # icon@2x.png
        return False
    if " " not in whole:
        return True
    return any(mark in whole for mark in "[({") or " . " in match[2] or match[3].islower()
