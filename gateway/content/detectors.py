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
from gateway.content.emails import EMAIL_SIGNS, find_emails
from gateway.content.number_signs import (
    ACCOUNT_BRACKET,
    ACCOUNT_SIGNS,
    ACCOUNT_WORD,
    ADDRESS_SIGN,
    CARD_SIGNS,
    FRENCH_SIGN,
    NUMBER_SIGNS,
    PERSON_SIGN,
    RUN_SIGN,
    SIXTH_SIGNS,
    SPREAD_SIGNS,
    TELEPHONE_SIGNS,
    WRITTEN_SIGNS,
)
from gateway.content.numbers import (
    find_card_spans,
    find_named,
    find_shaped,
    find_telephones,
    find_uneven_cards,
    find_written_ids,
)
from gateway.content.secret_formats import (
    ASSIGNED_SIGNS,
    KEY_END_SIGN,
    SECRET_FORMATS,
    URL_SIGN,
    find_assigned,
    find_key_ends,
)
from gateway.content.spans import Span, matches_around


@dataclass(frozen=True, slots=True)
class Detector:
    """`kinds`: what it may find. `find` gets a text, and where in it signs end.

    `signs` are led by letters and marks, `digit_signs` by digits, `word_signs` by what begins with
    a word or a line: each sort has an engine, which is fast with one sort alone. `has_words`: its
    signs name numbers.
    """

    kinds: frozenset[str]
    find: Callable[[str, Sequence[int]], Iterator[Span]]
    signs: tuple[str, ...] = ()
    digit_signs: tuple[str, ...] = ()
    word_signs: tuple[str, ...] = ()
    has_words: bool = False


_MARK: Final = r"[\t\n\r -/:-@\[-`{-~\u2010-\u27bf]"  # no letter of any script
_IBAN: Final = re.compile(
    rf"[A-Za-z]{_MARK}{{0,3}}[A-Za-z]{_MARK}{{0,3}}\d{_MARK}{{0,3}}\d(?:{_MARK}{{0,5}}[0-9A-Za-z]){{11,30}}"
)
_IBAN_BEGIN: Final = re.compile(
    rf"(?:(?<![0-9A-Za-z])|(?<=[Nn])(?<=[Ii][Bb][Aa][Nn]))([A-Za-z]){_MARK}{{0,3}}([A-Za-z])"
    rf"{_MARK}{{0,3}}\d{_MARK}{{0,3}}\d"
)
_UUID: Final = re.compile(r"[0-9A-Za-z]{8}(?:-[0-9A-Za-z]{4}){3}-[0-9A-Za-z]{8,12}")
_UUID_SIZE: Final = 36
_IPV4: Final = re.compile(
    r"(?<![\w.+-])(?<!v)\d{1,3}(?:(?:\.| ?\[\.\] ?| ?\(\.\) ?| \. )\d{1,3}){3}"
    r"(?![\w-]|\.\d|/\d{1,2}(?!\d))"
)
_VERSION: Final = re.compile(
    r"(?:version|ver\.?|release|build|revision|oid|section|chapter)[ :=\"']{0,4}$", re.IGNORECASE
)
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![\w:])")
_IBAN_REACH: Final = 48  # characters from its beginning to where a sign may end
_LOCAL: Final = (
    "127.0.0.1",
    "0.0.0.0",
    "255.255.255.255",
    "255.255.255.0",
    "255.255.0.0",
    "255.0.0.0",
)
_SPREAD: Final = 400  # that a key may take with blanks between its characters
# Also what quotations, shells and code put where a line is broken.
_BREAKS: Final = frozenset(" \t\r\n\f\v\\>\"'+&|,")
_PLAIN_WORD: Final = re.compile(r"\s[A-Za-z]?[a-z]{1,15}(?![0-9A-Za-z_-])")
_WORD_OF_KEY: Final = re.compile(r"\S+")
_MARKS_BETWEEN: Final = frozenset("-_/.*:~|,;#")
_KEY_PIECE: Final = re.compile(r"[A-Za-z0-9_+/=-]+")
# What stands between the pieces of a key, beside blanks and quotes.
_KEY_GAP: Final = re.compile(
    r"[\s\"'`,;+&|)\]}>.]{1,8}(?:(?:\d{1,2}[.):]|//|#|[*-]|\|)[\s\"'`]{1,3}|"
    r"[A-Za-z_]\w{0,7}(?:\.(?:push|append|add|write)\(|[\"']?\s?(?:\+?=|:)\s?)[\"'`]?|"
    r"(?:and )?(?:then|continues|goes on|followed by|next|ends)"
    r"(?: with| in| as)?[\s:]{1,2}[\"'`]?)?"
)
_BLANKS: Final = dict.fromkeys(map(ord, _BREAKS), " ")


