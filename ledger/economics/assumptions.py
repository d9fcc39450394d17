"""The assumption sheet: every value that the verdict rests on, with its source. Immutable.

A value that nobody stated is `None` and listed as unknown, never zero. The sheet's version is a
hash of its values, so places that show one version show one verdict.
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
    """Permission to send a model's requests to an API. Unknown counts as not allowed."""

    MAY_LEAVE = "may leave"
    MAY_NOT_LEAVE = "may not leave"
    DECLARED_MOVABLE = "declared movable"
    NOT_KNOWN = "not known to leave"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One line of the sheet. `value` is `None` if unknown."""

    name: str
    pool: str | None
    value: str | None
    unit: str
    source: AssumptionSource
    origin: str | None = None
    since: str | None = None

    def described(self) -> dict[str, str | None]:
        """Return the line as JSON members."""
        return {
            "name": self.name, "pool": self.pool, "value": self.value, "unit": self.unit,
            "source": str(self.source), "origin": self.origin, "since": self.since,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelAssumption:
    """A model of a pool: the APIs that its requests may use, their price and their quality.

    `substitute` is the API that replaces the model without an evaluation; `None` for the same
    weights, or if the loss is stated.
    """

    model: str
    residency: ModelResidency
    fallback: str | None
    pusd_per_token: Exact | None
    substitute: str | None = None


@dataclass(frozen=True, slots=True)
class PoolAssumptions:
    """The assumptions of one pool.

    `noun` is the counted unit: a GPU, or an engine on a shared machine. `pusd_per_hour` is the
    current rate of one unit; an engine has `count_each` units. `ops_pusd_per_week` is `None` until
    ops are entered. `capacity_per_minute` is tokens of one engine inside the SLO. `answers` and
    `failures` are attempts of the period in which this pool's traffic was measured; failures
    include refused requests. `answers` is `None` if unknown, as for traffic that a person stated.
    `billed_share` is below 1 where GPUs are rented on demand and do not run in every hour.
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
    billed_share: Fraction = Fraction(1)

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
        if self.billed_share != 1:
            found.append(
                Assumption(
                    "billed_hours", self.pool, _decimal(self.billed_share * 100, 2),
                    "% of the month's hours", AssumptionSource.MEASURED,
                    "on demand: hours billed in the period",
                )
            )  # fmt: skip
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
    """All inputs of one verdict, except the traffic.

    `month_hours` are the hours of the month that amounts refer to.
    """

    pools: tuple[PoolAssumptions, ...]
    month_hours: Exact = HOURS_OF_A_MONTH
    changed: frozenset[str] = field(default=frozenset())  # names of values changed for a trial
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
        """Return the names of unknown values, each once."""
        return tuple(dict.fromkeys(line.name for line in self.lines if line.value is None))

    @property
    def version(self) -> str:
        """Return a hash of every line. Sheets with equal lines have one version."""
        text = repr(self.lines)
        return sha256(text.encode()).hexdigest()[:VERSION_DIGITS]

    def described(self) -> list[dict[str, Any]]:
        """Return the sheet as JSON members."""
        return [dict(line.described()) for line in self.lines]


def _usd(pusd: Exact) -> str:
    """Return decimal text in USD with two to six decimals: `0.50`."""
    text = format_usd(round(Fraction(pusd)), 6 if abs(Fraction(pusd)) < PUSD_PER_USD else 2)
    whole, _, places = text.replace("$", "").replace(",", "").partition(".")
    return f"{whole}.{places.rstrip('0').ljust(2, '0')}"


def _decimal(value: Exact, places: int) -> str:
    exact = Fraction(value)
    return str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.{places}f}"
