"""Detectors by kind: signs that one pass looks for in all text, and what makes sure of a find.

A sign is a regular expression without lookaround for the linear-time engine; each place where one
ends is looked at by `find`, in a stretch of the text around it that is bounded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, NamedTuple

from gateway.content.checksums import IBAN_LENGTHS, is_iban, is_luhn
from gateway.content.domains import TOP_DOMAINS
from gateway.content.national_ids import find_country
from gateway.content.number_hints import NumberHints
from gateway.content.secret_formats import (
    ASSIGNED_SIGNS,
    SECRET_FORMATS,
    URL_SIGN,
    find_assigned,
)
from gateway.content.stretches import stretches
from gateway.content.telephone import is_telephone


class Span(NamedTuple):
    """A find from `start` to `end` of a stretch; `value`: the same for each way to write it."""

    kind: str
    start: int
    end: int
    value: str


@dataclass(frozen=True, slots=True)
class Detector:
    """`kinds`: what it may find. `find` gets a text, and where in it signs end."""

    kinds: frozenset[str]
    signs: tuple[str, ...]
    find: Callable[[str, Sequence[int]], Iterator[Span]]


_SEPARATORS: Final = r"[ \t\r\n./()_-]"
_NUMBER: Final = re.compile(rf"[+(]{{0,2}}\d(?:{_SEPARATORS}{{0,3}}\d){{6,63}}")
# A day, and a time behind it that ends the digits of a line of a log.
_DATE: Final = re.compile(r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[ T]\d\d)?\Z")
_CONTROL: Final = re.compile(r"\\[nrt]\Z")
_GROUP: Final = re.compile(r"\d+")
_CARDS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|"
    r"3[47]\d{13}|3(?:0[0-5]|095|[689]\d)\d{11}|3(?:52[89]|5[3-8]\d)\d{12}|"
    r"(?:6011|65\d\d|64[4-9]\d|62\d\d|60\d\d|50[1-9]\d|81\d\d)\d{12}(?:\d{3})?|"
    r"(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}"
)
_WRITTEN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[A-Za-z]{6}[ -]?\d\d[A-Za-z]\d\d[ -]?[A-Za-z]\d{3}[A-Za-z]|"
    r"\d{6}[-+Aa]\d{3}[0-9A-Ya-y]|"
    r"[XYZxyz][ -]?\d{7}[ -]?[A-Za-z]|\d{8}[ -]?[A-Za-z]|\d{17}[Xx]|\d{6} \d{8} \d{3}[Xx]|"
    r"[12] ?\d\d ?\d\d ?2[AaBb] ?\d{3} ?\d{3} ?\d\d)(?![0-9A-Za-z])"
)
_IBAN: Final = re.compile(
    r"[A-Za-z]{2}[ .\t\n-]{0,2}\d[ .\t\n-]?\d(?:[ .\t\n-]{0,2}[0-9A-Za-z]){11,30}"
)
_IBAN_BEGIN: Final = re.compile(r"(?<![0-9A-Za-z])[A-Za-z]{2}[ .\t\n-]{0,2}\d[ .\t\n-]?\d")
_AT: Final = r"(?: ?@ ?| ?[\[({<] ?(?:at|@) ?[\])}>] ?)"
_DOT: Final = r"(?:\.| \. | ?[\[({] ?(?:dot|\.) ?[\])}] ?)"
_EMAIL: Final = re.compile(
    rf"([\w.%+'-]{{1,64}}){_AT}((?:[\w-]{{1,63}}{_DOT}){{1,6}})(xn--[a-z0-9-]{{2,40}}|[a-z]{{2,24}})(?![\w(@]|-\w|\.\w+\()",
    re.IGNORECASE,
)
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
_LINE_ENDS: Final = frozenset("\r\n")
_BESIDE: Final = 120  # characters before a number in which a word may name it
_SPREAD: Final = 400  # that a key may take with blanks between its characters


def _digits(text: str) -> str:
    return "".join(_GROUP.findall(text))


def find_numbers(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield cards, numbers of people and telephone numbers among the digits of a text."""
    hints = NumberHints(text)
    for match in _matches(_NUMBER, text, places, (80, 100)):
        if _DATE.match(match[0]) is not None:
            continue
        written, start = _whole_groups(text, match)
        cards = list(_cards_in(written, start))
        if cards:
            yield from cards
        elif text[max(0, start - 1) : start] not in ("#", ".") or start == 0:
            yield from _named_numbers(text, written, start, hints)


