"""Reserved API capacity (provisioned throughput): units by the hour, not single tokens.

A unit serves a number of tokens per minute of one target, used or not. Tokens above the units of a
window overflow at the token price. Units are added as long as the next one saves more than it
costs; fewer than the offer's minimum cannot be reserved. Money is pico-USD per month.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import Exact


@dataclass(frozen=True, slots=True)
class ReservedOffer:
    """API capacity sold by the unit. `term` is the shortest commitment, as text."""

    target: str
    tokens_per_minute: int
    pusd_per_hour: Exact
    least_units: int = 1
    step: int = 1
    term: str = "month"
    source: str | None = None
    since: str | None = None

    @property
    def text(self) -> str:
        """Return the unit's terms as the assumption sheet shows them."""
        return (
            f"USD per unit-hour, {self.tokens_per_minute} tokens a minute, at least "
            f"{self.least_units} in steps of {self.step}, by the {self.term}"
        )


@dataclass(frozen=True, slots=True)
class TargetDemand:
    """Tokens for one target: `windows` are (tokens, count) pairs of `minutes` each.

    `pusd` is their cost by the token in the period; a month is `pace` periods.
    """

    windows: Sequence[tuple[Fraction, int]]
    minutes: int
    pusd: Fraction
    pace: Fraction

    @property
    def tokens(self) -> Fraction:
        return sum((tokens * times for tokens, times in self.windows), Fraction(0))

    def served(self, per_window: Fraction) -> Fraction:
        """Return the period's tokens that fit into `per_window` tokens per window."""
        return sum((min(t, per_window) * times for t, times in self.windows), Fraction(0))


@dataclass(frozen=True, slots=True)
class ReservedPlan:
    """Reserved units of one offer. `utilisation` is the used share of their tokens."""

    offer: ReservedOffer
    units: int
    rent_pusd: Fraction
    overflow_pusd: Fraction
    saved_pusd: Fraction
    utilisation: Fraction


def plan_reserved(
    offer: ReservedOffer, demand: TargetDemand, *, month_hours: Exact, period_minutes: Exact
) -> ReservedPlan | None:
    """Return the number of units that saves most, or `None` if single tokens are cheaper."""
    tokens = demand.tokens
    if not tokens or demand.pusd <= 0:
        return None
    price = demand.pusd / tokens
    rent = Fraction(offer.pusd_per_hour) * month_hours
    each = Fraction(offer.tokens_per_minute) * demand.minutes

    def saved(units: int) -> Fraction:
        return demand.served(units * each) * price * demand.pace - units * rent

    most = max(count for count, _ in demand.windows)
    low, high = 0, int(-(-most // (each * offer.step)))
    while low < high:  # each further step saves less than the one before
        middle = (low + high) // 2
        if saved((middle + 1) * offer.step) > saved(middle * offer.step):
            low = middle + 1
        else:
            high = middle
    units = max(low, -(-offer.least_units // offer.step)) * offer.step
    gain = saved(units)
    if gain <= 0:
        return None
    served = demand.served(units * each)
    able = units * Fraction(offer.tokens_per_minute) * period_minutes
    return ReservedPlan(
        offer,
        units,
        units * rent,
        (tokens - served) * price * demand.pace,
        gain,
        served / able if able else Fraction(0),
    )
