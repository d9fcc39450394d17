"""The verdict on a page: the ledger's own sentence, in the money of who reads it."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

from dashboard import display
from dashboard.sections.verdict import best_text, noun, option_records, read_money, sheet_line
from ledger.currencies import Currency
from ledger.economics.assumptions import AssumptionSheet, PoolAssumptions
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.economics.verdict_text import sentence
from ledger.money import PUSD_PER_USD

POOL = PoolAssumptions(
    "p", 2, Fraction(720), PUSD_PER_USD // 2, capacity_per_minute=10_000, rate_origin="a contract"
)
CURVE = ValueCurve(
    (TrafficClass("chat", 2_000_000, True), TrafficClass("inside", None, False)),
    (TrafficWindow((17_000, 3_000), (0, 0), 10_800),),
    2,
    10_000,
    (0, 0),
)


def verdict() -> FleetVerdict:
    return judge(AssumptionSheet((POOL,)), {"p": CURVE})


def test_the_sentence_is_the_ledgers_in_the_money_that_is_read() -> None:
    assert sentence(verdict(), read_money) == sentence(verdict())
    euro = Currency("EUR", Fraction(1, 2), date(2026, 1, 1), "a source", "a person")
    with display.read_as(display.DisplaySettings(money=euro)):
        assert "EUR\u00a072.00" in sentence(verdict(), read_money)
    assert "$144.00" in sentence(verdict())


def test_the_sheet_is_one_line_and_unknown_ops_are_named() -> None:
    line = sheet_line(verdict())
    assert line.startswith("$0.50 per GPU-hour (contract: a contract) · ops not entered · ")
    assert "10.0k tokens a minute" in line
    assert noun(verdict()) == "GPUs"


def test_a_source_is_cut_after_a_word_and_none_is_made_up() -> None:
    """A contract without a source once read "contract: this scenario"."""
    long = replace(POOL, rate_origin="RunPod RTX 4090 on demand, as listed in March")
    lines = [
        sheet_line(judge(AssumptionSheet((pool,)), {"p": CURVE}))
        for pool in (long, replace(POOL, rate_origin=None))
    ]
    assert "(contract: RunPod RTX 4090 on demand, as …)" in lines[0]
    assert lines[1].startswith("$0.50 per GPU-hour (contract) · ")


def test_the_best_number_is_told_with_the_cost_of_its_month() -> None:
    assert best_text(verdict()).endswith(" a month")
    (pool,) = verdict().pools
    assert read_money(pool.best.total_pusd) in best_text(verdict())


def test_bars_have_what_is_known_of_each_allowed_option() -> None:
    (pool,) = verdict().pools
    records = option_records(pool)
    assert {record["kind"] for record in records} == {"GPUs", "APIs"}, "ops are unknown: no bar"
    assert {record["name"] for record in records} == {"1 GPU (best)", "2 GPUs (now)", "3 GPUs"}
