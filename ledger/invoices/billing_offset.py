"""Finds the time zone of a bill's days from the bill itself, where one alone explains it. Pure.

A bill names dates. Under the right offset each of its days has what the books are sure of and no
more than they can explain; under another one, hours of traffic stand on a day that lacks them. Days
are numbers since 1970, instants are in microseconds, money is in pico-USD.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.invoices.billed_periods import BilledAmount
from ledger.invoices.billing_days import LEAST_MINUTES, MOST_MINUTES, billing_day
from ledger.invoices.reconcile import model_of

# Minutes ahead of UTC of the zones that are in use and have no whole hours.
_PARTS_OF_HOURS = (-570, -210, 210, 270, 330, 345, 390, 525, 570, 630, 765)
OFFSETS = (*range(LEAST_MINUTES, MOST_MINUTES + 1, 60), *_PARTS_OF_HOURS)

_Span = tuple[int, int]  # first and last day
_Sums = dict[tuple[_Span, str], int]  # by span and model


class BookedTime(NamedTuple):
    """Dollars booked of attempts that began and ended at the same times, at one model.

    `sure_pusd` is billed in whole, on a day between both; `most_pusd` is all that may be.
    """

    begun_us: int
    ended_us: int
    model: str
    sure_pusd: int
    most_pusd: int


def fitting_offsets(
    amounts: Iterable[BilledAmount],
    days: _Span,
    booked: Sequence[BookedTime],
    rounding_pusd: int,
) -> tuple[int, ...]:
    """Return the offsets in minutes under which the bill can be true, none where it cannot.

    Those under which it has all that is sure and nothing that the books cannot explain; without
    any, those under which it has all that is sure: it may have what did not pass here.
    `rounding_pusd`: the most that the rounding of one day's lines of a model can come to.
    """
    amounts = list(amounts)
    spans = _spans(amounts, days)
    models = {time.model for time in booked}
    billed: _Sums = {}
    for amount in amounts:
        name = model_of(amount.item)
        key = _span_at(spans, amount.day), name if name in models else ""
        billed[key] = billed.get(key, 0) + max(0, amount.pusd)
    complete, explained = [], []
    for offset in OFFSETS:
        least, most = _booked_sums(booked, spans, offset)
        if _lacks(billed, least, rounding_pusd):
            continue
        complete.append(offset)
        if not _exceeds(billed, most, rounding_pusd):
            explained.append(offset)
    return tuple(explained or complete)


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


def _lacks(billed: _Sums, least: _Sums, rounding_pusd: int) -> bool:
    """Return whether some day has less than what is sure, whichever model its lines are of."""
    lacking: dict[_Span, int] = {}
    for key, pusd in least.items():
        lack = pusd - billed.get(key, 0)
        if lack > rounding_pusd:
            lacking[key[0]] = lacking.get(key[0], 0) + lack
    return any(lack - rounding_pusd > billed.get((span, ""), 0) for span, lack in lacking.items())


def _exceeds(billed: _Sums, most: _Sums, rounding_pusd: int) -> bool:
    """Return whether some day has more than the books can explain."""
    room: dict[_Span, int] = {}
    for key, pusd in most.items():
        left = pusd - billed.get(key, 0)
        if left < -rounding_pusd:
            return True
        room[key[0]] = room.get(key[0], 0) + max(0, left)
    # What is of no model that was booked about that day.
    beside: dict[_Span, int] = {}
    for key, pusd in billed.items():
        if key not in most:
            beside[key[0]] = beside.get(key[0], 0) + pusd
    return any(pusd > room.get(span, 0) + rounding_pusd for span, pusd in beside.items())
