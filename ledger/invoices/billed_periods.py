"""Periods that posted bills cover, and what all posted parts together have of each.

Pure; days are numbers since 1970. A bill that says all that is owed replaces what earlier ones said
of its days. A bill that was posted with `--adds` is added. Amounts stay on the day that their line
names; a charge for several days, which its file spread over them, stays an amount of these days.
Where some of them are replaced, each stretch of the others is an amount of its own.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ledger.invoices.reconcile import model_of

_Amounts = dict[tuple[int, str, tuple[int, int] | None], int]  # by day, model and stretch


class BilledAmount(NamedTuple):
    """One line of a bill. `stretch`: the first and last day of the charge that it is a share of."""

    day: int
    item: str
    pusd: int
    stretch: tuple[int, int] | None = None


class PostedBill(NamedTuple):
    """A posted invoice. `adds`: it is owed beside others and does not replace them."""

    first: int
    last: int
    adds: bool
    amounts: Sequence[BilledAmount] = ()


class BilledPeriod(NamedTuple):
    """Days that belong to one bill and its parts. `whole`: one part says all that is owed.

    `amounts` are by first and last day and model: mostly of one day.
    """

    first: int
    last: int
    whole: bool
    amounts: dict[tuple[int, int, str], int]

    def has(self, day: int) -> bool:
        return self.first <= day <= self.last


def billed_periods(bills: Sequence[PostedBill]) -> list[BilledPeriod]:
    """Return the periods in order of their days; `bills` are in the order of their posting."""
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
    """Return the place of the period that has the day; None where no posted bill has it."""
    place = bisect_right(periods, day, key=lambda period: period.first) - 1
    return place if place >= 0 and periods[place].has(day) else None


def _amounts(bills: Sequence[PostedBill]) -> _Amounts:
    """Return what is owed by day, model and stretch; a bill that replaces drops its days' rest."""
    amounts: _Amounts = {}
    for bill in bills:
        if not bill.adds:
            amounts = _replace(amounts, bill)
        for amount in bill.amounts:
            key = amount.day, model_of(amount.item), amount.stretch
            amounts[key] = amounts.get(key, 0) + amount.pusd
    return amounts


def _replace(amounts: _Amounts, bill: PostedBill) -> _Amounts:
    """Return the amounts of days that the bill does not have."""
    kept: _Amounts = {}
    for (day, model, stretch), pusd in amounts.items():
        if not bill.first <= day <= bill.last:
            key = day, model, _cut(stretch, day, bill)
            kept[key] = kept.get(key, 0) + pusd
    return kept


def _cut(stretch: tuple[int, int] | None, day: int, bill: PostedBill) -> tuple[int, int] | None:
    """Return the part of a charge's stretch that has the day and none of the days of a bill."""
    if stretch is None:
        return None
    first, last = stretch
    if day < bill.first:
        return first, min(last, bill.first - 1)
    return max(first, bill.last + 1), last


def _merge(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans that share no day; those that only touch stay apart."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _outside(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the stretches of a span that none of the taken ones has."""
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
