"""The assumption sheet: every value that the verdict rests on, with its source; immutable.

A value that nobody stated is `None` here and listed as unknown: it is never zero. The sheet's
version is a hash of its values, so that two places that show one version show one verdict.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from hashlib import sha256
from typing import Any

from ledger.economics.cost import HOURS_OF_A_MONTH, HOURS_PER_WEEK, Exact
from ledger.economics.reserved_capacity import ReservedOffer
from ledger.money import PUSD_PER_USD, format_usd

VERSION_DIGITS = 12


class AssumptionSource(StrEnum):
    """The source of a value; `UNKNOWN` has no value."""

    CONTRACT = "contract"
    MEASURED = "measured"
    ENTERED = "entered"
    ASSUMED = "assumed"
    UNKNOWN = "unknown"


class ModelResidency(StrEnum):
    """Whether a model's requests may go to an API. Not known counts as may not."""

    MAY_LEAVE = "may leave"
    MAY_NOT_LEAVE = "may not leave"
    DECLARED_MOVABLE = "declared movable"
    NOT_KNOWN = "not known to leave"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One line of the sheet as people and programs read it; `value` is `None` if unknown."""

    name: str
    pool: str | None
    value: str | None
    unit: str
    source: AssumptionSource
    origin: str | None = None
    since: str | None = None

    def described(self) -> dict[str, str | None]:
        """Return the line as JSON has it."""
        return {
            "name": self.name, "pool": self.pool, "value": self.value, "unit": self.unit,
            "source": str(self.source), "origin": self.origin, "since": self.since,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelAssumption:
    """A model of a pool: where its requests could go, at what price, and how good that is.

    `substitute` is the API that stands in for the model when no evaluation has judged it;
    `None` for the same weights, or where the loss is stated.
    """

    model: str
    residency: ModelResidency
    fallback: str | None
    pusd_per_token: Exact | None
    substitute: str | None = None


@dataclass(frozen=True, slots=True)
class PoolAssumptions:
    """One pool. `noun` names what is counted: a GPU, or an engine on a shared machine.

    `pusd_per_hour` is the rate of one of `count_each` per engine, in force now. `ops_pusd_per_week`
    is `None` while ops are not entered. `capacity_per_minute` is of one engine inside the SLO.
    `answers` and `failures` are attempts of the period that this pool's traffic was measured from;
    requests that were refused are among the failures. `answers` is `None` where nobody counted
    them, as for traffic that a person stated.
    """

    pool: str
    engines: int
    hours: Fraction
    pusd_per_hour: Exact | None
    ops_pusd_per_week: Exact | None = None
    count_each: int = 1
    noun: tuple[str, str] = ("GPU", "GPUs")
    rate_source: AssumptionSource = AssumptionSource.CONTRACT
    rate_origin: str | None = None
    rate_since: str | None = None
    ops_source: AssumptionSource = AssumptionSource.CONTRACT
    ops_origin: str | None = None
    capacity_per_minute: Exact | None = None
    capacity_source: AssumptionSource = AssumptionSource.MEASURED
    capacity_origin: str | None = None
    window_minutes: int = 1
    models: tuple[ModelAssumption, ...] = ()
    answers: int | None = None
    failures: int = 0

    def lines(self) -> list[Assumption]:
        """Return the pool's lines of the sheet."""
        rate, ops = self.pusd_per_hour, self.ops_pusd_per_week
        capacity = self.capacity_per_minute
        unknown = AssumptionSource.UNKNOWN
        found = [
            Assumption(
                "gpu_rate", self.pool, None if rate is None else _usd(rate),
                f"USD per {self.noun[0]}-hour", self.rate_source if rate is not None else unknown,
                self.rate_origin, self.rate_since,
            ),
            Assumption(
                "ops", self.pool, None if ops is None else _usd(ops), "USD per week",
                self.ops_source if ops is not None else unknown,
                self.ops_origin if ops is not None else None,
            ),
            Assumption(
                "capacity", self.pool, None if capacity is None else _decimal(capacity, 2),
                f"tokens per minute of one engine inside the SLO, windows of {self.window_minutes} "
                "min", self.capacity_source if capacity is not None else unknown,
                self.capacity_origin,
            ),
        ]  # fmt: skip
        for model in self.models:
            price = model.pusd_per_token
            stays = ModelResidency.NOT_KNOWN
            found.append(
                Assumption(
                    f"residency of {model.model}", self.pool, str(model.residency),
                    "" if model.fallback is None else f"at {model.fallback}",
                    unknown if model.residency is stays else AssumptionSource.CONTRACT,
                )
            )  # fmt: skip
            if model.fallback is not None:
                found.append(
                    Assumption(
                        f"price of {model.model} elsewhere", self.pool,
                        None if price is None else _usd(Fraction(price) * 10**6),
                        "USD per 1M tokens", unknown if price is None else
                        AssumptionSource.MEASURED, model.fallback,
                    )
                )  # fmt: skip
        return found


@dataclass(frozen=True, slots=True)
class AssumptionSheet:
    """Everything that one verdict rests on, beside the traffic itself.

    `month_hours` are the hours of the month that amounts are stated for.
    """

    pools: tuple[PoolAssumptions, ...]
    month_hours: Exact = HOURS_OF_A_MONTH
    changed: frozenset[str] = field(default=frozenset())  # names that a person changed to try
    reserved: tuple[ReservedOffer, ...] = ()

    @property
    def weeks(self) -> Fraction:
        return Fraction(self.month_hours) / HOURS_PER_WEEK

    @property
    def lines(self) -> tuple[Assumption, ...]:
        month = Assumption(
            "month_hours", None, _decimal(self.month_hours, 2), "hours", AssumptionSource.ASSUMED
        )
        offers = (
            Assumption(
                f"reserved units of {offer.target}", None, _usd(offer.pusd_per_hour), offer.text,
                AssumptionSource.ENTERED, offer.source, offer.since,
            )
            for offer in self.reserved
        )  # fmt: skip
        return (month, *offers, *(line for pool in self.pools for line in pool.lines()))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Return names of what is not known, each once."""
        return tuple(dict.fromkeys(line.name for line in self.lines if line.value is None))

    @property
    def version(self) -> str:
        """Return a hash of every line: sheets that read alike are one version."""
        text = repr(self.lines)
        return sha256(text.encode()).hexdigest()[:VERSION_DIGITS]

    def described(self) -> list[dict[str, Any]]:
        """Return the sheet as JSON has it."""
        return [dict(line.described()) for line in self.lines]


def _usd(pusd: Exact) -> str:
    """`0.50`: decimal text in USD, at least two places, at most six."""
    text = format_usd(round(Fraction(pusd)), 6 if abs(Fraction(pusd)) < PUSD_PER_USD else 2)
    whole, _, places = text.replace("$", "").replace(",", "").partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


def _decimal(value: Exact, places: int) -> str:
    exact = Fraction(value)
    return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.{places}f}"
