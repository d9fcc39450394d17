"""Cards among digits: in one group, in groups of a card, on two lines, and in cells of a table."""

import re
import string
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gateway.content.checksums import is_ean, is_luhn

_GROUP: Final = re.compile(r"\d+")
_CARDS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|"
    r"3[47]\d{13}|3(?:0[0-5]|095|[689]\d)\d{11}|3(?:52[89]|5[3-8]\d)\d{12}|"
    r"(?:6011|65\d\d|64[4-9]\d|62\d\d|60\d\d|50[1-9]\d|81\d\d)\d{12}(?:\d{3})?|"
    r"(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}"
)
_DECIMAL: Final = re.compile(r"(?:^|[ \t])\d{1,3}\.\d+[ \t]|[ \t]\d{1,3}\.\d+$")
_LEAST, _MOST = 12, 19
_GROUPS_MOST: Final = 19
_LINE_ENDS: Final = frozenset("\r\n")
_DATE: Final = re.compile(r"(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)")
_SIGNS: Final = "".join(map(chr, range(0x2010, 0x27C0)))  # dashes, arrows, bullets, bars
_RUN: Final = f"{string.digits}{string.punctuation} \t\r\n\u00ab\u00b0\u00b6\u00bb{_SIGNS}"
_LINED: Final = "0123456789 \t/()_|-"
_DATED: Final = 48  # characters before a sign in which a date makes it a line of a log
_SIGN_MOST: Final = 5  # marks behind the last digit of a sign
_BEFORE, _BEHIND = 96, 64  # characters of a run that are looked at
_RUN_MOST: Final = 1024  # of a run whose groups are looked at once
_GAP_MOST: Final = 5  # marks between two groups
_LINE_MOST: Final = 3  # where a card goes on in another line
_FEW: Final = 32  # digits: more in one line are a table
_WORD: Final = 24  # characters of a word that digits are glued to
_GLUED: Final = frozenset(range(13, 17))
_HEXADECIMAL: Final = frozenset("abcdefABCDEF")
_EAN: Final = 13  # digits on goods, and on cards of long ago
_NAME: Final = re.compile(r"(?i:card|visa|karte|carte|tarjeta|carta|kort)")
_NAMED: Final = 40  # characters before a number
_CLOSE: Final = frozenset((" ", "-", ".", "\u00a0"))  # beside a card other numbers stand so, too
_ROW_MOST: Final = 2  # numbers of a row beside four that may be a card
_ROW_SIZE: Final = 3  # digits of such a number
_UNSPACED: Final = "\u2e80"  # from here on scripts have no blanks between words
_STRIP: Final = re.compile(r"[\^=]|D\d{7}")  # what stands behind it on a magnetic strip
_USUAL_MARKS: Final = " -.\t\r\n/|_()"  # between groups of a card; commas are between numbers
_BEGINS: Final = frozenset((4, 8))  # a longer group may stand behind one of these
_FOURS: Final = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4))
_JOINED: Final = frozenset(
    joined
    for sizes in _FOURS
    for cut in range(len(sizes) - 1)
    for joined in (
        (*sizes[:cut], sizes[cut] + sizes[cut + 1], *sizes[cut + 2 :]),
        (sum(sizes[: cut + 1]), sum(sizes[cut + 1 :])),
    )
)


class CardPlace(NamedTuple):
    """A card from `start` to `end`, and its digits alone."""

    start: int
    end: int
    digits: str


def find_cards(text: str, places: Sequence[int]) -> Iterator[CardPlace]:
    """Yield cards in the runs of digits around the places, which rise.

    Each group of a run is tried once as the first of a card, however many signs end near it.
    """
    groups: Sequence[re.Match[str]] = ()
    done = behind = -1
    tried = 0
    for place in places:
        if place <= done:
            continue
        if place > behind:
            groups, behind = _run_around(text, place)
            tried = 0
        firsts = _firsts(groups, _last_digit(text, place), tried)
        tried = firsts.stop
        for number in firsts:
            card = _card_from(text, groups, number)
            if card is not None and card.start >= done:
                yield card
                done = card.end
                tried = bisect_left(groups, done, lo=number, key=_start_of)
                break


