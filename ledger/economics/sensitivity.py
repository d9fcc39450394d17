"""Which input moves the answer most: the break-even volume and the result, one input at a time.

A `BreakEvenCase` is what a person can question: GPU rate, API prices, mix, cache hits, duty, ops
hours.
Each bar of the tornado swings one input by the same share in both directions and recomputes; no
input is derived from another, so the bars can be compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from ledger.economics.breakeven import FleetConfiguration, assess, position
from ledger.economics.cost import (
    Exact,
    Mix,
    TokenBasis,
    UnitPrice,
    Volume,
    blended_price,
    capacity,
    ops_cost,
    weeks_of,
)


@dataclass(frozen=True, slots=True)
class BreakEvenCase:
    """Every input of break-even, in units a person knows. Prices are pico-USD per token."""

    gpus: int
    gpu_pusd_per_hour: Exact
    hours: Exact
    tokens_per_s: Exact  # input + output, of one GPU inside the SLO
    duty: Exact
    ops_hours_per_week: Exact
    ops_pusd_per_hour: Exact
    input_price: Exact
    cached_price: Exact
    output_price: Exact
    input_share: Fraction
    cached_share: Fraction
    served_tokens: Exact
    overhead_pusd: Exact = 0
    spares: Exact = 0  # paid for, add no capacity

    @property
    def avoided(self) -> UnitPrice:
        return blended_price(
            input_price=self.input_price,
            cached_price=self.cached_price,
            output_price=self.output_price,
            mix=Mix(self.input_share, self.cached_share),
        )

    @property
    def configuration(self) -> FleetConfiguration:
        each = capacity(
            tokens_per_s=self.tokens_per_s,
            hours=self.hours,
            duty=self.duty,
            basis=TokenBasis.INPUT_OUTPUT,
        )
        ops = ops_cost(
            hours_per_week=self.ops_hours_per_week,
            pusd_per_hour=self.ops_pusd_per_hour,
            weeks=weeks_of(self.hours),
        )
        return FleetConfiguration(
            self.gpus,
            self.gpu_pusd_per_hour,
            self.hours,
            each,
            ops,
            self.overhead_pusd,
            self.spares,
        )


@dataclass(frozen=True, slots=True)
class BreakEvenResult:
    """`volume_tokens` is `None` when nothing is saved per token."""

    volume_tokens: Exact | None
    feasible: bool
    result_pusd: Exact


@dataclass(frozen=True, slots=True)
class SensitivityBar:
    """One input, swung down and up by `share`."""

    name: str
    share: Fraction
    low: BreakEvenResult
    high: BreakEvenResult

    @property
    def reach_pusd(self) -> Exact:
        """How far the result moves between the two ends."""
        return abs(Fraction(self.high.result_pusd) - Fraction(self.low.result_pusd))


INPUTS: Mapping[str, tuple[str, ...]] = {
    "GPU rate": ("gpu_pusd_per_hour",),
    "API price": ("input_price", "cached_price", "output_price"),
    "duty": ("duty",),
    "input share": ("input_share",),
    "cache hits": ("cached_share",),
    "ops hours": ("ops_hours_per_week",),
    "volume": ("served_tokens",),
}
SHARES = frozenset({"duty", "input_share", "cached_share"})  # stay within 0 and 1


def outcome(case: BreakEvenCase) -> BreakEvenResult:
    """The case's break-even volume, whether it is within reach, and what the period earns.

    Tokens beyond the capacity are not served, so they earn nothing.
    """
    configuration, avoided = case.configuration, case.avoided
    answer = assess(configuration, avoided)
    served = min(case.served_tokens, configuration.capacity.tokens)
    stands = position(
        volume=Volume(served, TokenBasis.INPUT_OUTPUT),
        fixed_pusd=configuration.fixed.total_pusd,
        avoided=avoided,
    )
    volume = None if answer.volume is None else answer.volume.tokens
    return BreakEvenResult(volume, answer.feasible, stands.result_pusd)


def tornado(
    case: BreakEvenCase, *, share: Fraction, names: Sequence[str] = tuple(INPUTS)
) -> list[SensitivityBar]:
    """The bars, the one that moves the result most first."""
    bars = [
        SensitivityBar(
            name,
            share,
            outcome(_swung(case, name, 1 - share)),
            outcome(_swung(case, name, 1 + share)),
        )
        for name in names
    ]
    return sorted(bars, key=lambda bar: -bar.reach_pusd)


def _swung(case: BreakEvenCase, name: str, factor: Fraction) -> BreakEvenCase:
    changes: dict[str, Exact] = {}
    for field in INPUTS[name]:
        value = Fraction(getattr(case, field)) * factor
        changes[field] = min(value, Fraction(1)) if field in SHARES else value
    return replace(case, **changes)  # type: ignore[arg-type]  # every named field is a number
