"""Reconciliation of an invoice with the ledger, with the causes of differences.

Both are compared by day and model. A difference is the invoiced minus the booked amount. Causes are
uncertainties known to the ledger. Each is a bound and no proof, so a row may have several; a
difference without a cause is unexplained. A cause must have the right sign: a booking at its bound
explains a lower invoice, never a higher one. This module does no I/O.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from ledger.invoices.files import InvoiceLine
from ledger.money import PUSD_PER_USD

ADJUSTED = "adjusted before"  # as a model: adjustments posted for a day
RETIRED = "retired before"  # as a model: retired attempts without sums by model
ALL_MODELS = "all models"  # as a model: for an invoice that names none
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")


class DifferenceCause(StrEnum):
    """A reason why an invoice and the ledger may differ."""

    ROUNDING = "rounding"  # the invoice's amounts have fewer decimals
    CANCELLED = "cancelled"  # disconnects or missing usage: booked at an estimate or bound
    LOST = "lost"  # a worker died; its open attempts are booked at their bounds
    RETRIES = "retries"  # failed tries booked at zero, which may have been charged
    UNPRICED = "unpriced"  # the ledger has no price for some attempts
    DAY = "day"  # the neighbouring day has the opposite difference
    NOT_IN_BOOKS = "not_in_books"  # traffic outside the gateway, or another name
    NOT_INVOICED = "not_invoiced"  # the invoice has no line of this name
    POSTED = "posted"  # with adjustments, the day's sum equals the invoice's
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class BookedCost:
    """Bookings of one day and model. `uncertain_pusd` is estimated or at a bound."""

    day: date
    model: str
    project: str
    booked_pusd: int
    attempts: int = 0
    uncertain_pusd: int = 0
    uncertain: int = 0  # attempts
    lost_pusd: int = 0
    lost: int = 0
    failed: int = 0  # attempts booked at nothing
    unpriced: int = 0


@dataclass(frozen=True, slots=True)
class ReconciliationLine:
    """One day, model or project on both sides."""

    key: str
    invoiced_pusd: int
    booked_pusd: int
    attempts: int
    causes: tuple[DifferenceCause, ...] = ()

    @property
    def difference_pusd(self) -> int:
        return self.invoiced_pusd - self.booked_pusd


@dataclass(slots=True)
class _Pair:
    lines: list[InvoiceLine] = field(default_factory=list)
    booked: list[BookedCost] = field(default_factory=list)

    @property
    def invoiced_pusd(self) -> int:
        return sum(line.amount_pusd for line in self.lines)

    @property
    def booked_pusd(self) -> int:
        return sum(booking.booked_pusd for booking in self.booked)

    @property
    def difference_pusd(self) -> int:
        return self.invoiced_pusd - self.booked_pusd

    def total(self, name: str) -> int:
        return sum(int(getattr(booking, name)) for booking in self.booked)


def model_of(item: str) -> str:
    """Return the model in an invoice item's or an attempt's name: `gpt-4o-2024-08-06, input`.

    The result is in lower case, without provider and snapshot.
    """
    name = item.partition(",")[0].strip().lower()
    return _SNAPSHOT.sub("", name.rpartition("/")[2])


def by_day_and_model(
    lines: Iterable[InvoiceLine], booked: Iterable[BookedCost], *, places: int
) -> dict[date, list[ReconciliationLine]]:
    """Return every day with its rows by model and their causes, without rows of no money.

    `places` is the number of decimals of the invoice's amounts. An invoice that names no model is
    compared with all models of a day together.
    """
    lines, booked = list(lines), list(booked)
    whole = bool(lines) and not any(model_of(line.item) for line in lines)
    pairs: dict[tuple[date, str], _Pair] = {}
    for line in lines:
        key = ALL_MODELS if whole else model_of(line.item)
        pairs.setdefault((line.day, key), _Pair()).lines.append(line)
    for booking in booked:
        key = ALL_MODELS if whole and booking.model != ADJUSTED else model_of(booking.model)
        pairs.setdefault((booking.day, key), _Pair()).booked.append(booking)
    found: dict[date, list[ReconciliationLine]] = {}
    for (day, model), pair in sorted(pairs.items()):
        neighbours = [
            other.difference_pusd
            for ahead in (-1, 1)
            if (other := pairs.get((date.fromordinal(day.toordinal() + ahead), model)))
        ]
        if pair.invoiced_pusd or pair.booked_pusd:
            rounding = rounding_pusd(places, len(pair.lines))
            causes = () if model == ADJUSTED else _causes(pair, neighbours, rounding)
            found.setdefault(day, []).append(_row(model, pair, causes))
    return {day: _clear_settled(rows) for day, rows in found.items()}


def by_key(
    lines: Sequence[InvoiceLine],
    booked: Sequence[BookedCost],
    keys: tuple[Callable[[InvoiceLine], str], Callable[[BookedCost], str]],
) -> list[ReconciliationLine]:
    """Return sums of both sides by any key, largest difference first."""
    pairs: dict[str, _Pair] = {}
    for line in lines:
        pairs.setdefault(keys[0](line), _Pair()).lines.append(line)
    for booking in booked:
        pairs.setdefault(keys[1](booking), _Pair()).booked.append(booking)
    rows = [_row(key, pair, ()) for key, pair in pairs.items()]
    return sorted(rows, key=lambda row: (-abs(row.difference_pusd), row.key))


def map_projects(lines: Iterable[InvoiceLine], teams: Mapping[str, str]) -> list[InvoiceLine]:
    """Return the lines with projects replaced by the names of their teams."""
    return [replace(line, project=teams.get(line.project or "", line.project)) for line in lines]


def rounding_pusd(places: int, lines: int) -> int:
    """Return the maximum change of a sum by rounding each line to its last decimal."""
    last_place: int = PUSD_PER_USD // 10 ** min(places, 12)
    return lines * (last_place + 1) // 2


def _row(key: str, pair: _Pair, causes: tuple[DifferenceCause, ...]) -> ReconciliationLine:
    return ReconciliationLine(
        key, pair.invoiced_pusd, pair.booked_pusd, pair.total("attempts"), causes
    )


def _clear_settled(rows: list[ReconciliationLine]) -> list[ReconciliationLine]:
    """Mark differences as posted on days whose adjustments bring the sum to the invoice's.

    An adjustment belongs to a day, not to a model, so it has its own row.
    """
    posted = any(row.key == ADJUSTED and row.booked_pusd != 0 for row in rows)
    left_pusd = sum(row.difference_pusd for row in rows)
    if left_pusd or not posted:
        return rows
    guesses = {DifferenceCause.UNEXPLAINED, DifferenceCause.NOT_INVOICED}
    return [
        replace(
            row,
            causes=(
                *(cause for cause in row.causes if cause not in guesses),
                DifferenceCause.POSTED,
            ),
        )
        if row.difference_pusd
        else row
        for row in rows
    ]


def _causes(pair: _Pair, neighbours: Sequence[int], rounding: int) -> tuple[DifferenceCause, ...]:
    difference = pair.difference_pusd
    if not difference:
        return ()
    if abs(difference) <= rounding:
        return (DifferenceCause.ROUNDING,)
    found: list[DifferenceCause] = []
    if any(abs(difference + other) <= 2 * rounding for other in neighbours):
        found.append(DifferenceCause.DAY)
    found += _of_more(pair) if difference > 0 else _of_less(pair, -difference)
    return tuple(found) or (DifferenceCause.UNEXPLAINED,)


def _of_more(pair: _Pair) -> list[DifferenceCause]:
    """Return the causes of a higher invoice."""
    if not pair.total("attempts"):
        return [DifferenceCause.NOT_IN_BOOKS]
    found = []
    if pair.total("unpriced"):
        found.append(DifferenceCause.UNPRICED)
    if pair.total("failed"):
        found.append(DifferenceCause.RETRIES)
    return found


def _of_less(pair: _Pair, missing_pusd: int) -> list[DifferenceCause]:
    """Return the causes of a lower invoice: uncertain bookings, up to their amount."""
    found = []
    uncertain, lost = pair.total("uncertain_pusd"), pair.total("lost_pusd")
    if uncertain and uncertain + lost >= missing_pusd:
        found.append(DifferenceCause.CANCELLED)
    if lost and uncertain + lost >= missing_pusd:
        found.append(DifferenceCause.LOST)
    if not pair.lines and not found:
        found.append(DifferenceCause.NOT_INVOICED)
    return found
