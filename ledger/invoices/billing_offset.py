"""Finds the time zone of a bill's days from the bill itself, where one alone explains it. Pure.

A bill names dates. Under the right offset each of its days has what the books are sure of and no
more than they can explain; under another one, hours of traffic stand on a day that lacks them. Days
are numbers since 1970, instants are in microseconds, money is in pico-USD.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.invoices.billed_periods import BilledAmount
from ledger.invoices.billing_days import LEAST_MINUTES, MOST_MINUTES, billing_day, day_start_us
from ledger.invoices.reconcile import model_of

# Minutes ahead of UTC of the zones that are in use and have no whole hours.
_PARTS_OF_HOURS = (-570, -210, 210, 270, 330, 345, 390, 525, 570, 630, 765)
CHANGE_MIN = 60  # by which clocks change, twice a year
LEAST_DAYS = 3  # of a bill that can tell a change of clocks from a wrong day
OFFSETS = (*range(LEAST_MINUTES, MOST_MINUTES + 1, 60), *_PARTS_OF_HOURS)

_Span = tuple[int, int]  # first and last day
_Sums = dict[tuple[_Span, str], int]  # by span and model
_Faults = dict[int, set[_Span]]  # spans that cannot be true, by offset


class BookedTime(NamedTuple):
    """Dollars booked of attempts that began and ended at the same times, at one model.

    `sure_pusd` is billed in whole, on a day between both; `most_pusd` is all that may be.
    """

    begun_us: int
    ended_us: int
    model: str
    sure_pusd: int
    most_pusd: int


class FittingOffsets(NamedTuple):
    """Offsets in minutes under which a bill can be true, none where it cannot.

    `changes`: before and after a change of clocks on one of its days.
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

    Those under which it has all that is sure and nothing that the books cannot explain; without
    any, those of before and after a change of clocks on one of its days that do; without any, those
    under which it has all that is sure, with a change or without: it may have what did not pass
    here. `rounding_pusd`: the most that the rounding of one day's lines of a model can come to.
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
        """Return offsets of before and after a change of clocks that makes every day true.

        `faults` are the days that each offset alone leaves untrue, none of an offset that needs no
        change. `whole`: a day may not have more than was booked either.
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
        """Return whether clocks can have changed on a day before which and after which all fit."""
        return len(self.spans) >= LEAST_DAYS and any(
            self._fits(self.spans[place], before, after, whole)
            for place in range(last_bad, first_bad + 1)
        )

    def _fits(self, span: _Span, before: int, after: int, whole: bool) -> bool:
        """Return whether a day of an hour more or less has what was booked in it."""
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
    """Return the days of the bill, those that one charge is for as one span."""
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
    """Return what is sure to be billed in each span, and the most that may be."""
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
    """Return the days with less than what is sure, whichever model their lines are of."""
    lacking: dict[_Span, int] = {}
    for key, pusd in least.items():
        lack = pusd - billed.get(key, 0)
        if lack > rounding_pusd:
            lacking[key[0]] = lacking.get(key[0], 0) + lack
    return {
        span for span, lack in lacking.items() if lack - rounding_pusd > billed.get((span, ""), 0)
    }


def _exceeding(billed: _Sums, most: _Sums, rounding_pusd: int) -> set[_Span]:
    """Return the days with more than the books can explain."""
    room: dict[_Span, int] = {}
    found: set[_Span] = set()
    for key, pusd in most.items():
        left = pusd - billed.get(key, 0)
        if left < -rounding_pusd:
            found.add(key[0])
        room[key[0]] = room.get(key[0], 0) + max(0, left)
    # What is of no model that was booked about that day.
    beside: dict[_Span, int] = {}
    for key, pusd in billed.items():
        if key not in most:
            beside[key[0]] = beside.get(key[0], 0) + pusd
    return found | {
        span for span, pusd in beside.items() if pusd > room.get(span, 0) + rounding_pusd
    }
