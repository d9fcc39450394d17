"""Numbers of people, telephones and cards among digits, around the places where signs end."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.content.cards import cards_in, find_cards, find_runs
from gateway.content.national_ids import find_country
from gateway.content.number_signs import PERSON_WORDS, TELEPHONE_WORDS
from gateway.content.spans import Span, matches_around
from gateway.content.spread_ids import find_spread
from gateway.content.telephone import is_telephone

_SEPARATORS: Final = r"[ \t\r\n./()_-]"
_NUMBER: Final = re.compile(rf"[+(]{{0,2}}\d(?:{_SEPARATORS}{{0,3}}\d){{6,63}}")
# A day, and a time behind it that ends the digits of a line of a log.
_DATE: Final = re.compile(r"(?:19|20)\d\d-[01]\d-[0-3]\d(?:[ T]\d\d)?\Z")
_CONTROL: Final = re.compile(r"\\[nrt]\Z")
_GROUP: Final = re.compile(r"\d+")
_WRITTEN: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[A-Za-z]{6}[ -]?\d\d[A-Za-z]\d\d[ -]?[A-Za-z]\d{3}[A-Za-z]|"
    r"\d{6}[-+Aa]\d{3}[0-9A-Ya-y]|"
    r"[XYZxyz][ -]?\d{7}[ -]?[A-Za-z]|\d{8}[ -]?[A-Za-z]|\d{17}[Xx]|\d{6} \d{8} \d{3}[Xx]|"
    r"[12] ?\d\d ?\d\d ?2[AaBb] ?\d{3} ?\d{3} ?\d\d)(?![0-9A-Za-z])"
)
_RUN: Final = "0123456789 \t\r\n./()_-+"
_LINE: Final = re.compile(r"\s*[\r\n\t]\s*")
_COLUMN: Final = re.compile(r"\s{2,}|[\r\n\t]")
_BLANK: Final = re.compile(r"\s+")
_LONGEST: Final = 80  # characters of a run of digits: a longer one is a table
_WEAK: Final = re.compile(rf"(?<!\d)\d(?:{_SEPARATORS}{{0,3}}\d){{8,13}}(?!\d)")
_SHAPED: Final = re.compile(
    r"(?:(?<![0-9A-Za-z])|(?<=\\[nrt]))(?:\d{13}|\d{15}|\d{18}|\d{3}-\d\d-\d{4}|"
    r"\d{6}[-+ ]\d{4,5}|\d{6} \d{8} \d{3}|"
    r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d|\d{3}\.\d{4}\.\d{4}\.\d\d|\d{3}\.\d{3}\.\d{3}-\d\d|"
    r"\d{3}\)? ?[ .-]\d{3}[ .-]\d{4}|"
    r"\d[ .-]{1,2}\d\d[ .-]\d\d[ .-]\d\d[ .-]\d{3}[ .-]\d{3}.*)(?![0-9A-Za-z])"
)
_SHAPE_MOST: Final = 28
_NAMED_BEFORE, _NAMED_BEHIND = 110, 150  # characters around a word that names a number
_BEHIND: Final = 64  # characters behind the eighth digit of a telephone
_SPREAD_PHONE: Final = re.compile(
    r"(?:\+[^0-9A-Za-z]{0,5}|(?<![0-9A-Za-z])00)[1-9]"
    r"(?:[^0-9A-Za-z\x1e\x1f]{0,5}[0-9]){7,14}(?![0-9A-Za-z])"
)
_BESIDE: Final = 120  # characters before a number in which a word may name it


_NAMES: Final = re.compile(
    re.sub(
        r"\\xc[2-5]\\x[89ab][0-9a-f]",  # signs are in UTF-8
        lambda match: bytes.fromhex(match[0].replace("\\x", "")).decode(),
        rf"(?i)(?<![a-z])(?:my number|{TELEPHONE_WORDS}|{'|'.join(PERSON_WORDS)})",
    )
)


def _digits(text: str) -> str:
    return "".join(_GROUP.findall(text))


def is_named(before: str) -> bool:
    """Return whether a word that names a number of a person or a telephone stands in a text."""
    return _NAMES.search(before) is not None


def find_card_spans(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield cards."""
    for card in find_cards(text, places):
        yield Span("card", *card)


