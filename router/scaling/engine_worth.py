"""Value of the k-th engine of a pool at a given rate: its slice of the value curve V(n).

Own engines first serve work that may not leave, then the work that is most expensive elsewhere per
second of engine time. So with total work of `rate` engines, classes are stacked in that order, and
engine k takes the work between k - 1 and k.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from router.scaling.rate_points import RatePoints


@dataclass(frozen=True, slots=True)
class DemandMix:
    """Shares of the work by class in service order, and their values in pUSD/engine-hour.

    `fixed` is work, in engines, that does not follow the rate: batches, which are served last or by
    their price.
    """

    shares: tuple[float, ...]
    densities: tuple[float, ...]
    fixed: tuple[tuple[float, float], ...] = ()
    _edges: tuple[float, ...] = ()
    _sums: tuple[float, ...] = ()

    @classmethod
    def ordered(
        cls,
        kept: Iterable[tuple[float, float]],
        movable: Iterable[tuple[float, float]],
        fixed: Iterable[tuple[float, float]] = (),
    ) -> "DemandMix":
        """Return a mix of (share, density) pairs; `kept` work may not leave and is served first."""
        rows = [row for row in kept if row[0] > 0]
        rows += sorted((row for row in movable if row[0] > 0), key=lambda row: (-row[1], row[0]))
        edges, sums, share_sum, value_sum = [0.0], [0.0], 0.0, 0.0
        for share, density in rows:
            share_sum += share
            value_sum += share * density
            edges.append(share_sum)
            sums.append(value_sum)
        return cls(
            tuple(share for share, _ in rows),
            tuple(density for _, density in rows),
            tuple(sorted((row for row in fixed if row[0] > 0), key=lambda row: (-row[1], row[0]))),
            tuple(edges),
            tuple(sums),
        )

    @property
    def dearest(self) -> float:
        return max((*self.densities, *(density for _, density in self.fixed)), default=0.0)

    def value(self, engines: float, rate: float) -> float:
        """Return V(n), the pUSD an hour that `engines` avoid at `rate` (in engines of work)."""
        if not self.fixed:
            return self._flowing(engines, rate)
        best, left = 0.0, max(0.0, engines)
        # Deferrable work is ordered between the classes by its price.
        rows = [(share * rate, density) for share, density in self._rows()]
        kept = len(rows)
        order = sorted(
            [(place, work, density) for place, (work, density) in enumerate(rows)]
            + [(kept + place, work, density) for place, (work, density) in enumerate(self.fixed)],
            key=lambda row: (-row[2], row[0]),
        )
        for _, work, density in order:
            part = min(left, work)
            best += part * density
            left -= part
        return best

    def earns(self, engine: int, rate: float) -> float:
        """Return what the engine of this number, counted from 1, adds in pico-USD an hour."""
        return self.value(engine, rate) - self.value(engine - 1, rate)

    def mean_earned(self, engine: int, points: RatePoints, level: float, base: float) -> float:
        """Return the mean of `earns` over the errors of a forecast, in pico-USD an hour.

        `level` is the logarithm of the expected rate in engines plus `base`. V(n) is a sum over
        classes: the difference from a density to the next, times the work of all classes so far, at
        most n engines.
        """
        if self.fixed:
            return sum(
                share * self.earns(engine, rate) for rate, share in points.rates(level, base)
            )
        found = 0.0
        for place, density in enumerate(self.densities):
            after = self.densities[place + 1] if place + 1 < len(self.densities) else 0.0
            edge = self._edges[place + 1]
            more = points.mean_up_to(engine / edge, level, base)
            more -= points.mean_up_to((engine - 1) / edge, level, base)
            found += (density - after) * edge * more
        return found

    def _rows(self) -> Iterable[tuple[float, float]]:
        return zip(self.shares, self.densities, strict=True)

    def _flowing(self, engines: float, rate: float) -> float:
        if rate <= 0 or engines <= 0 or not self.shares:
            return 0.0
        share = min(engines / rate, self._edges[-1])
        place = min(bisect_right(self._edges, share) - 1, len(self.shares) - 1)
        inside = self._sums[place] + (share - self._edges[place]) * self.densities[place]
        return inside * rate