def find_runs(text: str, places: Sequence[int]) -> Iterator[CardPlace]:
    """Yield cards in uneven groups, which are all that stands around the places in their lines."""
    done = -1
    for place in places:
        if place <= done or _DATE.search(text, max(0, place - _DATED), place):
            continue
        groups = _groups_around(text, place, _LINED)
        digits = "".join(group[0] for group in groups)
        if len(groups) < 2 or not _CARDS.fullmatch(digits) or not is_luhn(digits):
            continue
        begin, done = groups[0].start(), groups[-1].end()
        gaps = {_gap(text, groups, number) for number in range(len(groups) - 1)}
        if len(gaps) == 1 or all(gap.strip(" -") == "" for gap in gaps):
            yield CardPlace(begin, done, digits)


def cards_in(written: str, start: int) -> Iterator[CardPlace]:
    """Yield card numbers among groups of digits: they begin and end with a group.

    Many groups are a table: there the number must be at one of its ends, and in one line.
    """
    groups = list(_GROUP.finditer(written))
    total = sum(group.end() - group.start() for group in groups)
    if total < _LEAST:
        return
    last = -1
    for first in range(len(groups)):
        if first <= last:
            continue
        for final, digits in _candidates(groups, first):
            begin, end = groups[first].start(), groups[final].end()
            stretch = written[begin:end]
            whole = first == 0 and final == len(groups) - 1 and _is_one_number(stretch)
            at_end = first == 0 or final == len(groups) - 1 or total <= _FEW
            sizes = tuple(len(group[0]) for group in groups[first : final + 1])
            even = at_end and _is_even(stretch) and _are_even(sizes)
            if _is_decimal(stretch) or _DECIMAL.search(stretch):
                continue
            if (whole and not _DATE.search(stretch)) or (
                even and not _is_fraction(written, begin, end)
            ):
                yield CardPlace(start + begin, start + end, digits)
                last = final
                break


def _candidates(
    groups: Sequence[re.Match[str]], first: int, *, even: bool = False
) -> Iterator[tuple[int, str]]:
    """Yield the last group and the digits of what may be a card from a group on.

    `even`: of groups of one size with a rest, or as American cards are written.
    """
    digits = groups[first][0]
    size = len(digits)
    if digits[0] in "0179":
        return
    for final in range(first, min(first + _GROUPS_MOST, len(groups))):
        if final > first:
            digits += groups[final][0]
            if even and len(digits) > size * (final - first + 1) and size not in _BEGINS:
                return
        if len(digits) > _MOST:
            return
        if even and len(digits) < size * (final - first + 1) and len(digits) < _LEAST:
            return
        if len(digits) >= _LEAST and _CARDS.fullmatch(digits) and is_luhn(digits):
            yield final, digits


def _is_one_number(stretch: str) -> bool:
    """Return whether ends of lines separate all of its groups, or none."""
    marks = set(re.sub(r"\d", "", stretch))
    return not marks & _LINE_ENDS or marks <= _LINE_ENDS


def _is_even(stretch: str) -> bool:
    """Return whether one kind of mark separates the groups, of one line."""
    marks = set(re.sub(r"\d", "", stretch))
    return not marks & {"\n", "\r", "\t", "(", ")"} and (len(marks) < 2 or marks <= {" ", "-"})


def _is_fraction(text: str, begin: int, end: int) -> bool:
    """Return whether one group is what stands behind the point of a number."""
    return (
        begin > 1
        and text[begin - 1] == "."
        and text[begin - 2].isdigit()
        and (text[begin:end].isdigit())
    )


def _is_decimal(stretch: str) -> bool:
    """Return whether two groups and a point are one number."""
    return stretch.count(".") == 1 and stretch.replace(".", "", 1).isdigit()


def _groups_around(text: str, place: int, run: str, reach: int = _BEHIND) -> list[re.Match[str]]:
    """Return the whole groups of the run of digits and marks that a sign at a place ends in."""
    place = _last_digit(text, place)
    first, last = max(0, place - _BEFORE), min(len(text), place + reach)
    begin = first + len(text[first:place].rstrip(run))
    behind = text[place:last]
    end = place + len(behind) - len(behind.lstrip(run))
    groups = list(_GROUP.finditer(text, begin, end))
    if groups and groups[0].start() == first > 0 and text[first - 1].isdigit():
        del groups[0]
    if groups and groups[-1].end() == last < len(text) and text[last].isdigit():
        del groups[-1]
    return groups


