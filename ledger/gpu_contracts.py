"""Costs of GPUs by contract. Costs accrue whether or not a process runs.

`reserved`: every hour from `since_us` to `until_us`. `on_demand`: from each start of the machine to
its stop, including loading. `owned`: amortisation as for a reservation, plus power while the
machine runs. The bill of a span is the difference of two cumulative bills. Adjacent spans therefore
add up to the bill of their union exactly, at any rate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ledger.money import divide_half_even

Billing = Literal["reserved", "on_demand", "owned"]
US_PER_HOUR = 3_600_000_000


class ContractError(ValueError):
    """Rates or spans that no contract can have."""


@dataclass(frozen=True, slots=True)
class GpuContract:
    """A contract of one pool. Rates are for one GPU and hour; `gpus` counts the pool's GPUs.

    `running_us` lists the half-open spans in which the machine was up (instance start to stop;
    `None` is an open end). They determine `on_demand` cost and power. A crash of the engine does
    not end a span.
    """

    billing: Billing
    pusd_per_hour: int
    gpus: int
    since_us: int | None = None
    until_us: int | None = None
    power_pusd_per_hour: int = 0
    running_us: tuple[tuple[int, int | None], ...] = ()

    def __post_init__(self) -> None:
        if min(self.pusd_per_hour, self.gpus, self.power_pusd_per_hour) < 0:
            raise ContractError("rates and GPUs are never negative")


def gpu_bill_pusd(contract: GpuContract, from_us: int, until_us: int) -> int:
    """Return the contract's charge for `from_us <= t < until_us`, in pico-USD.

    Raises `ContractError` when the span ends before it begins.
    """
    if until_us < from_us:
        raise ContractError("the span ends before it begins")
    span = (from_us, until_us)
    term = (contract.since_us or 0, contract.until_us)
    rate = contract.pusd_per_hour * contract.gpus
    if contract.billing == "on_demand":
        return sum(_accrued_pusd(rate, piece, span) for piece in _within(contract.running_us, term))
    bill = _accrued_pusd(rate, term, span)
    power = contract.power_pusd_per_hour * contract.gpus
    if contract.billing == "owned" and power:
        bill += sum(
            _accrued_pusd(power, piece, span) for piece in _within(contract.running_us, term)
        )
    return bill


def _within(
    pieces: Iterable[tuple[int, int | None]], term: tuple[int, int | None]
) -> Iterable[tuple[int, int | None]]:
    """Yield the spans cut to the contract's term and merged, so that no time is billed twice."""
    reached = term[0]
    for start, stop in sorted(pieces, key=lambda piece: piece[0]):
        begin = max(start, reached)
        end = _earlier(stop, term[1])
        if end is None or end > begin:
            yield begin, end
        if end is None:
            return
        reached = max(reached, end)


def _accrued_pusd(rate_pusd: int, piece: tuple[int, int | None], span: tuple[int, int]) -> int:
    """Return the cumulative bill of `piece` at the end of the span less that at its start."""
    start, stop = piece
    upto, before = (
        _cumulative(rate_pusd, max(0, (at if stop is None else min(at, stop)) - start))
        for at in (span[1], span[0])
    )
    return upto - before


def _cumulative(rate_pusd: int, elapsed_us: int) -> int:
    return divide_half_even(rate_pusd * elapsed_us, US_PER_HOUR)


def _earlier(number: int | None, other: int | None) -> int | None:
    if number is None or other is None:
        return other if number is None else number
    return min(number, other)
