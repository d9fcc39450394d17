"""Offers that people enter with source and day: GPU prices and reserved API capacity.

A GPU's hourly price extends the catalogue's range, and the last entry names the source. Spot prices
are separate, because spot hours can be interrupted.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Literal

import msgspec
from sqlalchemy import Connection

from ledger.economics.reserved_capacity import ReservedOffer
from ledger.fleet.market import GpuOffer
from ledger.manual_entries import (
    GPU_PRICE,
    RESERVED,
    ManualEntry,
    entries,
    entries_in_force,
    latest_us,
)
from ledger.money import usd_to_pusd

PriceKind = Literal["hour", "spot"]
Term = Literal["hour", "month", "year"]


class GpuPrice(msgspec.Struct, frozen=True):
    """The hourly price of one GPU in USD as decimal text, with day and source."""

    usd_per_hour: str
    day: str
    source: str

    @property
    def pusd(self) -> int:
        return usd_to_pusd(Decimal(self.usd_per_hour))


class ReservedUnits(msgspec.Struct, frozen=True):
    """The terms of one reserved unit at a target, as entered."""

    tokens_per_minute: int
    usd_per_hour: str
    source: str
    day: str
    least_units: int = 1
    step: int = 1
    term: Term = "month"

    def offer(self, target: str) -> ReservedOffer:
        pusd = usd_to_pusd(Decimal(self.usd_per_hour))
        return ReservedOffer(
            target, self.tokens_per_minute, pusd, self.least_units, self.step, self.term,
            self.source, self.day,
        )  # fmt: skip


def reserved_offers(connection: Connection, at_us: int) -> tuple[ReservedOffer, ...]:
    """Return the offers in force, ordered by target."""
    found = _in_force(entries(connection, RESERVED), at_us)
    return tuple(
        msgspec.convert(entry.says, ReservedUnits).offer(name)
        for name, entry in sorted(found.items())
    )


def gpu_prices(
    found: Sequence[ManualEntry], at_us: int, kind: PriceKind
) -> dict[str, tuple[GpuPrice, ManualEntry]]:
    """Return the prices in force of one kind, by GPU."""
    ending = f"/{kind}"
    return {
        name.removesuffix(ending): (msgspec.convert(entry.says, GpuPrice), entry)
        for name, entry in _in_force(found, at_us).items()
        if name.endswith(ending)
    }


def priced_market(
    offers: Iterable[GpuOffer], prices: Mapping[str, tuple[GpuPrice, ManualEntry]]
) -> tuple[GpuOffer, ...]:
    """Return the catalogue with entered prices. They only widen a GPU's range."""
    return tuple(
        _priced(offer, prices[offer.name][0]) if offer.name in prices else offer for offer in offers
    )


def _priced(offer: GpuOffer, price: GpuPrice) -> GpuOffer:
    low, high = offer.low_pusd_per_hour, offer.high_pusd_per_hour
    day = date.fromisoformat(price.day)
    is_lowest = low is None or price.pusd <= low
    return replace(
        offer,
        low_pusd_per_hour=price.pusd if low is None else min(low, price.pusd),
        high_pusd_per_hour=price.pusd if high is None else max(high, price.pusd),
        price_source=_sources(offer, price),
        price_seen=day,
        low_source=(price.source, day) if is_lowest else offer.lowest_source,
    )


def _sources(offer: GpuOffer, price: GpuPrice) -> str:
    if offer.price_source is None:
        return price.source
    return f"{price.source}; {offer.price_source} of {offer.price_seen}"


def read_gpu_entries(connection: Connection) -> Sequence[ManualEntry]:
    """Return every entered GPU price, newest first."""
    return entries(connection, GPU_PRICE)


def _in_force(found: Sequence[ManualEntry], at_us: int) -> dict[str, ManualEntry]:
    standing = entries_in_force(found, latest_us(found, at_us))
    return {name: entry for name, entry in standing.items() if entry.says is not None}
