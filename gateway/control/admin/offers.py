"""Operations on entered offers: GPU prices, and reserved API capacity by the unit."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, CONTRACTS
from gateway.control.admin.entries import current_entries, enter_entry, entries_document
from gateway.control.admin.verb import (
    NoInput,
    Note,
    OperationContext,
    OperationRefused,
    list_document,
    verb,
)
from ledger.fleet.entered_offers import GpuPrice, PriceKind, ReservedUnits, Term
from ledger.fleet.market import market
from ledger.manual_entries import GPU_PRICE, RESERVED

MOST_USD, MOST_ROWS, LONGEST = Decimal(1_000_000), 500, 200
MOST_TOKENS = 10**12

_Usd = Annotated[Decimal, msgspec.Meta(description="dollars an hour")]
_Source = Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST, description="who says so")]
_Day = Annotated[date, msgspec.Meta(description="of which the price is")]
_Units = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class GpuPriceInput(msgspec.Struct, forbid_unknown_fields=True):
    gpu: Annotated[str, msgspec.Meta(description="of the catalogue")]
    usd_per_hour: _Usd
    day: _Day
    source: _Source
    kind: PriceKind = "hour"


class EnterGpuPricesInput(msgspec.Struct, forbid_unknown_fields=True):
    prices: Annotated[list[GpuPriceInput], msgspec.Meta(min_length=1, max_length=MOST_ROWS)]
    note: Note | None = None


class EnterReservedInput(msgspec.Struct, forbid_unknown_fields=True):
    target: Annotated[str, msgspec.Meta(description="PROVIDER/MODEL that the units serve")]
    tokens_per_minute: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS, description="of a unit")]
    usd_per_hour: _Usd
    day: _Day
    source: _Source
    least_units: _Units = 1
    step: _Units = 1
    term: Term = "month"
    note: Note | None = None


class DropReservedInput(msgspec.Struct, forbid_unknown_fields=True):
    target: str
    note: Note | None = None


@verb("GET /gpu-prices", CONTRACTS, None, "What GPUs of the catalogue cost, as entered", NoInput)
def gpu_prices_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, GPU_PRICE)


@verb(
    "POST /gpu-prices",
    CONTRACTS + APPLY,
    "rates gpus",
    "Enter what GPUs of the catalogue cost, all of them or none",
    EnterGpuPricesInput,
)
def gpu_prices_enter(place: OperationContext, given: EnterGpuPricesInput) -> dict[str, Any]:
    with place.ledger.connect() as connection:
        known = {offer.name for offer in market(connection)}
    for index, price in enumerate(given.prices):
        at = f"prices[{index}]"
        if price.gpu not in known:
            names = (
                ", ".join(sorted(known)) or "no host has written it yet: start `breakeven serve`"
            )
            words = f"{at}.gpu: `{price.gpu}` is not in the catalogue: {names}"
            raise OperationRefused(words, param=f"{at}.gpu")
        _check(place, at + ".", price.usd_per_hour, price.day)
    said = [
        enter_entry(
            place,
            f"{GPU_PRICE}{price.gpu}/{price.kind}",
            msgspec.structs.asdict(GpuPrice(_text(price.usd_per_hour), str(price.day),
                                            price.source)),
            given.note,
        )
        for price in given.prices
    ]  # fmt: skip
    return {**list_document(said), "by": place.by}


@verb("GET /reserved", CONTRACTS, None, "Reserved API capacity that is offered", NoInput)
def reserved_list(place: OperationContext, _: NoInput) -> dict[str, Any]:
    return entries_document(place, RESERVED)


@verb(
    "POST /reserved",
    CONTRACTS + APPLY,
    "rates reserve",
    "Enter what reserved API capacity costs: the verdict weighs it beside GPUs and tokens",
    EnterReservedInput,
)
def reserved_enter(place: OperationContext, given: EnterReservedInput) -> dict[str, Any]:
    provider = given.target.partition("/")[0]
    if provider not in place.settings.providers:
        words = f"`target`: there is no provider `{provider}` in the configuration"
        raise OperationRefused(words, param="target")
    _check(place, "", given.usd_per_hour, given.day)
    units = ReservedUnits(
        given.tokens_per_minute, _text(given.usd_per_hour), given.source, str(given.day),
        given.least_units, given.step, given.term,
    )  # fmt: skip
    says = msgspec.structs.asdict(units)
    return enter_entry(place, RESERVED + given.target, says, given.note)


@verb(
    "POST /reserved/drop", CONTRACTS + APPLY, None, "Take an offer off the list", DropReservedInput
)
def reserved_drop(place: OperationContext, given: DropReservedInput) -> dict[str, Any]:
    if given.target not in {entry.name for entry in current_entries(place, RESERVED)}:
        words = f"`target`: nothing is offered for `{given.target}`"
        raise OperationRefused(words, param="target")
    return enter_entry(place, RESERVED + given.target, None, given.note)


def _check(place: OperationContext, prefix: str, usd: Decimal, day: date) -> None:
    if not usd.is_finite() or not 0 < usd <= MOST_USD or usd != round(usd, 12):
        words = f"`{prefix}usd_per_hour` is more than 0 and at most {MOST_USD:,}, to 12 places"
        raise OperationRefused(words, param=f"{prefix}usd_per_hour")
    if day > datetime.fromtimestamp(place.now_us / 1e6, UTC).date():
        words = f"`{prefix}day`: {day} is to come: a price is of a day that was"
        raise OperationRefused(words, param=f"{prefix}day")


def _text(usd: Decimal) -> str:
    return f"{usd.normalize():f}"


VERBS = (gpu_prices_list, gpu_prices_enter, reserved_list, reserved_enter, reserved_drop)
