"""Break-even volumes of a month: tokens from which own engines cost less than an API.

The figures are those of the Break-even page: costs and prices booked in a period, scaled to a
month's hours, for each pool and comparator. A volume above what the engines can serve inside the
SLO cannot be reached.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from ledger.economics.breakeven import break_even_volume
from ledger.economics.cost import Exact
from ledger.reports.fleet_economics import ComparatorResult, FleetEconomics

ANY_API = "any API"
NO_RATE = "the GPU rate is not known"
NO_COMPARATOR = "no API is compared with: name one in `compare_with`"
NOT_SERVED = "nothing was served inside the SLO"
FREE = "own engines cost $0 in the books, so there is nothing to break even"
SAVES_NOTHING = "no volume: a token on own engines avoids nothing"


@dataclass(frozen=True, slots=True)
class MonthEven:
    """Tokens of a month, input and output together; `None` is unknown. `lacks` has the reason."""

    pool: str
    against: str
    comparators: tuple[str, ...]
    tokens: Fraction | None
    capacity: Fraction | None
    served: Fraction | None
    lacks: str | None = None

    @property
    def state(self) -> str:
        """Return whether the break-even volume is reached, or what is unknown, as text."""
        if self.tokens is None:
            return self.lacks or NOT_SERVED
        if self.capacity is None:
            return "capacity is not known"
        if self.tokens > self.capacity:
            return "beyond the capacity inside the SLO"
        return "reached" if (self.served or 0) >= self.tokens else "not reached"

    def described(self) -> dict[str, Any]:
        """Return the values for JSON; a volume is rounded up, since fewer tokens do not pay off."""
        return {
            "pool": self.pool, "against": self.against, "comparators": list(self.comparators),
            "basis": "input + output", "tokens_per_month": whole(self.tokens),
            "capacity_tokens_per_month": None if self.capacity is None else int(self.capacity),
            "served_tokens_per_month": None if self.served is None else int(self.served),
            "state": self.state,
        }  # fmt: skip


def whole(tokens: Fraction | None) -> int | None:
    """Return the volume in whole tokens, rounded up."""
    return None if tokens is None else ceil(tokens)


def month_evens(
    pools: Mapping[str, FleetEconomics], month_hours: Exact, unrated: Iterable[str] = ()
) -> list[MonthEven]:
    """Return the break-even volumes of every pool, from each pool's own economics.

    `unrated`: pools without economics, because their rate is unknown.
    """
    found: list[MonthEven] = []
    for pool, standing in pools.items():
        month = Fraction(month_hours) / standing.hours if standing.hours else None
        found += [_line(pool, standing, result, month) for result in standing.verdicts]
        if not standing.verdicts:
            lacks = NO_RATE if standing.unrated else _without_comparison(standing)
            served = _scaled(standing.served.tokens, month)
            found.append(MonthEven(pool, ANY_API, (), None, None, served, lacks))
    bare = sorted(set(unrated) - pools.keys())
    return found + [MonthEven(pool, ANY_API, (), None, None, None, NO_RATE) for pool in bare]


def _without_comparison(standing: FleetEconomics) -> str:
    """Return why a pool has no comparison; comparisons exist only for answers."""
    return NO_COMPARATOR if standing.served.tokens else NOT_SERVED


def _line(
    pool: str, standing: FleetEconomics, result: ComparatorResult, month: Fraction | None
) -> MonthEven:
    volume, lacks = None, None
    if standing.unrated:
        lacks = NO_RATE
    elif standing.is_free:
        lacks = FREE
    elif result.average is not None:
        volume = break_even_volume(fixed_pusd=standing.fixed.total_pusd, avoided=result.average)
        lacks = SAVES_NOTHING if volume is None else None
    able = standing.capability
    return MonthEven(
        pool,
        str(result.against),
        result.comparators,
        None if volume is None else _scaled(volume.tokens, month),
        None if able is None else _scaled(able.volume.tokens, month),
        _scaled(result.covered.tokens, month),
        lacks,
    )


def _scaled(tokens: Exact, month: Fraction | None) -> Fraction | None:
    return None if month is None else Fraction(tokens) * month
