"""The catalogue in the books: stored once, read back equal; estimates say how they are known."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

from ledger.economics.cost import TokenBasis
from ledger.fleet.market import (
    GpuOffer,
    MeasuredThroughput,
    estimate,
    market,
    models,
    record_market,
)

FAST = MeasuredThroughput("8B", 8.5, 2, 6000.0, 2.0, 300.0, 40.0, "a bench")
BIG = GpuOffer(
    "H100", "NVIDIA", 80, 3_000, 6_980_000_000_000, 6_980_000_000_000, "a list", date(2026, 6, 1),
    (FAST,), "a sheet",
)  # fmt: skip
SMALL = GpuOffer("L4", "NVIDIA", 24, 300, None, None, None, None, (), "a sheet")
TINY = replace(SMALL, name="P4", memory_gib=8)


def test_what_is_recorded_is_read_and_the_same_again_changes_nothing(engine):
    assert record_market(engine, [BIG, SMALL], at_us=1)
    with engine.connect() as connection:
        assert market(connection) == (BIG, SMALL)
    assert not record_market(engine, [BIG, SMALL], at_us=2)
    assert record_market(engine, [SMALL], at_us=3)
    with engine.connect() as connection:
        assert market(connection) == (SMALL,)


def test_one_gpu_serves_its_share_of_what_was_measured():
    found = estimate([BIG, SMALL], BIG, "8B")
    assert (found.output_tokens_per_s, found.scaled, found.on) == (3000, 1, "H100")
    assert found.tokens_per_s(TokenBasis.OUTPUT) == 3000
    assert found.tokens_per_s(TokenBasis.INPUT_OUTPUT) == 9000, "two input tokens an output token"


def test_another_gpu_is_scaled_by_bandwidth_where_the_model_fits():
    found = estimate([BIG, SMALL, TINY], SMALL, "8B")
    assert (found.output_tokens_per_s, found.scaled) == (300, Fraction(1, 10))
    assert estimate([BIG, TINY], TINY, "8B") is None, "10.6 GiB into 7.2"
    assert estimate([BIG], BIG, "70B") is None
    assert models([BIG, SMALL]) == ["8B"]
