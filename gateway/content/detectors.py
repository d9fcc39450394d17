"""Detectors by kind: signs that one pass looks for in all text, and what makes sure of a find.

A sign is a regular expression without lookaround for the linear-time engine; each place where one
ends is looked at by `find`, in a stretch of the text around it that is bounded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

from gateway.content.checksums import IBAN_LENGTHS, is_iban
from gateway.content.domains import TOP_DOMAINS
from gateway.content.number_signs import (
    ACCOUNT_SIGNS,
    ACCOUNT_WORD,
    ADDRESS_SIGN,
    CARD_SIGNS,
    FRENCH_SIGN,
    NUMBER_SIGNS,
    PERSON_SIGN,
    RUN_SIGN,
    SIXTH_SIGNS,
    TELEPHONE_SIGNS,
    WRITTEN_SIGNS,
)
from gateway.content.numbers import (
    find_card_spans,
    find_named,
    find_numbers,
    find_shaped,
    find_uneven_cards,
    find_written_ids,
)
from gateway.content.secret_formats import (
    ASSIGNED_SIGNS,
    SECRET_FORMATS,
    URL_SIGN,
    find_assigned,
)
from gateway.content.spans import Span, matches_around


@dataclass(frozen=True, slots=True)
class Detector:
    """`kinds`: what it may find. `find` gets a text, and where in it signs end.

    `signs` are led by letters and marks, `digit_signs` by digits, `word_signs` by what begins with
    a word or a line: each sort has an engine, which is fast with one sort alone.
    """

    kinds: frozenset[str]
    find: Callable[[str, Sequence[int]], Iterator[Span]]
    signs: tuple[str, ...] = ()
    digit_signs: tuple[str, ...] = ()
    word_signs: tuple[str, ...] = ()


_IBAN: Final = re.compile(
    r"[A-Za-z]{2}[ .\t\n-]{0,2}\d[ .\t\n-]?\d(?:[ .\t\n-]{0,2}[0-9A-Za-z]){11,30}"
)
_IBAN_BEGIN: Final = re.compile(
    r"(?:(?<![0-9A-Za-z])|(?<=[Ii][Bb][Aa][Nn]))[A-Za-z]{2}[ .\t\n-]{0,2}\d[ .\t\n-]?\d"
)
_AT: Final = r"(?: ?@ ?| ?[\[({<] ?(?:at|@) ?[\])}>] ?)"
_DOT: Final = r"(?:\.| \. | ?[\[({] ?(?:dot|\.) ?[\])}] ?)"
_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_DOT}){{1,6}})(xn--[a-z0-9-]{{2,40}}|[a-z]{{2,24}})(?![\w(@]|-\w|\.\w+\()",
    re.IGNORECASE,
)
_BARE_DOMAIN: Final = re.compile(r"[\w.-]+")
_DOTTED: Final = re.compile(r"[\[({] ?(?:dot|\.) ?[\])}]", re.IGNORECASE)
_NO_DOMAIN: Final = re.compile(r"[^\w.-]")
_SCALE: Final = re.compile(r"\d+x\.")
_LOCAL_PART: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+'-"
_IPV4: Final = re.compile(
    r"(?<![\w.-])(?<!v)\d{1,3}(?:(?:\.| ?\[\.\] ?| ?\(\.\) ?| \. )\d{1,3}){3}"
    r"(?![\w-]|\.\d|/\d{1,2}(?!\d))"
)
_VERSION: Final = re.compile(
    r"(?:version|ver\.?|release|build|revision|oid|section|chapter)[ :=\"']{0,4}$", re.IGNORECASE
)
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_LOCAL: Final = (
    "127.0.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "255.255.255.0",
    "255.255.0.0",
    "255.0.0.0",
)
_SPREAD: Final = 400  # that a key may take with blanks between its characters


def find_ibans(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield account numbers with the length of their country and two right check digits."""
    for begin in matches_around(_IBAN_BEGIN, text, places, (30, 0)):
        if begin[0][:2].upper() not in IBAN_LENGTHS:
            continue
        match = _IBAN.match(text, begin.start())
        if match is None:
            continue
        plain, spots = "", []
        for place, letter in enumerate(match[0], match.start()):
            if letter.isalnum():
                plain += letter.upper()
                spots.append(place)
        size = IBAN_LENGTHS[plain[:2]]
        if len(plain) < size or not is_iban(plain[:size]):
            continue
        ends = spots[size - 1] + 1
        written = text[match.start() : ends]
        if "-" in written and not _is_in_fours(written):
            continue
        if not text[ends : ends + 1].isalnum():
            yield Span("iban", match.start(), ends, plain[:size])


def _is_in_fours(written: str) -> bool:
    """Return whether dashes stand after each fourth place: a UUID has them elsewhere."""
    return all(len(group) == 4 for group in re.split(r"\W+", written)[:-1])


