"""Search for the time zone of a bill's days in the bill itself.

A bill has only dates. Under the right offset, each day has at least the certain bookings and at
most what the ledger can explain. Under another offset, hours of traffic are on a day that lacks
them. Days are numbers since 1970, times are microseconds, money is pico-USD. This module does no
I/O.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.invoices.billed_periods import BilledAmount
from ledger.invoices.billing_days import LEAST_MINUTES, MOST_MINUTES, billing_day, day_start_us
from ledger.invoices.reconcile import model_of

# Minutes ahead of UTC of the existing zones without whole hours.
_PARTS_OF_HOURS = (-570, -210, 210, 270, 330, 345, 390, 525, 570, 630, 765)
CHANGE_MIN = 60  # minutes of a clock change, twice a year
LEAST_DAYS = 3  # minimum days of a bill to tell a clock change from a wrong day
OFFSETS = (*range(LEAST_MINUTES, MOST_MINUTES + 1, 60), *_PARTS_OF_HOURS)

_Span = tuple[int, int]  # first and last day
_Sums = dict[tuple[_Span, str], int]  # by span and model
_Faults = dict[int, set[_Span]]  # spans that cannot be true, by offset


class BookedTime(NamedTuple):
    """Cost of attempts of one model that began and ended at the same times.

    `sure_pusd` is certainly billed, on a day between both times; `most_pusd` is the maximum.
    """

    begun_us: int
    ended_us: int
    model: str
    sure_pusd: int
    most_pusd: int


class FittingOffsets(NamedTuple):
    """Offsets in minutes that fit a bill, empty if none does.

    With `changes`, they are the offsets before and after a clock change on one of its days.
    """

    minutes: tuple[int, ...]
    changes: bool = False


def fitting_offsets(
    amounts: Iterable[BilledAmount],
    days: _Span,
    booked: Sequence[BookedTime],
    rounding_pusd: int,
) -> FittingOffsets:
    """Return the offsets that explain the bill.

    First, offsets under which the bill has all certain bookings and nothing that the ledger cannot
    explain. If none: pairs before and after a clock change during the bill that do. If none:
    offsets, or pairs, under which the bill has all certain bookings, because it may include other
    traffic. `rounding_pusd` is the maximum rounding error of one day's lines of a model.
    """
    amounts = list(amounts)
    spans = _spans(amounts, days)
    models = {time.model for time in booked}
    billed: _Sums = {}
    for amount in amounts:
        name = model_of(amount.item)
        key = _span_at(spans, amount.day), name if name in models else ""
        billed[key] = billed.get(key, 0) + max(0, amount.pusd)
    short: _Faults = {}
    wrong: _Faults = {}
    for offset in OFFSETS:
        least, most = _booked_sums(booked, spans, offset)
        short[offset] = _lacking(billed, least, rounding_pusd)
        wrong[offset] = short[offset] | _exceeding(billed, most, rounding_pusd)
    bill = _Bill(billed, spans, booked, rounding_pusd)
    found, changed = {offset for offset in OFFSETS if not wrong[offset]}, set[int]()
    if not found:
        changed = bill.changed(wrong, whole=True)
    if not (found or changed):
        found = {offset for offset in OFFSETS if not short[offset]}
        changed = bill.changed(short, whole=False)
    fitting = found | changed
    return FittingOffsets(
        tuple([offset for offset in OFFSETS if offset in fitting]), changes=bool(changed)
    )


class _Bill(NamedTuple):
    billed: _Sums
    spans: Sequence[_Span]
    booked: Sequence[BookedTime]
    rounding_pusd: int

    def changed(self, faults: _Faults, *, whole: bool) -> set[int]:
        """Return offsets before and after a clock change under which every day fits.

        `faults` are the days that do not fit under each offset. With `whole`, a day may not exceed
        the booked amount either.
        """
        places = {
            offset: [place for place, span in enumerate(self.spans) if span in wrong]
            for offset, wrong in faults.items()
            if wrong
        }
        return {
            offset
            for before, bad in places.items()
            for after in (before - CHANGE_MIN, before + CHANGE_MIN)
            if after in places and self._is_changed(before, after, bad[0], places[after][-1], whole)
            for offset in (before, after)
        }

    def _is_changed(
        self, before: int, after: int, first_bad: int, last_bad: int, whole: bool
    ) -> bool:
        """Return whether the clocks may have changed on a day, with a fit before and after it."""
        return len(self.spans) >= LEAST_DAYS and any(
            self._fits(self.spans[place], before, after, whole)
            for place in range(last_bad, first_bad + 1)
        )

    def _fits(self, span: _Span, before: int, after: int, whole: bool) -> bool:
        """Return whether a day of 23 or 25 hours fits its bookings."""
        start_us, end_us = day_start_us(span[0], before), day_start_us(span[1] + 1, after)
        least: _Sums = {}
        most: _Sums = {}
        for time in self.booked:
            if time.ended_us >= start_us and time.begun_us < end_us:
                key = span, time.model
                most[key] = most.get(key, 0) + time.most_pusd
                if time.begun_us >= start_us and time.ended_us < end_us:
                    least[key] = least.get(key, 0) + time.sure_pusd
        if _lacking(self.billed, least, self.rounding_pusd):
            return False
        return not whole or span not in _exceeding(self.billed, most, self.rounding_pusd)


def _spans(amounts: Sequence[BilledAmount], days: _Span) -> list[_Span]:
    """Return the days of the bill, with the days of one charge as one span."""
    stretches = sorted({amount.stretch for amount in amounts if amount.stretch is not None})
    spans: list[_Span] = []
    for span in sorted([*stretches, *((day, day) for day in range(days[0], days[1] + 1))]):
        first, last = max(span[0], days[0]), min(span[1], days[1])
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], last)
        elif first <= last:
            spans.append((first, last))
    return spans


def _span_at(spans: Sequence[_Span], day: int) -> _Span:
    return next((span for span in spans if span[0] <= day <= span[1]), (day, day))


def _booked_sums(
    booked: Sequence[BookedTime], spans: Sequence[_Span], offset_min: int
) -> tuple[_Sums, _Sums]:
    """Return the certain and the maximum amounts of each span."""
    by_day = {day: span for span in spans for day in range(span[0], span[1] + 1)}
    least: _Sums = {}
    most: _Sums = {}
    for time in booked:
        begun, ended = (billing_day(at, offset_min) for at in (time.begun_us, time.ended_us))
        reached = {by_day.get(day) for day in range(begun, ended + 1)}
        for span in reached - {None}:
            assert span is not None
            key = span, time.model
            most[key] = most.get(key, 0) + time.most_pusd
            if len(reached) == 1:
                least[key] = least.get(key, 0) + time.sure_pusd
    return least, most


def _lacking(billed: _Sums, least: _Sums, rounding_pusd: int) -> set[_Span]:
    """Return the spans with less than the certain amounts, in lines of any model."""
    lacking: dict[_Span, int] = {}
    for key, pusd in least.items():
        lack = pusd - billed.get(key, 0)
        if lack > rounding_pusd:
            lacking[key[0]] = lacking.get(key[0], 0) + lack
    return {
        span for span, lack in lacking.items() if lack - rounding_pusd > billed.get((span, ""), 0)
    }


def _exceeding(billed: _Sums, most: _Sums, rounding_pusd: int) -> set[_Span]:
    """Return the spans with more than the ledger can explain."""
    room: dict[_Span, int] = {}
    found: set[_Span] = set()
    for key, pusd in most.items():
        left = pusd - billed.get(key, 0)
        if left < -rounding_pusd:
            found.add(key[0])
        room[key[0]] = room.get(key[0], 0) + max(0, left)
    # Amounts of models without bookings near that day.
    beside: dict[_Span, int] = {}
    for key, pusd in billed.items():
        if key not in most:
            beside[key[0]] = beside.get(key[0], 0) + pusd
    return found | {
        span for span, pusd in beside.items() if pusd > room.get(span, 0) + rounding_pusd
    }
