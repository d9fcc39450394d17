"""Figures of a benchmark: percentiles with intervals, goodput, saturation, cost.

Percentiles interpolate linearly between order statistics. Their 95 % intervals come from the
percentile bootstrap over whole requests (`RESAMPLES` resamples, a fixed seed). A request is drawn
with all of its gaps, because tokens of one request are not independent observations.

Rates are given for the whole run (first send to last end) and for its steady part (first end to
last send). Cost uses the steady rate if there is one: filling and draining the engine belongs to
the short benchmark and not to steady traffic.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

METHOD = "percentile bootstrap over requests, 95 %, 300 resamples"
RESAMPLES = 300
PERCENTILES = (50, 90, 99)
SATURATED = 0.95  # of the highest throughput, or of the offered rate
PUSD = 10**12
_MOST_GAPS = 4000  # for intervals: sorted gaps are thinned evenly, which keeps percentiles
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class RequestSample:
    """Measured times of one request, in seconds. `start_s` counts from the start of the run.

    `gaps_s` are the times between events of the stream.
    """

    start_s: float
    input_tokens: int
    output_tokens: int
    ttft_s: float
    e2e_s: float
    gaps_s: tuple[float, ...] = ()
    cached_tokens: int = 0
    error: str | None = None

    @property
    def end_s(self) -> float:
        return self.start_s + self.e2e_s

    @property
    def tpot_s(self) -> float:
        return (self.e2e_s - self.ttft_s) / max(1, self.output_tokens - 1)


@dataclass(frozen=True, slots=True)
class BenchSlo:
    """The limits that a request must keep to count as good; `None` sets no limit."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def is_met(self, request_sample: RequestSample) -> bool:
        pairs = (
            (request_sample.ttft_s, self.ttft_s),
            (request_sample.tpot_s, self.tpot_s),
            (request_sample.e2e_s, self.e2e_s),
        )
        return request_sample.error is None and all(
            most is None or had <= most for had, most in pairs
        )


@dataclass(frozen=True, slots=True)
class Percentile:
    percent: int
    value_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class BenchRates:
    """Requests and tokens per second, measured over `seconds`."""

    seconds: float
    requests: float
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Summary of one run of a benchmark."""

    requests: int
    failed: int
    whole: BenchRates
    steady: BenchRates | None
    in_flight: float
    ttft: tuple[Percentile, ...]
    itl: tuple[Percentile, ...]
    tpot: tuple[Percentile, ...]
    e2e: tuple[Percentile, ...]
    attainment: float
    good_requests_per_s: float

    @property
    def rates(self) -> BenchRates:
        """Return the rates that cost and saturation are computed from."""
        return self.steady or self.whole


def point(samples: Sequence[RequestSample], promise: BenchSlo) -> RunSummary | None:
    """Return the summary of a run, or `None` if every request failed."""
    done = [sample for sample in samples if sample.error is None]
    if not done:
        return None
    start, end = min(sample.start_s for sample in samples), max(sample.end_s for sample in samples)
    seconds = max(end - start, 1e-9)
    good = sum(promise.is_met(sample) for sample in done)
    streamed = [sample for sample in done if sample.output_tokens > 1]
    return RunSummary(
        requests=len(samples),
        failed=len(samples) - len(done),
        whole=_rates(done, start, end),
        steady=_steady(done),
        in_flight=sum(sample.e2e_s for sample in samples) / seconds,
        ttft=percentiles([(sample.ttft_s,) for sample in done]),
        itl=percentiles([sample.gaps_s for sample in done if sample.gaps_s]),
        tpot=percentiles([(sample.tpot_s,) for sample in streamed]),
        e2e=percentiles([(sample.e2e_s,) for sample in done]),
        attainment=good / len(samples),
        good_requests_per_s=good / seconds,
    )


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return a percentile of ascending values, interpolated between the two nearest."""
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def percentiles(groups: Sequence[Sequence[float]]) -> tuple[Percentile, ...]:
    """Return percentiles with 95 % intervals. Each group holds the values of one request.

    A resample draws whole groups.
    """
    pairs = sorted((value, owner) for owner, group in enumerate(groups) for value in group)
    if not pairs:
        return ()
    values = [value for value, _ in pairs]
    kept = pairs[:: math.ceil(len(pairs) / _MOST_GAPS)]
    drawn = sorted_columns(kept, len(groups))
    found = []
    for percent, column in zip(PERCENTILES, drawn, strict=True):
        value = percentile(values, percent)
        low, high = percentile(column, 100 * _TAIL), percentile(column, 100 * (1 - _TAIL))
        found.append(Percentile(percent, value, min(low, value), max(high, value)))
    return tuple(found)


