"""The stored price book: versions are added and never edited, and come back as they went in."""

import pytest
from sqlalchemy import select

from ledger.book import import_drafts, load_price_book
from ledger.drafts import PriceDraft
from ledger.orm_books import PriceVersion
from ledger.prices import PriceError
from ledger.rates import Schedule, Terms, rates_from


def draft(name: str, usd: int = 10, **fields: object) -> PriceDraft:
    terms = Terms(rates_from({"input": usd, "output": 2 * usd, "cached": 1}))
    return PriceDraft(**{"name": name, "book": "litellm", "terms": terms, **fields})


def stored(engine) -> list[tuple]:
    query = select(PriceVersion.version, PriceVersion.name, PriceVersion.since_us)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query.order_by(PriceVersion.version))]


def test_prices_come_back_as_they_went_in(engine):
    first = draft("openai/gpt-4o", source="https://vendor/prices", source_date="2026-10-01")
    long = Schedule("standard", 200_000, rates_from({"input": 20, "output": 30}))
    tiered = Terms(rates_from({"input": 10, "output": 20}), (long,), uplift_ppm=100_000)
    second = draft("openai/gpt-5", terms=tiered, retired_on="2027-01-01", simulated=True)
    changes = import_drafts(engine, [first, second], at_us=100)
    book = load_price_book(engine)
    for row, version in zip(changes.rows, (1, 2), strict=True):
        assert book.find(row.draft.name, 200) == row.price(version)


def test_repeating_an_import_stores_nothing(engine):
    drafts = [draft("openai/gpt-4o"), draft("openai/gpt-5")]
    import_drafts(engine, drafts, at_us=100)
    before = stored(engine)
    assert import_drafts(engine, drafts, at_us=200).rows == ()
    assert stored(engine) == before


def test_a_changed_price_is_a_version_more_and_the_past_keeps_its_own(engine):
    import_drafts(engine, [draft("openai/gpt-4o", 10)], at_us=100)
    import_drafts(engine, [draft("openai/gpt-4o", 7)], at_us=200)
    assert stored(engine) == [(1, "openai/gpt-4o", 0), (2, "openai/gpt-4o", 200)]
    book = load_price_book(engine)
    at = {at_us: book.find("openai/gpt-4o", at_us) for at_us in (150, 199, 200, 10**18)}
    assert {at_us: price.version for at_us, price in at.items()} == {
        150: 1, 199: 1, 200: 2, 10**18: 2,
    }  # fmt: skip
    assert at[199].terms == draft("x", 10).terms
    assert at[200].terms == draft("x", 7).terms


def test_a_price_file_that_is_gone_is_withdrawn_with_all_its_names(engine):
    base = draft("openai/gpt-4o", 10)
    deal = {"book": "deal.yaml", "rank": 1}
    files = [draft("openai/gpt-4o", 6, **deal), draft("acme/own", 1, **deal)]
    import_drafts(engine, [base, *files], at_us=100)
    import_drafts(engine, [base], at_us=200)
    book = load_price_book(engine)
    assert book.find("openai/gpt-4o", 150).terms == files[0].terms
    assert book.find("acme/own", 150).terms == files[1].terms
    assert book.find("openai/gpt-4o", 250).terms == base.terms
    assert book.find("acme/own", 250) is None


def test_aliases_are_the_readers_not_the_stored(engine):
    import_drafts(engine, [draft("openai/gpt-4o")], at_us=100)
    assert load_price_book(engine).find("house/large", 200) is None
    book = load_price_book(engine, {"house/large": "openai/gpt-4o"})
    assert book.find("house/large", 200) == book.find("openai/gpt-4o", 200)


def test_drafts_that_contradict_each_other_store_nothing(engine):
    twice = [draft("openai/gpt-4o", 10), draft("openai/gpt-4o", 11)]
    with pytest.raises(PriceError, match="gpt-4o"):
        import_drafts(engine, [draft("openai/gpt-5"), *twice], at_us=100)
    assert stored(engine) == []
