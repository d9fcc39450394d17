"""Entered prices widen the catalogue's range, with source and day; offers are those in force."""

from datetime import date

import msgspec
import pytest

from ledger.fleet.entered_offers import (
    GpuPrice,
    ReservedUnits,
    gpu_prices,
    priced_market,
    read_gpu_entries,
    reserved_offers,
)
from ledger.fleet.market import GpuOffer
from ledger.manual_entries import GPU_PRICE, RESERVED, ManualEntry, enter

USD = 10**12
SEEN = GpuOffer("H100", "NVIDIA", 80, 1, 2 * USD, 3 * USD, "a list", date(2026, 6, 1), (), "sheet")
BARE = GpuOffer("L40S", "NVIDIA", 48, 1, None, None, None, None, (), "sheet")


def enter_price(connection, name: str, usd: str, at_us: int) -> None:
    says = msgspec.structs.asdict(GpuPrice(usd, "2026-11-02", "quote 7"))
    enter(connection, ManualEntry(0, GPU_PRICE + name, says, at_us, at_us, "fay"))


def test_the_newest_price_counts_and_spot_stays_apart(engine) -> None:
    with engine.begin() as connection:
        for at_us, (name, usd) in enumerate(
            [("H100/hour", "1.9"), ("H100/hour", "1.5"), ("H100/spot", "0.9")], start=1
        ):
            enter_price(connection, name, usd, at_us)
        found = read_gpu_entries(connection)
    assert {name: price.pusd for name, (price, _) in gpu_prices(found, 9, "hour").items()} == {
        "H100": 3 * USD // 2
    }
    assert gpu_prices(found, 9, "spot")["H100"][0].usd_per_hour == "0.9"
    (priced, bare) = priced_market((SEEN, BARE), gpu_prices(found, 9, "hour"))
    assert (priced.low_pusd_per_hour, priced.high_pusd_per_hour) == (3 * USD // 2, 3 * USD)
    assert priced.price_source == "quote 7; a list of 2026-06-01"
    assert priced.price_seen == date(2026, 11, 2)
    assert bare == BARE


def test_a_gpu_without_a_public_price_has_the_entered_one(engine) -> None:
    with engine.begin() as connection:
        enter_price(connection, "L40S/hour", "0.8", 1)
        found = gpu_prices(read_gpu_entries(connection), 1, "hour")
    (priced,) = priced_market((BARE,), found)
    assert (priced.low_pusd_per_hour, priced.price_source) == (8 * USD // 10, "quote 7")


def test_offers_are_those_in_force(engine) -> None:
    units = ReservedUnits(2_500, "0.01", "quote 8", "2026-11-02", 15, 5, "year")
    says = msgspec.structs.asdict(units)
    with engine.begin() as connection:
        enter(connection, ManualEntry(0, RESERVED + "a/chat", says, 1, 1, "fay"))
        enter(connection, ManualEntry(0, RESERVED + "b/x", says, 1, 1, "fay"))
        enter(connection, ManualEntry(0, RESERVED + "b/x", None, 2, 2, "fay"))
        (offer,) = reserved_offers(connection, 3)
    assert (offer.target, offer.tokens_per_minute, offer.pusd_per_hour) == (
        "a/chat", 2_500, USD // 100,
    )  # fmt: skip
    assert (offer.least_units, offer.step, offer.term, offer.since) == (15, 5, "year", "2026-11-02")


@pytest.mark.parametrize(
    ("usd", "source"),
    [
        ("1.5", ("quote 7", date(2026, 11, 2))), ("2", ("quote 7", date(2026, 11, 2))),
        ("2.5", ("a list", date(2026, 6, 1))), ("9", ("a list", date(2026, 6, 1))),
    ],
)  # fmt: skip
def test_the_lowest_rate_names_its_own_source_and_day(engine, usd, source) -> None:
    """Red before: one rate had the entered source, and the list's day was that of the quote."""
    with engine.begin() as connection:
        enter_price(connection, "H100/hour", usd, 1)
        enter_price(connection, "L40S/hour", usd, 1)
        found = gpu_prices(read_gpu_entries(connection), 1, "hour")
    priced, bare = priced_market((SEEN, BARE), found)
    assert priced.lowest_source == source
    assert bare.lowest_source == ("quote 7", date(2026, 11, 2))
    assert SEEN.lowest_source == ("a list", date(2026, 6, 1))
    assert BARE.lowest_source is None
