"""The sheet's lines: every value with its source, and what is unknown named, never zero."""

from dataclasses import replace
from fractions import Fraction

from ledger.economics.assumptions import (
    AssumptionSheet,
    AssumptionSource,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.money import PUSD_PER_USD

POOL = PoolAssumptions(
    "p", 2, Fraction(720), PUSD_PER_USD // 2, rate_origin="contract 2026-17",
    rate_since="2026-10-01", models=(
        ModelAssumption("chat", ModelResidency.MAY_LEAVE, "a/chat", 2_000_000),
        ModelAssumption("contracts", ModelResidency.MAY_NOT_LEAVE, None, None),
    ),
)  # fmt: skip
SHEET = AssumptionSheet((POOL,))


def test_each_line_names_value_unit_source_and_day() -> None:
    by_name = {line.name: line for line in SHEET.lines}
    assert by_name["gpu_rate"].described() == {
        "name": "gpu_rate", "pool": "p", "value": "0.50", "unit": "USD per GPU-hour",
        "source": "contract", "origin": "contract 2026-17", "since": "2026-10-01",
    }  # fmt: skip
    assert by_name["price of chat elsewhere"].value == "2.00"
    assert by_name["residency of contracts"].value == "may not leave"
    assert "price of contracts elsewhere" not in by_name


def test_what_nobody_stated_is_unknown_and_never_zero() -> None:
    assert SHEET.unknown == ("ops", "capacity")
    ops = next(line for line in SHEET.lines if line.name == "ops")
    assert (ops.value, ops.source) == (None, AssumptionSource.UNKNOWN)
    stated = AssumptionSheet((replace(POOL, ops_pusd_per_week=0),))
    assert "ops" not in stated.unknown


def test_another_value_or_source_is_another_version() -> None:
    versions = {
        sheet.version
        for sheet in (
            SHEET,
            replace(SHEET, month_hours=744),
            AssumptionSheet((replace(POOL, rate_source=AssumptionSource.ENTERED),)),
            AssumptionSheet((replace(POOL, ops_pusd_per_week=0),)),
        )
    }
    assert len(versions) == 4
    assert AssumptionSheet((replace(POOL),)).version == SHEET.version
