"""What would have to be true: for each input alone, the value at which the period breaks even.

At the case's own volume, or at its capacity where that is less, own GPUs break even when what they
avoid equals what they cost: `served x a = F`. Each input enters one side in a straight line, so its
value is found exactly. Where the case already pays, the same value says how far it may move.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from ledger.economics.cost import Exact, weeks_of
from ledger.economics.sensitivity import BreakEvenCase, outcome


class ThresholdInput(StrEnum):
    GPU_RATE = "GPU rate"
    API_PRICE = "API price"
    VOLUME = "volume"
    INPUT_SHARE = "input share"
    CACHED_SHARE = "cache hits"
    OPS_HOURS = "ops hours"


@dataclass(frozen=True, slots=True)
class Threshold:
    """`needed` is in the input's own unit (the API price as a factor); `None`: no value does it.

    `at_most`: at this value or below it the case pays; else at it or above.
    """

    name: ThresholdInput
    now: Exact
    needed: Fraction | None
    at_most: bool


def thresholds(case: BreakEvenCase) -> list[Threshold]:
    """Every input alone, the others as they are."""
    return [
        Threshold(ThresholdInput.GPU_RATE, case.gpu_pusd_per_hour, _rate(case), at_most=True),
        Threshold(ThresholdInput.API_PRICE, 1, _price(case), at_most=False),
        Threshold(ThresholdInput.VOLUME, case.served_tokens, _volume(case), at_most=False),
        _share(
            case, ThresholdInput.INPUT_SHARE, "input_share", lambda each_case: each_case.input_share
        ),
        _share(
            case,
            ThresholdInput.CACHED_SHARE,
            "cached_share",
            lambda each_case: each_case.cached_share,
        ),
        Threshold(ThresholdInput.OPS_HOURS, case.ops_hours_per_week, _ops(case), at_most=True),
    ]


def _served(case: BreakEvenCase) -> Fraction:
    return min(Fraction(case.served_tokens), Fraction(case.configuration.capacity.tokens))


def _avoided(case: BreakEvenCase) -> Fraction:
    return _served(case) * Fraction(case.avoided.pusd_per_token)


def _rate(case: BreakEvenCase) -> Fraction | None:
    fixed = case.configuration.fixed
    hours = (case.gpus + Fraction(case.spares)) * Fraction(case.hours)
    room = _avoided(case) - Fraction(fixed.ops_pusd) - Fraction(fixed.overhead_pusd)
    return room / hours if hours and room >= 0 else None


def _price(case: BreakEvenCase) -> Fraction | None:
    avoided = _avoided(case)
    return Fraction(case.configuration.fixed.total_pusd) / avoided if avoided else None


def _volume(case: BreakEvenCase) -> Fraction | None:
    found = outcome(case)
    return (
        None if found.volume_tokens is None or not found.feasible else Fraction(found.volume_tokens)
    )


def _ops(case: BreakEvenCase) -> Fraction | None:
    fixed = case.configuration.fixed
    week = Fraction(case.ops_pusd_per_hour) * weeks_of(case.hours)
    room = _avoided(case) - Fraction(fixed.gpu_pusd) - Fraction(fixed.overhead_pusd)
    return room / week if week and room >= 0 else None


def _share(
    case: BreakEvenCase, name: ThresholdInput, field: str, now: Callable[[BreakEvenCase], Fraction]
) -> Threshold:
    """The result is linear in a share: its ends say where it is zero."""
    low, high = (
        Fraction(outcome(_with(case, field, end)).result_pusd) for end in (Fraction(0), Fraction(1))
    )
    at_most = high < low
    if low == high or (low < 0) == (high < 0):
        # It pays (or does not) whatever the share is.
        return Threshold(name, now(case), None, at_most)
    return Threshold(name, now(case), low / (low - high), at_most)


def _with(case: BreakEvenCase, field: str, value: Fraction) -> BreakEvenCase:
    return replace(case, **{field: value})  # type: ignore[arg-type]  # both fields are shares