def find_uneven_cards(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield cards in uneven groups."""
    for card in find_runs(text, places):
        yield Span("card", *card)


def find_numbers(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield cards, numbers of people and telephone numbers among the digits around the places."""
    last = -1
    for place in places:
        if place <= last:
            continue
        at = place - (not text[place - 1 : place].isdigit())  # behind a digit, or a mark
        match = _number_at(text, at)
        if match is None or _DATE.match(match[0]) is not None:
            continue
        written, start = _whole_groups(text, match)
        if len(written) <= _LONGEST:
            last = match.end()
            cards = [Span("card", *card) for card in cards_in(written, start)]
            if cards:
                yield from cards
                continue
        if text[max(0, start - 1) : start] not in ("#", ".") or start == 0:
            yield from _named_numbers(text, written, start, at)


def _number_at(text: str, place: int) -> re.Match[str] | None:
    """Return the number that a sign at the place ends in, or right behind."""
    first = max(0, place - 80)
    begin = first + len(text[first:place].rstrip(_RUN))
    while begin == first > 0 and text[begin - 1].isdigit() and text[begin].isdigit():
        first = begin = begin + 1
    for match in _NUMBER.finditer(text, begin, place + 100):
        if match.end() >= place:
            return match if match.start() < place else None
    return None


def find_shaped(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield numbers in forms that tell by themselves what they are."""
    for place in places:
        if _SHAPED.search(text, max(0, place - _SHAPE_MOST), place + 6) is not None:
            yield from find_numbers(text, (place,))


def find_named(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield numbers of people around words that name one."""
    seen, done = set[int](), set[int]()
    for place in places:
        around = max(0, place - _NAMED_BEFORE), place + _NAMED_BEHIND
        for match in _WEAK.finditer(text, *around):
            if match.start() in seen:
                continue
            seen.add(match.start())
            if _DATE.match(match[0]) is None:
                written, start = _whole_groups(text, match)
                for span in _named_numbers(text, written, start, len(written) + start):
                    done.add(span.end)
                    yield span
        for begin, end, number in find_spread(text, *around):
            if end not in done:
                done.add(end)
                yield Span("national_id", begin, end, number)


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


def _named_numbers(text: str, written: str, start: int, place: int) -> Iterator[Span]:
    for begin, end in _readings(written, place - start):
        stretch, at = written[begin:end], start + begin
        number, finish = _digits(stretch), start + end
        if not 7 <= len(number) <= 18:
            continue
        beside = text[max(0, at - _BESIDE) : finish + 60]
        if len(number) >= 9 and find_country(number, stretch.strip("+("), beside):
            yield Span("national_id", at, finish, number)
            return
        if len(number) <= 17 and is_telephone(stretch, text[max(0, at - 40) : at]):
            yield Span("phone", at, finish, number)
            return


def find_telephones(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield what numbers there are, and telephones with a country's code that a word names.

    In those any marks may stand.
    """
    found = list(find_numbers(text, places))
    yield from found
    done = max((span.end for span in found), default=-1)
    for place in places:
        begin = max(0, place - _NAMED_BEFORE)
        for match in _SPREAD_PHONE.finditer(text, begin, place + _BEHIND):
            number = _digits(match[0]).removeprefix("00")
            if match.start() < done or match.end() < place or not is_telephone(f"+{number}", ""):
                continue
            if is_named(text[begin : match.start()]):
                done = match.end()
                yield Span("phone", match.start(), done, number)


def find_written_ids(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield numbers of people that have letters in them."""
    for match in matches_around(_WRITTEN, text, places, (24, 16)):
        number = re.sub(r"[ -](?!\d{3}[0-9A-Ya-y]$)", "", match[0])
        if find_country(number, match[0], ""):
            yield Span("national_id", *match.span(), number.upper())
        elif find_country(plain := re.sub("[ -]", "", match[0]), match[0], ""):
            yield Span("national_id", *match.span(), plain.upper())


def _readings(written: str, place: int) -> list[tuple[int, int]]:
    """Return the whole, and what stands at a place in it: its line, its column, its word.

    What stands in two lines may be one number or two.
    """
    readings = [(0, len(written))]
    for border in (_LINE, _COLUMN, _BLANK):
        begin, end = 0, len(written)
        for match in border.finditer(written):
            if match.end() >= place:
                end = match.start() if match.start() >= place else end
                break
            begin = match.end()
        if (begin, end) not in readings:
            readings.append((begin, end))
    return readings