def _last_digit(text: str, place: int) -> int:
    """Return where the last digit before a place ends: a sign ends behind one, or in a number."""
    least = max(0, place - _SIGN_MOST)
    while place > least and not text[place - 1 : place].isdigit():
        place -= 1
    return place


def _run_around(text: str, place: int) -> tuple[Sequence[re.Match[str]], int]:
    """Return the groups of a run of digits and marks around a place, and where it is cut or ends.

    It is cut at a size that holds a whole card behind each sign, and reaches as far before one.
    """
    place = _last_digit(text, place)
    groups = _groups_around(text, place, _RUN, _RUN_MOST)
    end = groups[-1].end() if groups else place
    return groups, end - _BEHIND if end > place + _RUN_MOST - _BEFORE else end


def _card_from(text: str, groups: Sequence[re.Match[str]], number: int) -> CardPlace | None:
    """Return a card that begins with this group of a run."""
    if not _may_begin(groups, number):
        return None
    group = groups[number]
    if group.end() - group.start() < _LEAST and _is_inner(text, groups, number):
        return None
    for final, digits in _candidates(groups, number, even=True):
        if _is_card(text, groups, number, final):
            return CardPlace(groups[number].start(), groups[final].end(), digits)
    return None


def _is_inner(text: str, groups: Sequence[re.Match[str]], number: int) -> bool:
    """Return whether a group goes on a row of groups of its size: no card begins there."""
    if not 0 < number < len(groups) - 1:
        return False
    size = groups[number].end() - groups[number].start()
    before = groups[number - 1]
    if before.end() - before.start() != size:
        return False
    return _gap(text, groups, number - 1) == _gap(text, groups, number)


def _start_of(group: re.Match[str]) -> int:
    return group.start()


def _firsts(groups: Sequence[re.Match[str]], place: int, tried: int) -> range:
    """Return the groups not tried yet that a card may begin with which reaches to the place."""
    last = bisect_left(groups, place, key=_start_of)
    first, digits = last, 0
    while first > tried and digits <= _MOST:
        first -= 1
        digits += groups[first].end() - groups[first].start()
    return range(first, last)


def _may_begin(groups: Sequence[re.Match[str]], number: int) -> bool:
    """Return whether a group may be the first of a card: in a table most are none."""
    first = groups[number][0]
    if first[0] in "0179":
        return False
    if len(first) >= _LEAST:
        return True
    behind = groups[number + 1][0] if number + 1 < len(groups) else ""
    return behind != "" and (len(behind) <= len(first) or len(first) in _BEGINS)


def _is_card(text: str, groups: Sequence[re.Match[str]], first: int, final: int) -> bool:
    begin, end = groups[first].start(), groups[final].end()
    if _is_decimal(text[begin:end]):
        return False
    if first == final:
        is_of_goods = end - begin == _EAN and is_ean(text[begin:end])
        is_alone = not _is_fraction(text, begin, end) and _stands_alone(text, begin, end)
        return is_alone and (not is_of_goods or _is_named(text, begin))
    if _is_letter(text, begin - 1) or _is_letter(text, end):
        return False
    gaps = [_gap(text, groups, number) for number in range(first, final)]
    sizes = tuple(len(group[0]) for group in groups[first : final + 1])
    if not _are_even(sizes) or max(map(len, gaps)) > _GAP_MOST or not _are_alike(gaps, sizes):
        return False
    return not (
        _is_in_row(text, groups, first, final, gaps)
        or _goes_on(text, groups, first, final, gaps[0])
    )


def _is_named(text: str, begin: int) -> bool:
    """Return whether a word before it says that a number of as many digits as goods have is one."""
    return _NAME.search(text, max(0, begin - _NAMED), begin) is not None


