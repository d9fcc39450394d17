"""What an import would change is told per name and kind, and is what storing does."""

import pytest

from ledger.prices.book import Price, PriceError
from ledger.prices.diff import PriceAmount, PriceStatus, amounts, approved, planned
from ledger.prices.drafts import APPROVED_RANK, PriceDraft
from ledger.prices.rates import PriceTerms, TierRates, rates_from

NOW_US = 1000
NAME = "openai/gpt-4o"


def terms(usd: int = 10, **fields) -> PriceTerms:
    return PriceTerms(rates_from({"input": usd, "output": 2 * usd, "cached": 1}), **fields)


def price(version: int, usd: int = 10, **fields) -> Price:
    return Price(**{"version": version, "name": NAME, "book": "litellm", "effective_from_us": 0,
                    "terms": terms(usd), **fields})  # fmt: skip


def draft(usd: int = 10, **fields) -> PriceDraft:
    return PriceDraft(**{"name": NAME, "book": "litellm", "terms": terms(usd), **fields})


def plan(stored, drafts, book="litellm", only=lambda _: True, at_us=NOW_US):
    return planned(stored, drafts, book=book, only=only, at_us=at_us)


def found(stored, drafts, **options):
    return [(entry.name, entry.status) for entry in plan(stored, drafts, **options).entries]


def test_added_changed_unchanged_and_dropped():
    stored = [price(1), price(2, name="a/same"), price(3, name="a/old")]
    drafts = [draft(8), draft(name="a/same"), draft(name="a/new")]
    made = plan(stored, drafts)
    assert [(entry.name, entry.status) for entry in made.entries] == [
        ("a/new", PriceStatus.ADDED), ("a/old", PriceStatus.DROPPED), (NAME, PriceStatus.CHANGED),
    ]  # fmt: skip
    assert made.changes.unchanged == 1
    assert [row.draft.name for row in made.changes.rows] == ["a/new", NAME]  # dropped ones stay
    changed = made.entries[2]
    assert changed.amounts == (
        PriceAmount("standard", 0, "input", "usd_per_million", 10, 8),
        PriceAmount("standard", 0, "output", "usd_per_million", 20, 16),
    )
    assert [amount.percent for amount in changed.amounts] == [-20.0, -20.0]


def test_a_files_names_that_are_gone_end_and_the_list_counts_again():
    deal = {"book": "deal.csv", "rank": APPROVED_RANK}
    stored = [price(1), price(2, 6, **deal), price(3, name="acme/own", **deal)]
    made = plan(stored, [], book="deal.csv")
    assert [
        (entry.name, entry.status, entry.after and entry.after.version) for entry in made.entries
    ] == [
        ("acme/own", PriceStatus.REMOVED, None),
        (NAME, PriceStatus.REMOVED, 1),
    ]
    assert all(row.withdrawn for row in made.changes.rows)


def test_what_another_book_hides_and_what_costs_the_same():
    deal = {"book": "deal.csv", "rank": APPROVED_RANK}
    stored = [price(1), price(2, 6, **deal)]
    assert found(stored, [draft(8)]) == [(NAME, PriceStatus.SHADOWED)]
    same = draft(10, book="deal.csv", rank=APPROVED_RANK)
    assert found([price(1)], [same], book="deal.csv") == [(NAME, PriceStatus.RESTATED)]


def test_of_two_price_lists_the_one_approved_last_counts():
    stored = [price(1), price(2, 9, book="genai-prices")]
    made = plan(stored, [draft(8)])
    (entry,) = made.entries
    assert (entry.status, entry.before.version, entry.after.terms) == (
        PriceStatus.CHANGED, 2, terms(8),
    )  # fmt: skip


def test_only_some_names():
    stored = [price(1), price(2, name="a/old", book="deal.csv", rank=APPROVED_RANK)]
    drafts = [draft(8, book="deal.csv", rank=APPROVED_RANK)]
    options = {"book": "deal.csv", "only": lambda name: name.startswith("openai/")}
    assert found(stored, drafts, **options) == [(NAME, PriceStatus.CHANGED)]


def test_the_past_of_a_priced_name_is_not_rewritten():
    deal = {"book": "deal.csv", "rank": APPROVED_RANK, "effective_from_us": 100}
    made = plan([price(1)], [draft(8, **deal), draft(8, name="a/new", **deal)], book="deal.csv")
    since = {row.draft.name: row.effective_from_us for row in made.changes.rows}
    assert since == {NAME: NOW_US, "a/new": 100}


def test_prices_to_come_are_stored_with_their_day_and_ended_ones_refused():
    deal = {"book": "deal.csv", "rank": APPROVED_RANK}
    (entry,) = plan([price(1)], [draft(8, **deal, effective_from_us=5000)], book="deal.csv").entries
    assert (entry.status, entry.since_us) == (PriceStatus.CHANGED, 5000)
    with pytest.raises(PriceError, match=r"deal\.csv: openai/gpt-4o: the price has ended"):
        plan([], [draft(8, **deal, effective_until_us=NOW_US)], book="deal.csv")


def test_an_approval_is_of_what_was_seen_whenever_it_is_stored():
    first, later = plan([price(1)], [draft(8)]), plan([price(1)], [draft(8)], at_us=2000)
    assert approved(first) == approved(later)
    assert first.changes.rows != later.changes.rows
    assert approved(first) != approved(plan([price(1)], [draft(9)]))
    assert approved(first) != approved(plan([price(1, 8)], [draft(8)]))


def test_tiers_fees_and_surcharges_are_told_by_place():
    batch = TierRates("batch", 0, rates_from({"input": 5, "output": 10, "cached": 1}))
    long = TierRates("standard", 200, rates_from({"input": 20, "output": 40, "cached": 1}))
    full = terms(10, schedules=(batch, long), request_pusd=7, uplift_ppm=100_000)
    (entry,) = plan([price(1)], [draft(terms=full)]).entries
    assert [
        (amount.tier, amount.above_tokens, amount.kind, amount.unit, amount.new)
        for amount in entry.amounts
    ] == [
        ("standard", 0, "request", "usd", 7),
        ("standard", 0, "uplift", "percent", 100_000),
        ("standard", 200, "input", "usd_per_million", 20),
        ("standard", 200, "cached", "usd_per_million", 1),
        ("standard", 200, "output", "usd_per_million", 40),
        ("batch", 0, "input", "usd_per_million", 5),
        ("batch", 0, "cached", "usd_per_million", 1),
        ("batch", 0, "output", "usd_per_million", 10),
    ]
    assert entry.amounts[0].percent is None


def test_a_price_lists_what_does_not_follow_from_another_kind():
    assert [(amount.kind, amount.new) for amount in amounts(price(1))] == [
        ("input", 10), ("cached", 1), ("output", 20),
    ]  # fmt: skip


def test_prices_of_a_pictures_forms_are_told():
    def formed(pusd: int) -> PriceTerms:
        rates = rates_from({"input": 0, "output": 0})
        return PriceTerms(rates, (TierRates("hd", 0, rates, pusd),), picture_pusd=9)

    stored = [price(1, terms=formed(5))]
    (entry,) = plan(stored, [draft(terms=formed(7))]).entries
    assert [(each.tier, each.kind, each.old, each.new) for each in entry.amounts] == [
        ("hd", "picture", 5, 7)
    ]
    assert ("hd", "picture", 5) in {(each.tier, each.kind, each.new) for each in amounts(stored[0])}
