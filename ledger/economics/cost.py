"""Cost of own engines per period and per token, with the token basis as part of every value.

A figure per token means nothing without its basis: at 512 tokens in and 256 out, the same engine
is three times dearer per output token than per token of any kind. `Volume` and `UnitPrice` carry
their basis, and combining two bases raises instead of answering. Money is pico-USD, exact (`int`
or `Fraction`); one pico-USD per token is one micro-USD per 1M tokens.
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
    """Which tokens a figure counts. Figures on different bases are never compared."""

    INPUT_OUTPUT = "input + output"
    OUTPUT = "output only"


class BasisMismatchError(ValueError):
    """Two figures on different token bases met in one formula."""

    def __init__(self, left: TokenBasis, right: TokenBasis) -> None:
        super().__init__(f"a figure per {left} token cannot meet one per {right} token")


@dataclass(frozen=True, slots=True)
class Volume:
    """Tokens of one period."""

    tokens: Exact
    basis: TokenBasis


@dataclass(frozen=True, slots=True)
class UnitPrice:
    """Money per token."""

    pusd_per_token: Exact
    basis: TokenBasis

    @property
    def usd_per_million(self) -> Fraction:
        return Fraction(self.pusd_per_token) * TOKENS_PER_MILLION / PUSD_PER_USD


@dataclass(frozen=True, slots=True)
class FixedCost:
    """The cost of a period that is owed whether or not a token is served."""

    gpu_pusd: Exact
    ops_pusd: Exact = 0
    overhead_pusd: Exact = 0  # power, egress, storage, amortised set-up

    @property
    def total_pusd(self) -> Exact:
        return self.gpu_pusd + self.ops_pusd + self.overhead_pusd


def same_basis(*figures: Volume | UnitPrice) -> TokenBasis:
    """Return the one basis of all figures. Raises `BasisMismatchError` where they differ."""
    basis = figures[0].basis
    for figure in figures[1:]:
        if figure.basis is not basis:
            raise BasisMismatchError(basis, figure.basis)
    return basis


def gpu_cost(*, gpus: Exact, pusd_per_hour: Exact, hours: Exact) -> Exact:
    """Return the cost of GPUs over a period: every hour of the contract counts, busy or not."""
    return gpus * pusd_per_hour * hours


def ops_cost(*, hours_per_week: Exact, pusd_per_hour: Exact, weeks: Exact) -> Exact:
    """Return people's time spent on own engines over a period."""
    return hours_per_week * pusd_per_hour * weeks


def weeks_of(hours: Exact) -> Fraction:
    return Fraction(hours) / HOURS_PER_WEEK


def peak_unit_cost(*, pusd_per_hour: Exact, tokens_per_s: Exact, basis: TokenBasis) -> UnitPrice:
    """Return cost per token of an engine that never idles: a floor, not what is paid."""
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
    """Return the whole bill per served token, idle included, for comparison with an API.

    `None` when nothing was served: the bill is then a loss, not a price.
    """
    if served.tokens <= 0:
        return None
    return UnitPrice(Fraction(fixed_pusd) / Fraction(served.tokens), served.basis)


def capacity(*, tokens_per_s: Exact, hours: Exact, duty: Exact, basis: TokenBasis) -> Volume:
    """Return the volume that an engine serves inside its SLO in a period, at its usable share."""
    if not 0 <= duty <= 1:
        raise ValueError("duty is a share of the period, 0 to 1")
    return Volume(Fraction(tokens_per_s) * SECONDS_PER_HOUR * Fraction(hours) * duty, basis)


def on_all_tokens(output: Volume, *, input_per_output: Exact) -> Volume:
    """Restate an output-only volume as input + output, at a named mix."""
    if output.basis is not TokenBasis.OUTPUT:
        raise BasisMismatchError(output.basis, TokenBasis.OUTPUT)
    return Volume(output.tokens * (1 + Fraction(input_per_output)), TokenBasis.INPUT_OUTPUT)


def average_price(charges: Iterable[tuple[int, int]], *, basis: TokenBasis) -> UnitPrice | None:
    """Average avoided price `a` from (avoided pico-USD, tokens) pairs; `None` without tokens."""
    total = tokens = 0
    for charge, count in charges:
        total += charge
        tokens += count
    return UnitPrice(Fraction(total, tokens), basis) if tokens else None