def _matches(
    pattern: re.Pattern[str], text: str, places: Sequence[int], reach: tuple[int, int]
) -> Iterator[re.Match[str]]:
    """Yield what matches around the places."""
    for begin, end in stretches(places, *reach):
        yield from pattern.finditer(text, begin, end)


def _whole_groups(text: str, match: re.Match[str]) -> tuple[str, int]:
    """Return what was matched without groups of digits that are a part of a longer word."""
    start, end = match.span()
    if start and text[start - 1].isalnum() and not _CONTROL.search(text, max(0, start - 2), start):
        first = _GROUP.search(text, start)
        start = end if first is None else first.end()
        while start < end and not text[start].isdigit():
            start += 1
    if text[end : end + 1].isalnum():
        while end > start and text[end - 1].isdigit():
            end -= 1
        while end > start and not text[end - 1].isdigit():
            end -= 1
    return text[start:end], start


def _named_numbers(text: str, written: str, start: int, hints: NumberHints) -> Iterator[Span]:
    if len(written) < 7:
        return
    for stretch, at in _readings(written, start):
        number, end = _digits(stretch), at + len(stretch)
        if not hints.may_be_named(stretch, len(number)):
            continue
        beside = text[max(0, at - _BESIDE) : end + 60]
        if 9 <= len(number) <= 18 and find_country(number, stretch.strip("+("), beside):
            yield Span("national_id", at, end, number)
            return
        if 7 <= len(number) <= 17 and is_telephone(stretch, text[max(0, at - 40) : at]):
            yield Span("phone", at, end, number)
            return


