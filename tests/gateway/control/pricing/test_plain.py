"""What programs are told of prices: exact, in the unit that people read them in."""

import pytest

from gateway.control.pricing.plain import amount_text, plan_json
from ledger.prices.book import Price
from ledger.prices.diff import PER_TOKEN, PER_UNIT, SHARE, planned
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import PriceTerms, rates_from

NAME = "openai/gpt-4o"


@pytest.mark.parametrize(
    ("pusd", "unit", "text"),
    [
        (150_000, PER_TOKEN, "0.15"), (15_000_000, PER_TOKEN, "15"), (10, PER_TOKEN, "0.00001"),
        (5 * 10**9, PER_UNIT, "0.005"), (100_000, SHARE, "10"), (0, PER_TOKEN, "0"),
        (None, PER_TOKEN, "-"), (1_000_000_000_000, PER_TOKEN, "1000000"),
    ],
)  # fmt: skip
def test_amounts(pusd, unit, text):
    assert amount_text(pusd, unit) == text


def plan():
    stored = [
        Price(1, NAME, "litellm", 0, PriceTerms(rates_from({"input": 150_000, "output": 600_000})))
    ]
    drafts = [
        PriceDraft(NAME, "deal.csv", PriceTerms(rates_from({"input": 120_000, "output": 600_000})),
                   rank=9),
        PriceDraft("acme/own", "deal.csv", stored[0].terms, rank=9, effective_from_us=2 * 10**15),
    ]  # fmt: skip
    return planned(stored, drafts, book="deal.csv", only=lambda _: True, at_us=100)


def test_a_plan_for_programs():
    document = plan_json(plan())
    own, changed = document["entries"]
    assert (own["name"], own["status"], own["before"]) == ("acme/own", "added", None)
    assert own["from"] == "2033-05-18T03:33:20+00:00"
    assert changed["prices"][0] == {
        "tier": "standard", "above_tokens": 0, "kind": "input", "unit": "usd_per_million",
        "old": "0.15", "new": "0.12", "percent": -20.0,
    }  # fmt: skip
