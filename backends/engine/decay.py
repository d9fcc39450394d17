"""Decay of an engine: its output rate now against its first hours at similar load.

All functions are pure. The rate depends on the number of running sequences and on the prompt tokens
read at the same time. So only moments of similar load are compared, in classes a factor of 1.4 wide
in sequences and 2 in prompt tokens. For each class the median is compared with the median of the
first hours; medians, because single moments include starts and ends of answers.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

APART_S = 60.0  # seconds; readings further apart are not compared
LEAST = 30  # readings of one load, then and now: 5 minutes at one every 10 s
LEAST_OF_ALL = 60  # readings now, at all loads that were seen then
AGREEING = 2 / 3  # of these readings, at loads that lost at least half of `share`

_Load = tuple[int, int]


@dataclass(frozen=True, slots=True)
class DecayReading:
    """One reading of an engine's counters. Token counts are totals since its start.

    `at_s` orders the readings of one engine's life.
    """

    at_s: float
    running: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class DecayEstimate:
    """Ratio of the output rate now to the first hours, over `moments` at similar load."""

    ratio: float
    moments: int
    agreeing: float  # part of `moments` at loads that lost at least half of `share`

    def is_lost(self, share: float) -> bool:
        return self.ratio <= 1.0 - share and self.agreeing >= AGREEING


def pace(
    first: Sequence[DecayReading], now: Sequence[DecayReading], share: float
) -> DecayEstimate | None:
    """Return the decay estimate, or `None` if too few readings of similar load exist.

    `share` is the loss of rate that would matter, such as 0.1 for 10 %.
    """
    then, lately = _rates(first), _rates(now)
    found = [
        (median(lately[load]) / median(then[load]), len(lately[load]))
        for load in lately
        if len(lately[load]) >= LEAST and len(then.get(load, ())) >= LEAST
    ]
    moments = sum(count for _, count in found)
    if moments < LEAST_OF_ALL:
        return None
    ratio = math.exp(sum(math.log(value) * count for value, count in found) / moments)
    agreeing = sum(count for value, count in found if value <= 1.0 - share / 2) / moments
    return DecayEstimate(ratio, moments, agreeing)


def _rates(readings: Sequence[DecayReading]) -> Mapping[_Load, list[float]]:
    """Return output tokens per second by load class. Intervals without output are left out."""
    found: defaultdict[_Load, list[float]] = defaultdict(list)
    for before, after in pairwise(readings):
        seconds = after.at_s - before.at_s
        written = after.output_tokens - before.output_tokens
        read = after.prompt_tokens - before.prompt_tokens
        if not 0.0 < seconds <= APART_S or written <= 0 or read < 0:
            continue  # a gap, an idle engine, or a restart
        if min(before.running, after.running) < 1:
            continue
        running = (before.running + after.running) / 2
        load = round(2 * math.log2(running)), round(math.log2(1.0 + read / seconds))
        found[load].append(written / seconds)
    return found
