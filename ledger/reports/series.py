"""Cost of each bucket of a survey, split into lines that add up to the survey's totals.

Closed hours store their split; the open rest of a pool's bill is split alike and cut at bucket
borders. Ops costs are spread over the hours in which they applied. Adjustments to bills may be
negative.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from ledger.reports.survey import Survey
from ledger.spans import DAY_US


class SpendSeries(StrEnum):
    USED = "own GPUs, used"
    IDLE = "own GPUs, idle"
    UNAVAILABLE = "own GPUs, unavailable"
    OPS = "ops"
    API = "APIs"
    ADJUSTED = "adjustments to bills"


@dataclass(frozen=True, slots=True)
class SpendAmount:
    start_us: int
    line: SpendSeries
    pusd: int


def spend(survey: Survey) -> list[SpendAmount]:
    """Return every line of every bucket, in time order, without lines of zero."""
    amounts: dict[tuple[int, SpendSeries], int] = {}
    for start_us, line, pusd in (
        *_api(survey),
        *_closed_hours(survey),
        *_open(survey),
        *_ops(survey),
        *_adjusted(survey),
    ):
        if pusd:
            amounts[start_us, line] = amounts.get((start_us, line), 0) + pusd
    return [SpendAmount(start, line, pusd) for (start, line), pusd in sorted(amounts.items())]


def _api(survey: Survey) -> Iterator[tuple[int, SpendSeries, int]]:
    for moment in survey.moments:
        if moment.backend == "api":
            yield moment.start_us, SpendSeries.API, moment.cost_pusd


def _closed_hours(survey: Survey) -> Iterator[tuple[int, SpendSeries, int]]:
    for cell in survey.hours:
        start = cell.start_us
        yield start, SpendSeries.USED, cell.used_pusd
        yield start, SpendSeries.IDLE, cell.idle_pusd
        yield start, SpendSeries.UNAVAILABLE, cell.unavailable_pusd


def _open(survey: Survey) -> Iterator[tuple[int, SpendSeries, int]]:
    for rest in survey.running:
        for part in rest.parts:
            start = survey.bucket_of(part.start_us)[0]
            yield start, SpendSeries.USED, part.used_pusd
            yield start, SpendSeries.IDLE, part.idle_pusd
            yield start, SpendSeries.UNAVAILABLE, part.unavailable_pusd


def _ops(survey: Survey) -> Iterator[tuple[int, SpendSeries, int]]:
    for ops in survey.ops:
        part = ops.of_days if survey.bucket_us == DAY_US else ops.between
        at_us = ops.start_us
        while at_us < ops.end_us:
            start_us, end_us = survey.bucket_of(at_us)
            yield start_us, SpendSeries.OPS, part(at_us, end_us)
            at_us = end_us


def _adjusted(survey: Survey) -> Iterator[tuple[int, SpendSeries, int]]:
    for adjustment in survey.adjustments:
        yield survey.bucket_of(adjustment.start_us)[0], SpendSeries.ADJUSTED, adjustment.pusd
