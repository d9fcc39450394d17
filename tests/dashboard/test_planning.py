"""From traffic and figures to a plan: what is missing is no zero, and the best way is the best."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from dashboard.planning import (
    BASIS,
    PlanInputs,
    PlanTraffic,
    break_even_of,
    cumulative_records,
    number_of,
    of_file,
    of_ledger,
    plan,
    verdict,
)
from ledger.economics.cost import UnitPrice
from ledger.economics.purchase import Commitment, Purchase, PurchaseKind
from ledger.economics.usagefile import PricedUsage, parse_usage

USD = 10**12
MONTH_H = 730
TRAFFIC = PlanTraffic("a test", (6_000,) * 60, UnitPrice(10**6, BASIS))  # 100 tokens/s at $1/1M
FIGURES = PlanInputs(
    months=36, growth=Fraction(0), discount_per_year=Fraction(0), pusd_per_hour=USD // 10,
    tokens_per_s=100, duty=Fraction(1), spares=0, ops_hours_per_week=Fraction(0),
    ops_pusd_per_hour=0, terms=(Commitment(12, Fraction(1, 5)),), purchase=None,
)  # fmt: skip
MONTHLY = Fraction(36, 100) * MONTH_H  # dollars: 0.36M tokens an hour at $1


def test_traffic_is_restated_for_a_month() -> None:
    assert TRAFFIC.per_month == 6_000 * 60 * MONTH_H


def test_every_way_that_has_its_figures_and_no_other() -> None:
    ways = [way.option.way for way in plan(TRAFFIC, FIGURES).ways]
    assert ways == [PurchaseKind.STAY, PurchaseKind.RENT, PurchaseKind.RESERVE]
    bought = replace(FIGURES, pusd_per_hour=None, purchase=Purchase(USD, 48, Fraction(0)))
    assert [way.option.way for way in plan(TRAFFIC, bought).ways] == [
        PurchaseKind.STAY,
        PurchaseKind.BUY,
    ]
    for missing in ({"pusd_per_hour": None}, {"tokens_per_s": None}):
        assert len(plan(TRAFFIC, replace(FIGURES, **missing)).ways) == 1


def test_the_best_way_and_its_figures() -> None:
    found = plan(TRAFFIC, FIGURES)
    stay, rent, reserve = found.ways
    assert stay.npv_pusd == 36 * MONTHLY * USD
    assert rent.npv_pusd == 36 * MONTH_H * USD // 10
    assert reserve.npv_pusd == rent.npv_pusd * 4 / 5
    assert found.best is reserve
    assert (reserve.saved_pusd, reserve.payback) == (stay.npv_pusd - reserve.npv_pusd, 1)
    text, more, leaves = verdict(found, "H100")
    assert (text, leaves) == ("Reserve, 12 months: 1 x H100.", True)
    assert "less than staying over 36 months" in more


def test_staying_is_an_answer_and_missing_a_rate_is_none() -> None:
    dear = plan(TRAFFIC, replace(FIGURES, pusd_per_hour=9 * USD))
    text, more, leaves = verdict(dear, "H100")
    assert (text, leaves) == ("Stay with the API for this traffic, for 36 months.", False)
    alone = plan(TRAFFIC, replace(FIGURES, pusd_per_hour=None))
    assert verdict(alone, "H100")[0].startswith("Enter your GPU rate")
    assert "reserve, 12 months (1 x H100), costs" in more


def test_break_even_of_one_gpu() -> None:
    found = break_even_of(TRAFFIC, FIGURES)
    assert found.volume.tokens == Fraction(MONTH_H * USD, 10) / 10**6
    assert found.capacity.tokens == 100 * 3600 * MONTH_H
    assert found.feasible
    assert not break_even_of(TRAFFIC, replace(FIGURES, duty=Fraction(1, 4))).feasible
    assert break_even_of(TRAFFIC, replace(FIGURES, pusd_per_hour=None)) is None


def test_an_export_becomes_traffic_that_says_what_it_hides() -> None:
    rows = ("start_time,end_time,model,input_tokens,output_tokens\n"
            "0,86400,a,1000,200\n0,86400,b,50,0\n")  # fmt: skip
    file = parse_usage(rows.encode(), "u.csv")
    found = of_file(file, PricedUsage({"openai/a": 12_000}, ("openai/b",), ()))
    assert sum(found.minutes) == 1_200, "what has no price is left out"
    assert found.average.pusd_per_token == 10
    assert found.hidden_peaks
    assert any("openai/b: left out, not counted as free" in note for note in found.notes)
    assert of_file(file, PricedUsage({}, ("openai/a", "openai/b"), ())) is None


def test_lines_of_the_chart() -> None:
    records, colours = cumulative_records(plan(TRAFFIC, FIGURES))
    assert set(colours) == {"stay with the API", "rent by the hour", "reserve, 12 months"}
    last = {record["kind"]: record["usd"] for record in records if record["month"] == 36}
    assert last["stay with the API"] == pytest.approx(float(36 * MONTHLY))
    assert len(set(colours.values())) == 3


def test_numbers_of_gpus() -> None:
    assert (number_of((2, 2)), number_of((0, 3, 1))) == ("2", "0 to 3")


def test_a_bucket_that_has_just_begun_counts_in_the_last_whole_minute() -> None:
    """Red before: in the first minute of an hour the page failed."""
    hour_us = 3_600 * 10**6
    moments = [
        SimpleNamespace(start_us=start_us, backend="api", tokens=600, cost_pusd=10**9)
        for start_us in (0, hour_us)
    ]
    scope = SimpleNamespace(start_us=0, end_us=hour_us + 30 * 10**6)
    survey = SimpleNamespace(scope=scope, moments=moments, bucket_us=hour_us)
    (traffic,) = of_ledger(survey)
    assert (len(traffic.minutes), sum(traffic.minutes), traffic.minutes[-1]) == (60, 1_200, 610)
