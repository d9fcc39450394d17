"""Chart lines from samples and streams of engines; pure.

Counters are the engines' own; a decrease means a restart, and that step is omitted.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from dashboard import formatting
from ledger.fleet.samples import FleetSample
from ledger.money import PUSD_PER_USD
from ledger.queries.reads import HOUR_US, StreamedAnswer
from ledger.reports.survey import Survey

POINTS = 24  # points of a line of streams, each of equally many streams
LEAST = 5  # streams of a point
HIGH = 0.95


def gauge(
    history: Sequence[FleetSample], name: str, factor: float, *, offset: float = 0.0
) -> list[dict[str, Any]]:
    """Return a series of `offset + factor * value`; samples without the value are omitted."""
    return [
        {"at": formatting.instant(row.at_us), "kind": row.engine, "value": offset + factor * value}
        for row in history
        if (value := getattr(row, name)) is not None
    ]


def sequences(history: Sequence[FleetSample]) -> list[dict[str, Any]]:
    return [
        {
            "at": formatting.instant(row.at_us),
            "kind": row.engine,
            "style": what,
            "value": getattr(row, what),
        }
        for row in history
        for what in ("running", "waiting")
        if getattr(row, what) is not None
    ]


def restarts(history: Sequence[FleetSample]) -> Counter[str]:
    """Return each engine's counter resets; a restart between two samples may be missed."""
    found = Counter[str]()
    last: dict[str, int] = {}
    for row in history:
        if row.output_tokens_total is not None:
            found[row.engine] += row.output_tokens_total < last.get(row.engine, 0)
            last[row.engine] = row.output_tokens_total
    return found


def typical_series(
    streams: Sequence[StreamedAnswer], value: Callable[[StreamedAnswer], int | None]
) -> list[dict[str, Any]]:
    """Return p50 and p95 of each engine's streams in seconds, equally many at each point."""
    by_engine: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for stream in streams:
        if (length_us := value(stream)) is not None:
            by_engine[stream.engine].append((stream.opened_us, length_us))
    records = []
    for engine, items in by_engine.items():
        width = max(LEAST, -(-len(items) // POINTS))
        for place in range(0, len(items), width):
            some = sorted(us for _, us in items[place : place + width])
            at = formatting.instant(items[min(place + width, len(items)) - 1][0])
            high = some[min(len(some) - 1, int(HIGH * len(some)))]
            for kind, us in (("p50", median(some)), ("p95", high)):
                records.append({"at": at, "kind": engine, "style": kind, "value": us / 1e6})
    return records


def tokens_per_dollar(survey: Survey) -> list[dict[str, Any]]:
    """Return tokens of own engines per dollar of the whole bill, in closed buckets."""
    bills: dict[int, int] = defaultdict(int)
    closed_us: dict[str, int] = {}
    for cell in survey.hours:
        bills[cell.start_us] += cell.bill_pusd
        closed_us[cell.pool] = max(closed_us.get(cell.pool, 0), cell.last_hour_us + HOUR_US)
    tokens: dict[int, int] = defaultdict(int)
    for moment in survey.moments:
        tokens[moment.start_us] += moment.tokens if moment.backend == "own" else 0
    until_us = min(closed_us.values(), default=0)
    return [
        {
            "at": formatting.instant(start_us),
            "kind": "own engines",
            "value": tokens[start_us] * PUSD_PER_USD / bill,
        }
        for start_us, bill in sorted(bills.items())
        if bill and survey.bucket_of(start_us)[1] <= until_us
    ]


def rate(history: Sequence[FleetSample], name: str) -> list[dict[str, Any]]:
    return [
        {**step, "value": step["value"] / step["seconds"]}
        for step in steps(history, name)
        if step["seconds"]
    ]


def steps(history: Sequence[FleetSample], name: str) -> list[dict[str, Any]]:
    """Return the growth of a counter between consecutive samples of each engine."""
    by_engine: dict[str, list[FleetSample]] = {}
    for row in history:
        if getattr(row, name) is not None:
            by_engine.setdefault(row.engine, []).append(row)
    return [
        {
            "at": formatting.instant(after.at_us),
            "kind": engine,
            "value": grown,
            "seconds": (after.at_us - before.at_us) / 1e6,
        }
        for engine, rows in by_engine.items()
        for before, after in pairwise(rows)
        if (grown := getattr(after, name) - getattr(before, name)) >= 0
    ]
