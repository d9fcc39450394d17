"""The verdict on a page: the ledger's own sentence, in the money of who reads it."""

from dataclasses import replace
from datetime import date
from fractions import Fraction

from dashboard import display, formatting
from dashboard.sections.verdict import (
    _below,
    _option_row,
    _reserved,
    best_text,
    noun,
    option_records,
    read_money,
    sheet_line,
)
from ledger.currencies import Currency
from ledger.economics.assumptions import (
    AssumptionSheet,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.reserved_capacity import ReservedOffer
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


def test_reserved_units_are_named_where_they_pay_and_where_they_never_do() -> None:
    models = (
        ModelAssumption("chat", ModelResidency.MAY_LEAVE, "a/chat", Fraction(2_000_000)),
        ModelAssumption("inside", ModelResidency.MAY_NOT_LEAVE, None, None),
    )
    for usd, named in ((0.01, "in it 1 reserved unit of a/chat at $7.20, "), (90, None)):
        offer = ReservedOffer("a/chat", 20_000, round(usd * PUSD_PER_USD))
        sheet = AssumptionSheet((replace(POOL, models=models),), reserved=(offer,))
        (pool,) = judge(sheet, {"p": CURVE}).pools
        rows = [_option_row(pool, option)[0] for option in pool.options]
        assert any(named in row for row in rows) if named else not any("unit" in r for r in rows)
        assert bool(_reserved(pool, sheet)) is (named is None)


def test_each_option_says_how_far_it_is_from_now() -> None:
    """`1 GPU costs $418.48` alone left the reader to subtract."""
    (pool,) = verdict().pools
    shown = {option.gpus: _option_row(pool, option)[1] for option in pool.options if option.allowed}
    now = pool.now.total_pusd
    for option in pool.options:
        if not option.allowed:
            continue
        beyond = option.total_pusd - now
        word = "more" if beyond > 0 else "less"
        text = f", {read_money(abs(beyond))} {word} than now"
        assert (text in shown[option.gpus]) is bool(beyond), option.gpus
    assert "than now" in shown[1]


def test_what_may_not_leave_is_told_with_its_tokens_of_a_month() -> None:
    found = verdict()
    (pool,) = found.pools
    (line,) = [text for text in _below(pool, found) if "may not leave: " in text]
    tokens = 3_000 * 10_800  # a month of 720 h, as the period
    assert line.endswith(f"inside ({formatting.tokens(tokens)} tokens a month).")
