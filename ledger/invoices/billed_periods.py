"""Periods that posted bills cover, and the billed amounts of each.

Days are numbers since 1970. A bill of the total replaces earlier amounts of its days. A bill posted
with `--adds` is added. Amounts stay on the day of their line. A charge for several days, which its
file spread over them, stays one amount of these days. If some of them are replaced, each remaining
stretch is a separate amount. This module does no I/O.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.invoices.reconcile import model_of

_Amounts = dict[tuple[int, str, tuple[int, int] | None], int]  # by day, model and stretch


class BilledAmount(NamedTuple):
    """One line of a bill. `stretch` is the first and last day of its charge."""

    day: int
    item: str
    pusd: int
    stretch: tuple[int, int] | None = None


class PostedBill(NamedTuple):
    """A posted invoice. With `adds`, it is due in addition to others and replaces none."""

    first: int
    last: int
    adds: bool
    amounts: Sequence[BilledAmount] = ()


class BilledPeriod(NamedTuple):
    """Days of one bill and its parts. `whole`: one of them states the total.

    `amounts` are by first day, last day and model; most are of one day.
    """

    first: int
    last: int
    whole: bool
    amounts: dict[tuple[int, int, str], int]

    def has(self, day: int) -> bool:
        return self.first <= day <= self.last


def billed_periods(bills: Sequence[PostedBill]) -> list[BilledPeriod]:
    """Return the periods in order of days. `bills` must be in order of posting."""
    wholes = _merge((bill.first, bill.last) for bill in bills if not bill.adds)
    parts = _merge((bill.first, bill.last) for bill in bills if bill.adds)
    cut = [rest for part in parts for rest in _outside(part, wholes)]
    periods = [BilledPeriod(*span, True, {}) for span in wholes]
    periods += [BilledPeriod(*span, False, {}) for span in cut]
    periods.sort()
    for (day, model, stretch), pusd in _amounts(bills).items():
        place = period_at(periods, day)
        if place is not None:
            amounts = periods[place].amounts
            key = *(stretch or (day, day)), model
            amounts[key] = amounts.get(key, 0) + pusd
    return periods


def period_at(periods: Sequence[BilledPeriod], day: int) -> int | None:
    """Return the index of the period that contains the day, `None` without one."""
    place = bisect_right(periods, day, key=lambda period: period.first) - 1
    return place if place >= 0 and periods[place].has(day) else None


def _amounts(bills: Sequence[PostedBill]) -> _Amounts:
    """Return the amounts by day, model and stretch. A replacing bill drops earlier ones."""
    amounts: _Amounts = {}
    for bill in bills:
        if not bill.adds:
            amounts = _replace(amounts, bill)
        for amount in bill.amounts:
            key = amount.day, model_of(amount.item), amount.stretch
            amounts[key] = amounts.get(key, 0) + amount.pusd
    return amounts


def _replace(amounts: _Amounts, bill: PostedBill) -> _Amounts:
    """Return the amounts of days outside the bill."""
    kept: _Amounts = {}
    for (day, model, stretch), pusd in amounts.items():
        if not bill.first <= day <= bill.last:
            key = day, model, _cut(stretch, day, bill)
            kept[key] = kept.get(key, 0) + pusd
    return kept


def _cut(stretch: tuple[int, int] | None, day: int, bill: PostedBill) -> tuple[int, int] | None:
    """Return the part of a stretch that contains the day and no day of the bill."""
    if stretch is None:
        return None
    first, last = stretch
    if day < bill.first:
        return first, min(last, bill.first - 1)
    return max(first, bill.last + 1), last


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans with overlapping ones merged. Adjacent spans stay separate."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _outside(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of a span that are in none of the taken spans."""
    rest, at = [], span[0]
    for first, last in taken:
        if last < at or first > span[1]:
            continue
        if first > at:
            rest.append((at, first - 1))
        at = last + 1
    if at <= span[1]:
        rest.append((at, span[1]))
    return rest
