"""Cost of own engines per period and per token, where every value has a token basis.

A figure per token needs its basis: at 512 tokens in and 256 out, the same engine costs three times
as much per output token as per token of any kind. `Volume` and `UnitPrice` carry their basis, and
combining two bases raises `BasisMismatchError`. Money is exact pico-USD (`int` or `Fraction`); one
pico-USD per token is one micro-USD per 1M tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ledger.money import PUSD_PER_USD

Exact = int | Fraction

HOURS_PER_WEEK = 168
HOURS_OF_A_MONTH = 720
SECONDS_PER_HOUR = 3600
TOKENS_PER_MILLION = 10**6


class TokenBasis(StrEnum):
    """The tokens that a figure counts. Figures on different bases are never compared."""

    INPUT_OUTPUT = "input + output"
    OUTPUT = "output only"


class BasisMismatchError(ValueError):
    """Two figures with different token bases in one formula."""

    def __init__(self, left: TokenBasis, right: TokenBasis) -> None:
        super().__init__(f"a figure per {left} token cannot meet one per {right} token")


@dataclass(frozen=True, slots=True)
class Volume:
    """The tokens of one period, on a basis."""

    tokens: Exact
    basis: TokenBasis


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Money per token, on a basis."""

    pusd_per_token: Exact
    basis: TokenBasis

    @property
    def usd_per_million(self) -> Fraction:
        return Fraction(self.pusd_per_token) * TOKENS_PER_MILLION / PUSD_PER_USD


@dataclass(frozen=True, slots=True)
class FixedCost:
    """The cost of a period that is due whether or not any token is served."""

    gpu_pusd: Exact
    ops_pusd: Exact = 0
    overhead_pusd: Exact = 0  # power, egress, storage, amortised set-up

    @property
    def total_pusd(self) -> Exact:
        return self.gpu_pusd + self.ops_pusd + self.overhead_pusd


def same_basis(*figures: Volume | UnitPrice) -> TokenBasis:
    """Return the common basis of all figures. Raises `BasisMismatchError` if they differ."""
    basis = figures[0].basis
    for figure in figures[1:]:
        if figure.basis is not basis:
            raise BasisMismatchError(basis, figure.basis)
    return basis


def gpu_cost(*, gpus: Exact, pusd_per_hour: Exact, hours: Exact) -> Exact:
    """Return the cost of GPUs over a period. Every contract hour counts, busy or idle."""
    return gpus * pusd_per_hour * hours


def ops_cost(*, hours_per_week: Exact, pusd_per_hour: Exact, weeks: Exact) -> Exact:
    """Return the cost of people's time for own engines over a period."""
    return hours_per_week * pusd_per_hour * weeks


def weeks_of(hours: Exact) -> Fraction:
    return Fraction(hours) / HOURS_PER_WEEK


def peak_unit_cost(*, pusd_per_hour: Exact, tokens_per_s: Exact, basis: TokenBasis) -> UnitPrice:
    """Return the cost per token of an engine that is never idle: a lower bound."""
    if tokens_per_s <= 0:
        raise ValueError("a throughput must be above zero")
    tokens_per_hour = Fraction(tokens_per_s) * SECONDS_PER_HOUR
    return UnitPrice(Fraction(pusd_per_hour) / tokens_per_hour, basis)


def tokens_per_usd(*, pusd_per_hour: Exact, tokens_per_s: Exact) -> Fraction:
    """Return the inverse of the peak unit cost: tokens that one dollar buys at full load."""
    if pusd_per_hour <= 0:
        raise ValueError("a rate must be above zero")
    return Fraction(tokens_per_s) * SECONDS_PER_HOUR * PUSD_PER_USD / Fraction(pusd_per_hour)


def allocation_unit_cost(*, fixed_pusd: Exact, served: Volume) -> UnitPrice | None:
    """Return the whole bill per served token, idle time included, to compare with an API.

    `None` if nothing was served: then the bill is a loss without a unit price.
    """
    if served.tokens <= 0:
        return None
    return UnitPrice(Fraction(fixed_pusd) / Fraction(served.tokens), served.basis)


def capacity(*, tokens_per_s: Exact, hours: Exact, duty: Exact, basis: TokenBasis) -> Volume:
    """Return the volume that an engine serves inside its SLO in a period, at its duty share."""
    if not 0 <= duty <= 1:
        raise ValueError("duty must be between 0 and 1")
    return Volume(Fraction(tokens_per_s) * SECONDS_PER_HOUR * Fraction(hours) * duty, basis)


def on_all_tokens(output: Volume, *, input_per_output: Exact) -> Volume:
    """Restate an output-only volume as input + output, at a given mix."""
    if output.basis is not TokenBasis.OUTPUT:
        raise BasisMismatchError(output.basis, TokenBasis.OUTPUT)
    return Volume(output.tokens * (1 + Fraction(input_per_output)), TokenBasis.INPUT_OUTPUT)


def average_price(charges: Iterable[tuple[int, int]], *, basis: TokenBasis) -> UnitPrice | None:
    """Return the average avoided price `a` of (avoided pico-USD, tokens) pairs.

    `None` without tokens.
    """
    total = tokens = 0
    for charge, count in charges:
        total += charge
        tokens += count
    return UnitPrice(Fraction(total, tokens), basis) if tokens else None