def find_written_ids(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield numbers of people that have letters in them."""
    for match in _matches(_WRITTEN, text, places, (24, 16)):
        number = re.sub(r"[ -](?!\d{3}[0-9A-Ya-y]$)", "", match[0])
        if find_country(number, match[0], ""):
            yield Span("national_id", *match.span(), number.upper())
        elif find_country(plain := re.sub("[ -]", "", match[0]), match[0], ""):
            yield Span("national_id", *match.span(), plain.upper())


def _readings(written: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield the whole, then its lines: what stands in two lines may be one number or two."""
    yield written, start
    if "\n" in written or "  " in written or "\t" in written:
        for match in re.finditer(r"[^\n\r\t]+?(?=\s{2}|[\n\r\t]|$)", written):
            if len(match[0].strip()) >= 7 and match[0] != written:
                shift = len(match[0]) - len(match[0].lstrip())
                yield match[0].strip(), start + match.start() + shift


def _cards_in(written: str, start: int) -> Iterator[Span]:
    """Yield card numbers among groups of digits: they begin and end with a group.

    Many groups are a table: there the number must be at one of its ends, and in one line.
    """
    total = len(_digits(written))
    if total < 12:
        return
    groups = list(_GROUP.finditer(written))
    last = -1
    for first, group in enumerate(groups):
        if first <= last:
            continue
        digits = ""
        for final in range(first, min(first + 19, len(groups))):
            digits += groups[final][0]
            if len(digits) > 19:
                break
            if len(digits) < 12 or not _CARDS.fullmatch(digits) or not is_luhn(digits):
                continue
            stretch = written[group.start() : groups[final].end()]
            whole = first == 0 and final == len(groups) - 1 and _is_one_number(stretch)
            at_end = first == 0 or final == len(groups) - 1 or total <= 32
            if whole or (at_end and _is_even(stretch)):
                yield Span("card", start + group.start(), start + groups[final].end(), digits)
                last = final
                break


def _is_one_number(stretch: str) -> bool:
    """Return whether ends of lines separate all of its groups, or none."""
    marks = set(re.sub(r"\d", "", stretch))
    return not marks & _LINE_ENDS or marks <= _LINE_ENDS


def _is_even(stretch: str) -> bool:
    """Return whether one kind of mark separates the groups, of one line."""
    marks = set(re.sub(r"\d", "", stretch))
    return not marks & {"\n", "\r", "\t", "(", ")"} and (len(marks) < 2 or marks <= {" ", "-"})


def find_ibans(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield account numbers with the length of their country and two right check digits."""
    for begin in _matches(_IBAN_BEGIN, text, places, (26, 0)):
        match = _IBAN.match(text, begin.start())
        if match is None or begin[0][:2].upper() not in IBAN_LENGTHS:
            continue
        plain, spots = "", []
        for place, letter in enumerate(match[0], match.start()):
            if letter.isalnum():
                plain += letter.upper()
                spots.append(place)
        size = IBAN_LENGTHS[plain[:2]]
        if "-" in match[0] and not _is_in_fours(match[0]):
            continue
        if len(plain) < size or not is_iban(plain[:size]):
            continue
        ends = spots[size - 1] + 1
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
        domain = re.sub(r"[\[({] ?(?:dot|\.) ?[\])}]", ".", match[2], flags=re.IGNORECASE)
        domain = re.sub(r"[^\w.-]", "", domain)
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
    if re.match(r"\d+x\.", match[2]):  # icon@2x.png
        return False
    if " " not in whole:
        return True
    return any(mark in whole for mark in "[({") or " . " in match[2] or match[3].islower()


def find_addresses(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield addresses of hosts by number, but for the host itself and masks."""
    for match in _matches(_IPV4, text, places, (40, 24)):
        plain = re.sub(r"[^\d.]", "", match[0])
        if plain in _LOCAL or _VERSION.search(text, max(0, match.start() - 16), match.start()):
            continue
        try:
            IPv4Address(plain)
        except AddressValueError:
            continue
        yield Span("ip", *match.span(), plain)
    for match in _matches(_IPV6, text, places, (24, 40)):
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


# Signs are as short as they can be told by: the engine is many times faster with such ones.
_NUMBER_SIGN: Final = r"[0-9](?:[ \t\r\n./()_-]{0,3}[0-9]){6}[^0-9]"
_IBAN_SIGN: Final = (
    r"[A-Za-z]{2}[ .\t\n-]?[0-9] ?[0-9][ .\t\n-]?[A-Za-z0-9](?:[ .\t\n-]?[A-Za-z0-9]){6}"
)

DETECTORS: Final = (
    Detector(frozenset(("card", "national_id", "phone")), (_NUMBER_SIGN,), find_numbers),
    Detector(
        frozenset(("national_id",)),
        (
            "[0-9][A-Za-z][0-9][0-9][ -]?[A-Za-z][0-9]{3}[A-Za-z]",
            "[0-9]{6}[-+Aa][0-9]{3}",
            "[0-9]{7}[ -]?[A-Za-z]",
            "[0-9]{3} ?2[AaBb] ?[0-9]{3}",
        ),
        find_written_ids,
    ),
    Detector(frozenset(("iban",)), (_IBAN_SIGN,), find_ibans),
    Detector(frozenset(("email",)), ("@", r"[\[({<] ?[aA][tT] ?[\])}>]"), find_emails),
    Detector(
        frozenset(("ip",)),
        (
            r"[0-9]\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]",
            r"[0-9](?: ?[\[(]\.[\])] ?| \. )[0-9]",
            "[0-9A-Fa-f]:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]",
            "[23f][0-9a-fA-F]{3}::",
        ),
        find_addresses,
    ),
    Detector(frozenset(("secret",)), tuple(entry.sign for entry in SECRET_FORMATS), find_secrets),
    Detector(frozenset(("random_secret",)), (*ASSIGNED_SIGNS, URL_SIGN), find_assignments),
)
