"""Prices are written exactly, in the unit that people read them in."""

import io

import pytest
from rich.console import Console

from gateway.cli.pricetables import kind_text, show_plan, summary
from gateway.control.pricing.plain import plan_json
from ledger.prices.book import Price
from ledger.prices.diff import PER_TOKEN, PER_UNIT, SHARE, PriceAmount, planned
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, TierRates, rates_from

NAME = "openai/gpt-4o"


def shown(plan) -> str:
    out = io.StringIO()
    show_plan(Console(file=out, width=200), plan_json(plan), 100)
    return out.getvalue()


@pytest.mark.parametrize(
    ("tier", "above", "kind", "unit", "text"),
    [
        ("standard", 0, "input", PER_TOKEN, "input"),
        ("batch", 200_000, "output", PER_TOKEN, "batch output >200k"),
        ("standard", 524_288, "cached", PER_TOKEN, "cached >524288"),
        ("standard", 0, "request", PER_UNIT, "request (USD)"),
        ("standard", 0, "uplift", SHARE, "uplift (%)"),
    ],
)
def test_kinds(tier, above, kind, unit, text):
    assert kind_text(PriceAmount(tier, above, kind, unit, 1, 1)) == text


def plan():
    batch = TierRates("batch", 0, rates_from({"input": 60_000, "output": 300_000}))
    stored = [
        Price(1, NAME, "litellm", 0, PriceTerms(rates_from({"input": 150_000, "output": 600_000})))
    ]
    drafts = [
        PriceDraft(NAME, "deal.csv", PriceTerms(rates_from({"input": 120_000, "output": 600_000}),
                                           (batch,)), rank=9),
        PriceDraft("acme/own", "deal.csv", stored[0].terms, rank=9, effective_from_us=2 * 10**15),
    ]  # fmt: skip
    return planned(stored, drafts, book="deal.csv", only=lambda _: True, at_us=100)


def test_a_plan_for_people():
    text = shown(plan())
    assert "openai/gpt-4o  changed  input         0.15  0.12   -20 %  now" in text
    assert "batch output     -   0.3       -" in text
    assert "2033-05-18" in text
    assert summary(plan_json(plan())) == "deal.csv: 1 added, 1 changed, 0 unchanged."


def test_what_cannot_well_be_right_stands_below_the_changes():
    assert "Look again" not in shown(plan())
    assert plan_json(plan())["implausible"] == []
    dear = PriceTerms(rates_from({"input": 150_000_000, "output": 600_000_000}))
    stored = [Price(1, NAME, "litellm", 0, plan().entries[1].before.terms)]
    drafts = [PriceDraft(NAME, "deal.csv", dear, rank=9)]
    made = planned(stored, drafts, book="deal.csv", only=lambda _: True, at_us=100)
    text = shown(made)
    assert "Look again: these cannot well be right" in text
    assert "a price per 1M tokens where one per 1K tokens is meant?" in text
    assert summary(plan_json(made)) == "deal.csv: 1 changed, 0 unchanged, 1 implausible."
    (odd,) = plan_json(made)["implausible"]
    assert (odd["name"], odd["detail"][:33]) == (NAME, "input, output: 1,000 times more t")