def _is_in_row(
    text: str, groups: Sequence[re.Match[str]], first: int, final: int, gaps: Sequence[str]
) -> bool:
    """Return whether more numbers stand in its row of a table: a date and a code may."""
    inner = next((gap for gap in gaps if _LINE_ENDS.isdisjoint(gap)), "")
    if not inner or (inner in _CLOSE and len(set(gaps)) == 1):
        return False
    beside = 0
    for step, start in ((-1, first), (1, final)):
        at = start
        while 0 <= at + step < len(groups) and beside < _ROW_MOST:
            if _gap(text, groups, min(at, at + step)) != inner:
                break
            at += step
            beside += len(groups[at][0]) >= _ROW_SIZE
    return beside >= (_ROW_MOST if len(set(gaps)) == 1 else 1)


def _are_even(sizes: tuple[int, ...]) -> bool:
    """Return whether groups are as on cards, or of one size with a rest behind them.

    Where parts of a text are put together, two groups may be one.
    """
    if sizes in _FOURS or (len(set(sizes[:-1])) < 2 and sizes[-1] <= sizes[0]):
        return True
    return sizes in _JOINED


def _gap(text: str, groups: Sequence[re.Match[str]], number: int) -> str:
    return text[groups[number].end() : groups[number + 1].start()]


def _are_alike(gaps: Sequence[str], sizes: tuple[int, ...]) -> bool:
    """Return whether the same marks stand between groups; a card in fours may go on in a line."""
    kinds = set(gaps)
    if sizes[0] == 2 and " -" in kinds:
        return False  # numbers below nought
    if len(kinds) == 1 or all(gap.strip(" -") == "" for gap in gaps):
        return True
    broken = [gap for gap in gaps if not _LINE_ENDS.isdisjoint(gap)]
    # More marks than these are between rows of a table.
    return sizes in _FOURS and len(broken) == 1 and len(kinds) == 2 and len(broken[0]) <= _LINE_MOST


def _goes_on(text: str, groups: Sequence[re.Match[str]], first: int, final: int, gap: str) -> bool:
    """Return whether more groups of this size and between these marks stand beside: a table."""
    size = len(groups[first][0])
    if first and _gap(text, groups, first - 1) == gap and len(groups[first - 1][0]) == size:
        return True
    behind = final + 1 < len(groups) and _gap(text, groups, final) == gap
    if behind and len(groups[final + 1][0]) == size == len(groups[final][0]):
        return True
    mark = gap.strip(_USUAL_MARKS)
    if not mark:
        return False
    beside = [number for number in (first - 1, final) if 0 <= number < len(groups) - 1]
    in_row = size > 1 and any(map(_LINE_ENDS.isdisjoint, (gap, _gap(text, groups, final - 1))))
    if in_row and any(mark in _gap(text, groups, number) for number in beside):
        return True
    return _is_row(text, groups, first, final, gap)


def _is_row(text: str, groups: Sequence[re.Match[str]], first: int, final: int, gap: str) -> bool:
    """Return whether a line beside has groups alike: numbers with commas are a table's row."""
    size = len(groups[first][0])
    return any(
        0 <= number < beside < len(groups)
        and _gap(text, groups, number) == gap
        and len(groups[number][0]) == len(groups[beside][0]) == size
        for number, beside in ((final + 1, final + 2), (first - 2, first - 1))
    )


def _is_letter(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place].isalpha() and text[place] < _UNSPACED


def _stands_alone(text: str, begin: int, end: int) -> bool:
    """Return whether digits are a word, or at an end of one that is no hexadecimal number."""
    before, behind = text[max(0, begin - _WORD) : begin], text[end : end + _WORD]
    front, rear = _last_word(before), _first_word(behind)
    if not front and not rear:
        return True
    if front in ("", "B", "b") and _STRIP.match(behind):
        return True
    if end - begin not in _GLUED:
        return False
    letters = {letter for letter in front + rear if letter.isalpha()}
    return not _HEXADECIMAL.issuperset(letters)


def _last_word(text: str) -> str:
    at = len(text)
    while at and text[at - 1].isalnum():
        at -= 1
    return text[at:]


def _first_word(text: str) -> str:
    at = 0
    while at < len(text) and text[at].isalnum():
        at += 1
    return text[:at]
