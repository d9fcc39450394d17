"""An invoice beside the books, day by day and model by model, and what explains a difference.

Pure. A difference is what was invoiced less what was booked. Causes are what the books know to be
uncertain there; each is a bound, not a proof, so a row may have several, and what no cause covers
is called unexplained. Nothing is explained by a cause of the wrong sign: an answer that was booked
at its bound explains why less was invoiced, never why more was.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

from ledger.invoices.files import InvoiceLine
from ledger.money import PUSD_PER_USD

ADJUSTED = "adjusted before"  # in a model's place: what was posted for a day
RETIRED = "retired before"  # in a model's place: attempts of which no sums by model were kept
ALL_MODELS = "all models"  # in a model's place: the invoice names none
_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)$")


class DifferenceCause(StrEnum):
    """Why an invoice and the books may differ."""

    ROUNDING = "rounding"  # the invoice's amounts have fewer places
    CANCELLED = "cancelled"  # clients left, or usage was not told: booked by estimate or bound
    LOST = "lost"  # a worker died; its open attempts stand at their bounds
    RETRIES = "retries"  # tries that failed and were booked at nothing; they may have been charged
    UNPRICED = "unpriced"  # the books have no price for some of it
    DAY = "day"  # the neighbouring day differs by as much, the other way
    NOT_IN_BOOKS = "not_in_books"  # traffic that did not pass here, or another name
    NOT_INVOICED = "not_invoiced"  # nothing of this name is on the invoice
    POSTED = "posted"  # with the day's adjustments its sum is the invoice's
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class BookedCost:
    """Bookings of one day and model. `uncertain_pusd`: estimated or at a bound."""

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
    """One key (day, model or project) on both sides."""

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
    """The model that an item of an invoice, or an attempt, is about: `gpt-4o-2024-08-06, input`."""
    name = item.partition(",")[0].strip().lower()
    return _SNAPSHOT.sub("", name.rpartition("/")[2])


def by_day_and_model(
    lines: Iterable[InvoiceLine], booked: Iterable[BookedCost], *, places: int
) -> dict[date, list[ReconciliationLine]]:
    """Every day with its rows by model, each with its causes; rows without any money are left out.

    `places`: the decimal places of the invoice's amounts. An invoice that names no model is held
    against all models of a day together.
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
    """Sums on both sides by any key; what differs most comes first."""
    pairs: dict[str, _Pair] = {}
    for line in lines:
        pairs.setdefault(keys[0](line), _Pair()).lines.append(line)
    for booking in booked:
        pairs.setdefault(keys[1](booking), _Pair()).booked.append(booking)
    rows = [_row(key, pair, ()) for key, pair in pairs.items()]
    return sorted(rows, key=lambda row: (-abs(row.difference_pusd), row.key))


def map_projects(lines: Iterable[InvoiceLine], teams: Mapping[str, str]) -> list[InvoiceLine]:
    """Projects by the names of the teams that they are for."""
    return [replace(line, project=teams.get(line.project or "", line.project)) for line in lines]


def rounding_pusd(places: int, lines: int) -> int:
    """The most that rounding each line to its last place can have changed their sum."""
    last_place: int = PUSD_PER_USD // 10 ** min(places, 12)
    return lines * (last_place + 1) // 2


def _row(key: str, pair: _Pair, causes: tuple[DifferenceCause, ...]) -> ReconciliationLine:
    return ReconciliationLine(
        key, pair.invoiced_pusd, pair.booked_pusd, pair.total("attempts"), causes
    )


def _clear_settled(rows: list[ReconciliationLine]) -> list[ReconciliationLine]:
    """Clear the difference of days whose adjustments bring their sum to the invoice's.

    An adjustment is of a day and not of a model: it stands in a row of its own.
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
    """More was invoiced than booked."""
    if not pair.total("attempts"):
        return [DifferenceCause.NOT_IN_BOOKS]
    found = []
    if pair.total("unpriced"):
        found.append(DifferenceCause.UNPRICED)
    if pair.total("failed"):
        found.append(DifferenceCause.RETRIES)
    return found


def _of_less(pair: _Pair, missing_pusd: int) -> list[DifferenceCause]:
    """Less was invoiced than booked: only what is uncertain explains it, up to its amount."""
    found = []
    uncertain, lost = pair.total("uncertain_pusd"), pair.total("lost_pusd")
    if uncertain and uncertain + lost >= missing_pusd:
        found.append(DifferenceCause.CANCELLED)
    if lost and uncertain + lost >= missing_pusd:
        found.append(DifferenceCause.LOST)
    if not pair.lines and not found:
        found.append(DifferenceCause.NOT_INVOICED)
    return found
