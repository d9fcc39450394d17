"""Changes between two periods, and anomalies of a series against its own past. No I/O.

Changes are ranked by dollars, since a percentage overstates small amounts. A bucket is an anomaly
if it is above the median of its series by more than `SPREADS` times the median absolute deviation
(scaled to a standard deviation), at least twice the median, and above a hundredth of the median
spend of all series in a bucket. Medians keep one outlier from hiding the next.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

SPREADS = Fraction(5)
SCALE = Fraction(14826, 10000)  # a normal distribution's standard deviation over its MAD
LEAST_BUCKETS = 7
LEAST_SHARE = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class SpendChange:
    name: str
    before_pusd: int
    now_pusd: int

    @property
    def change_pusd(self) -> int:
        return self.now_pusd - self.before_pusd


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An unusual bucket. `usual_pusd` is the median of the series' other whole buckets."""

    start_us: int
    name: str
    pusd: int
    usual_pusd: Fraction


def movers(before: Mapping[str, int], now: Mapping[str, int]) -> list[SpendChange]:
    """Return all changes, largest in dollars first; names break ties."""
    found = [
        SpendChange(name, before.get(name, 0), now.get(name, 0)) for name in sorted({*before, *now})
    ]
    moved = [change for change in found if change.change_pusd]
    return sorted(moved, key=lambda change: -abs(change.change_pusd))


def anomalies(spent: Iterable[tuple[int, str, int]], starts: Collection[int]) -> list[Anomaly]:
    """Return the unusual buckets, largest excess first.

    `spent` holds (start, name, pico-USD) by bucket; `starts` lists the whole buckets that count. A
    bucket without spend counts as $0.
    """
    if len(starts) < LEAST_BUCKETS:
        return []
    series: dict[str, dict[int, int]] = {}
    for at_us, name, pusd in spent:
        if at_us in starts:
            known = series.setdefault(name, dict.fromkeys(starts, 0))
            known[at_us] += pusd
    whole = [sum(item[at_us] for item in series.values()) for at_us in starts]
    least = LEAST_SHARE * Fraction(median(whole)) if whole else Fraction(0)
    found = [
        outlier
        for name, values in series.items()
        for outlier in _outliers(name, values)
        if outlier.pusd > least
    ]
    return sorted(
        found,
        key=lambda anomaly: (anomaly.usual_pusd - anomaly.pusd, anomaly.name, anomaly.start_us),
    )


def _outliers(name: str, values: Mapping[int, int]) -> list[Anomaly]:
    middle = Fraction(median(values.values()))
    spread = SCALE * Fraction(median(abs(value - middle) for value in values.values()))
    limit = max(middle + SPREADS * spread, 2 * middle)
    return [Anomaly(at_us, name, pusd, middle) for at_us, pusd in values.items() if pusd > limit]