def find_emails(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield addresses whose last part is a domain that exists."""
    for place in places:
        begin = _local_begin(text, place)
        match = None if begin is None else _EMAIL.match(text, begin)
        if match is None or not _is_address(match):
            continue
        domain = match[2]
        if not _BARE_DOMAIN.fullmatch(domain):
            domain = _NO_DOMAIN.sub("", _DOTTED.sub(".", domain))
        yield Span("email", *match.span(), f"{match[1]}@{domain}{match[3]}".lower())


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


def find_addresses(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield addresses of hosts by number, but for the host itself and masks."""
    for match in matches_around(_IPV4, text, places, (40, 24)):
        plain = re.sub(r"[^\d.]", "", match[0])
        if plain in _LOCAL or _VERSION.search(text, max(0, match.start() - 16), match.start()):
            continue
        try:
            IPv4Address(plain)
        except AddressValueError:
            continue
        yield Span("ip", *match.span(), plain)
    for match in matches_around(_IPV6, text, places, (40, 40)):
        if not any(map(str.isdigit, match[0])) or match[0].count(":") < 3:
            continue
        try:
            address = IPv6Address(match[0])
        except AddressValueError:
            continue
        if not address.is_loopback:
            yield Span("ip", *match.span(), address.compressed)


_FORMATS: Final = re.compile("|".join(f"(?:{entry.form})" for entry in SECRET_FORMATS))
_SIGNS: Final = re.compile("|".join(f"(?:{entry.sign})" for entry in SECRET_FORMATS))
_SIGN_MOST: Final = 52  # characters of the longest sign


def find_secrets(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield keys of known formats, also where blanks stand between their characters."""
    last = 0
    for place in places:
        begin = max(last, place - _SIGN_MOST)
        for sign in _SIGNS.finditer(text, begin, place):
            start = sign.start()
            if sign.end() != place or (start and text[start - 1].isalnum()):
                continue
            found = _FORMATS.match(text, start)
            if found is not None:
                last = found.end()
                yield Span("secret", start, last, found[0])
            elif (apart := _match_apart(text, start)) is not None:
                last = apart.end
                yield apart
            break


def _match_apart(text: str, start: int) -> Span | None:
    """Return a key whose characters stand apart."""
    spots = [at for at in range(start, min(len(text), start + _SPREAD)) if not text[at].isspace()]
    found = _FORMATS.match("".join(text[at] for at in spots))
    if found is None:
        return None
    end = spots[found.end() - 1] + 1
    return Span("secret", start, end, found[0]) if _is_spread(text[start:end]) else None


def _is_spread(stretch: str) -> bool:
    """Return whether pieces between blanks are parts of a key, and no words behind one."""
    pieces = stretch.split()[1:]
    return bool(pieces) and sum(
        any(map(str.isdigit, piece)) or piece.isupper() for piece in pieces
    ) * 2 >= len(pieces)


def find_assignments(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield values that are called secret and look so."""
    for start, end in find_assigned(text, places):
        yield Span("random_secret", start, end, text[start:end])


_FEW_BLANKS: Final = r"(?i)(?:\(at|\( at|\[at|\[ at|\{at|\{ at|<at|< at) ?[\])}>]"

DETECTORS: Final = (
    Detector(frozenset(("card",)), find_card_spans, digit_signs=CARD_SIGNS),
    Detector(frozenset(("card",)), find_uneven_cards, word_signs=(RUN_SIGN,)),
    Detector(frozenset(("card", "national_id", "phone")), find_shaped, digit_signs=NUMBER_SIGNS),
    Detector(frozenset(("card", "national_id", "phone")), find_numbers, signs=TELEPHONE_SIGNS),
    Detector(frozenset(("national_id",)), find_named, signs=(PERSON_SIGN,)),
    Detector(
        frozenset(("national_id",)), find_written_ids,
        signs=(FRENCH_SIGN,), digit_signs=WRITTEN_SIGNS,
    ),
    Detector(
        frozenset(("iban",)), find_ibans, signs=(ACCOUNT_WORD,), word_signs=ACCOUNT_SIGNS
    ),
    Detector(frozenset(("email",)), find_emails, signs=("@", _FEW_BLANKS)),
    Detector(
        frozenset(("ip",)), find_addresses,
        signs=(
            r"[0-9] ?\[\.\] ?[0-9]", r"[0-9] ?\(\.\) ?[0-9]", r"[0-9] \. [0-9]",
            *SIXTH_SIGNS,
        ),
        digit_signs=(ADDRESS_SIGN,),
    ),
    Detector(
        frozenset(("secret",)), find_secrets, signs=tuple(entry.sign for entry in SECRET_FORMATS)
    ),
    Detector(frozenset(("random_secret",)), find_assignments, signs=(*ASSIGNED_SIGNS, URL_SIGN)),
)  # fmt: skip