def find_ibans(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield account numbers with the length of their country and two right check digits."""
    for begin in matches_around(_IBAN_BEGIN, text, places, (_IBAN_REACH, 0)):
        if (begin[1] + begin[2]).upper() not in IBAN_LENGTHS:
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
        if "-" in written and _is_in_uuid(text, match.start(), ends):
            continue
        is_named = text[max(0, match.start() - 4) : match.start()].upper() == "IBAN"
        if is_named or not text[ends : ends + 1].isalnum():
            yield Span("iban", match.start(), ends, plain[:size])


def _is_in_uuid(text: str, start: int, end: int) -> bool:
    """Return whether a stretch is a part of a UUID, or of a longer word in such groups."""
    return any(
        match.start() < end and start < match.end()
        for match in _UUID.finditer(text, max(0, start - _UUID_SIZE), end + _UUID_SIZE)
    )


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


def find_cut_keys(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield what is left of private keys whose beginning is missing."""
    for start, end in find_key_ends(text, places):
        yield Span("secret", start, end, text[start:end])


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
    last = min(len(text), start + _SPREAD)
    word = _PLAIN_WORD.search(text, start, last)  # what stands behind the key
    for until in (last, word.start() if word is not None else start):
        spots = [at for at in range(start, until) if text[at] not in _BREAKS]
        found = _FORMATS.match("".join(text[at] for at in spots))
        if found is None:
            continue
        end = spots[found.end() - 1] + 1
        if _is_spread(text[start:end]):
            return Span("secret", start, end, found[0])
    return _match_marked(text, start) or _match_pieces(text, start)


def _match_pieces(text: str, start: int) -> Span | None:
    """Return a key in pieces, with counters, calls or a word between them."""
    last = min(len(text), start + _SPREAD)
    whole, at, ends, pieces = "", start, list[int](), list[str]()
    while (piece := _KEY_PIECE.match(text, at, last)) is not None:
        whole += piece[0]
        pieces.append(piece[0])
        ends += range(piece.start() + 1, piece.end() + 1)
        if _FORMATS.match(whole) is not None or (gap := _KEY_GAP.match(text, piece.end())) is None:
            break
        at = gap.end()
    found = _FORMATS.match(whole)
    if found is None or at == start:
        return None
    end = ends[found.end() - 1]
    return Span("secret", start, end, found[0]) if _is_spread(" ".join(pieces)) else None


def _match_marked(text: str, start: int) -> Span | None:
    """Return a key with one mark more between its characters, again and again."""
    word = _WORD_OF_KEY.match(text, start, start + _SPREAD)
    assert word is not None  # a sign stands there
    for mark in set(word[0]) & _MARKS_BETWEEN:
        spots = [at for at in range(*word.span()) if text[at] != mark]
        found = _FORMATS.match("".join(text[at] for at in spots))
        if found is not None and _is_spread(word[0].replace(mark, " ")):
            return Span("secret", start, spots[found.end() - 1] + 1, found[0])
    return None


def _is_spread(stretch: str) -> bool:
    """Return whether pieces between blanks are parts of a key, and no words behind one."""
    pieces = stretch.translate(_BLANKS).split()[1:]
    return bool(pieces) and sum(
        any(map(str.isdigit, piece))
        or piece.isupper()
        or piece not in (piece.lower(), piece.capitalize())
        for piece in pieces
    ) * 2 >= len(pieces)


def find_assignments(text: str, places: Sequence[int]) -> Iterator[Span]:
    """Yield values that are called secret and look so."""
    for start, end in find_assigned(text, places):
        yield Span("random_secret", start, end, text[start:end])


DETECTORS: Final = (
    Detector(frozenset(("card",)), find_card_spans, digit_signs=CARD_SIGNS),
    Detector(frozenset(("card",)), find_uneven_cards, word_signs=(RUN_SIGN,)),
    Detector(frozenset(("card", "national_id", "phone")), find_shaped, digit_signs=NUMBER_SIGNS),
    Detector(
        frozenset(("card", "national_id", "phone")), find_telephones,
        signs=TELEPHONE_SIGNS, has_words=True,
    ),
    Detector(frozenset(("national_id",)), find_named, signs=(PERSON_SIGN,), has_words=True),
    Detector(
        frozenset(("national_id",)), find_written_ids,
        signs=(FRENCH_SIGN,), digit_signs=WRITTEN_SIGNS,
    ),
    Detector(
        frozenset(("iban",)), find_ibans,
        signs=(ACCOUNT_WORD, ACCOUNT_BRACKET), digit_signs=SPREAD_SIGNS, word_signs=ACCOUNT_SIGNS,
    ),
    Detector(frozenset(("email",)), find_emails, signs=EMAIL_SIGNS),
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
    Detector(frozenset(("secret",)), find_cut_keys, signs=(KEY_END_SIGN,)),
    Detector(frozenset(("random_secret",)), find_assignments, signs=(*ASSIGNED_SIGNS, URL_SIGN)),
)  # fmt: skip