def sorted_columns(pairs: Sequence[tuple[float, int]], owners: int) -> list[list[float]]:
    """Return, for each percentile, its values over all resamples in ascending order.

    `pairs` are (value, index of its request) in ascending order; `owners` is the number of
    requests.
    """
    rng = random.Random(20)  # noqa: S311  (chance that can be repeated, no secret)
    columns: list[list[float]] = [[] for _ in PERCENTILES]
    for _ in range(RESAMPLES):
        weights = [0] * owners
        for owner in rng.choices(range(owners), k=owners):
            weights[owner] += 1
        reached, total = [], 0
        for _, owner in pairs:
            total += weights[owner]
            reached.append(total)
        for column, percent in zip(columns, PERCENTILES, strict=True):
            place = bisect_right(reached, (total - 1) * percent / 100)
            column.append(pairs[min(place, len(pairs) - 1)][0])
    return [sorted(column) for column in columns]


def saturation(points: Sequence[tuple[float, RunSummary]], *, offered: bool) -> float | None:
    """Return the load at which an engine is saturated, or `None` if the runs did not reach it.

    Open loop (`offered`: loads are requests per second): the highest rate that was served, if a
    higher one was not. Closed loop (loads are concurrent requests): the lowest load that reaches
    `SATURATED` of the highest throughput, if a second load reaches it too.
    """
    if offered:
        served = [load for load, summary in points if summary.rates.requests >= SATURATED * load]
        return max(served) if served and max(load for load, _ in points) > max(served) else None
    most = max((summary.rates.output_tokens for _, summary in points), default=0.0)
    reached = sorted(
        load for load, summary in points if summary.rates.output_tokens >= SATURATED * most
    )
    return reached[0] if len(reached) > 1 else None


def cost_pusd_per_million(usd_per_hour: Decimal, tokens_per_s: float) -> int | None:
    """Return the cost of a million tokens at this rate in pico-USD, or `None` at rate 0."""
    if tokens_per_s <= 0:
        return None
    hourly = Decimal(str(tokens_per_s)) * 3600
    return int((usd_per_hour * PUSD * 10**6 / hourly).to_integral_value(ROUND_HALF_EVEN))


def _steady(done: Sequence[RequestSample]) -> BenchRates | None:
    """Return the steady rates, or `None` if filling and draining took half of the run or more."""
    start, end = min(sample.end_s for sample in done), max(sample.start_s for sample in done)
    whole = max(sample.end_s for sample in done) - min(sample.start_s for sample in done)
    return _rates(done, start, end) if end - start > whole / 2 else None


def _rates(done: Sequence[RequestSample], start: float, end: float) -> BenchRates:
    """Return rates between two times of the run, in seconds from its start.

    A prompt counts at its first token; output tokens are spread evenly over the answer's time.
    """
    seconds = max(end - start, 1e-9)
    prompts = sum(
        sample.input_tokens for sample in done if start <= sample.start_s + sample.ttft_s <= end
    )
    output = sum(_within(sample, start, end) for sample in done)
    ended = sum(start < sample.end_s <= end for sample in done)
    return BenchRates(seconds, ended / seconds, prompts / seconds, output / seconds)


def _within(request_sample: RequestSample, start: float, end: float) -> float:
    first = request_sample.start_s + request_sample.ttft_s
    shared = min(request_sample.end_s, end) - max(first, start)
    if request_sample.end_s <= first:
        return request_sample.output_tokens if start <= first <= end else 0.0
    return request_sample.output_tokens * max(0.0, shared) / (request_sample.end_s - first)
