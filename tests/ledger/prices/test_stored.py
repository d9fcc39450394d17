"""The stored price book: versions are added and never edited, and come back as they went in."""

import msgspec
import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import DBAPIError

from ledger.orm.books import PriceImportRow, PriceVersionRow
from ledger.prices.book import PriceError
from ledger.prices.diff import planned
from ledger.prices.drafts import APPROVED_RANK, PriceDraft
from ledger.prices.rates import PriceTerms, TierRates, rates_from
from ledger.prices.stored import (
    BookMovedError,
    ImportStamp,
    import_approved,
    import_drafts,
    load_price_book,
    newer_prices,
    newest_version,
    read_days,
    records_of,
    stored_prices,
)


def draft(name: str, usd: int = 10, **fields: object) -> PriceDraft:
    terms = PriceTerms(rates_from({"input": usd, "output": 2 * usd, "cached": 1}))
    return PriceDraft(**{"name": name, "book": "litellm", "terms": terms, **fields})


def stored(engine) -> list[tuple]:
    query = select(PriceVersionRow.version, PriceVersionRow.name, PriceVersionRow.since_us)
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(query.order_by(PriceVersionRow.version))]


def test_prices_come_back_as_they_went_in(engine):
    first = draft("openai/gpt-4o", source="https://vendor/prices", source_date="2026-10-01")
    long = TierRates("standard", 200_000, rates_from({"input": 20, "output": 30}))
    tiered = PriceTerms(rates_from({"input": 10, "output": 20}), (long,), uplift_ppm=100_000)
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


STAMP = ImportStamp("ann@books", "deal.csv", digest="ab" * 32)


def planner(*drafts, book="deal.csv"):
    return lambda stored, at_us: planned(
        stored, drafts, book=book, only=lambda _: True, at_us=at_us
    )


def approve(engine, *drafts, at_us: int, stamp: ImportStamp = STAMP):
    plan = planner(*drafts)
    return import_approved(engine, plan, plan(stored_prices(engine), at_us), stamp=stamp,
                           at_us=at_us)  # fmt: skip


def test_an_approved_import_counts_from_its_storing_and_says_who(engine):
    import_drafts(engine, [draft("openai/gpt-4o")], at_us=100)
    deal = draft("openai/gpt-4o", 6, book="deal.csv", rank=APPROVED_RANK)
    plan = planner(deal)
    seen = plan(stored_prices(engine), 150)
    import_approved(engine, plan, seen, stamp=STAMP, at_us=190)
    assert stored(engine) == [(1, "openai/gpt-4o", 0), (2, "openai/gpt-4o", 190)]
    found = [(record.price.version, record.actor, record.origin, record.recorded_us)
             for record in records_of(engine, "openai/gpt-4o")]  # fmt: skip
    assert found == [(1, None, None, 100), (2, "ann@books", "deal.csv", 190)]
    assert load_price_book(engine).find("openai/gpt-4o", 190).terms == deal.terms


def test_a_start_leaves_what_was_approved_and_what_a_list_says_otherwise(engine):
    import_drafts(engine, [draft("openai/gpt-4o", 10)], at_us=100)
    approve(engine, draft("openai/gpt-5", 6, book="deal.csv", rank=APPROVED_RANK), at_us=200)
    before = stored(engine)
    newer = [draft("openai/gpt-4o", 7), draft("openai/gpt-4o-mini", 3)]
    assert import_drafts(engine, newer, at_us=300, keep_market=True).waiting == 1
    assert stored(engine) == [*before, (3, "openai/gpt-4o-mini", 0)]


def test_what_somebody_changed_meanwhile_is_not_what_was_approved(engine):
    import_drafts(engine, [draft("openai/gpt-4o", 10)], at_us=100)
    deal = draft("openai/gpt-4o", 6, book="deal.csv", rank=APPROVED_RANK)
    plan = planner(deal)
    seen = plan(stored_prices(engine), 150)
    approve(engine, deal, at_us=160)
    with pytest.raises(BookMovedError):
        import_approved(engine, plan, seen, stamp=STAMP, at_us=170)
    assert len(stored(engine)) == 2


def test_an_import_is_stored_whole_or_not_at_all(engine):
    """The database cannot keep the last row: the others and the note are not there either."""
    import_drafts(engine, [draft("openai/gpt-4o")], at_us=100)
    deal = {"book": "deal.csv", "rank": APPROVED_RANK}
    drafts = [draft("a/1", **deal), draft("a/2", **deal, effective_from_us=2**70)]
    with pytest.raises((OverflowError, DBAPIError)):
        approve(engine, *drafts, at_us=160)
    assert len(stored(engine)) == 1
    with engine.connect() as connection:
        assert connection.execute(select(PriceImportRow)).all() == []


def test_a_price_that_ended_is_no_row_that_ends_before_it_begins(engine):
    """Such a row would make the whole book unusable."""
    deal = {"book": "deal.yaml", "rank": 1, "effective_until_us": 150}
    import_drafts(engine, [draft("openai/gpt-4o", 10, **deal)], at_us=100)
    import_drafts(engine, [draft("openai/gpt-4o", 9, **deal)], at_us=200)
    book = load_price_book(engine)
    assert book.find("openai/gpt-4o", 120).terms == draft("x", 10).terms
    assert book.find("openai/gpt-4o", 200) is None


def test_readers_follow_by_version(engine):
    import_drafts(engine, [draft("openai/gpt-4o")], at_us=100)
    book = load_price_book(engine)
    with engine.connect() as connection:
        assert book.newest_version == newest_version(connection) == 1
    assert newer_prices(engine, book.newest_version) == []
    import_drafts(engine, [draft("openai/gpt-4o", 7)], at_us=200)
    grown = book.with_prices(newer_prices(engine, book.newest_version))
    assert grown.newest_version == 2
    assert grown.find("openai/gpt-4o", 250) == load_price_book(engine).find("openai/gpt-4o", 250)


def test_the_day_of_a_reading_is_kept_even_when_it_changed_nothing(engine):
    assert read_days(engine) == {}
    for day in ("2026-11-01", "2026-10-01"):
        stamp = ImportStamp("ann", "litellm", read_on=day)
        approve(engine, at_us=100, stamp=stamp)
    assert read_days(engine) == {"deal.csv": "2026-11-01"}


def test_what_prices_have_alike_is_held_once(engine):
    dear = PriceTerms(rates_from({"input": 2_000_000, "output": 8_000_000}))
    cheap = PriceTerms(rates_from({"input": 1_000_000, "output": 8_000_000}))
    drafts = [
        PriceDraft(name=f"a/{place}", book="list", terms=terms, source="https://prices.example")
        for place, terms in enumerate((dear, dear, cheap))
    ]
    import_drafts(engine, drafts, at_us=0)
    item, other, third = stored_prices(engine)
    assert item.terms == other.terms == dear
    assert third.terms == cheap
    assert item.terms is other.terms
    assert item.source is other.source is third.source


def test_a_version_of_an_earlier_program_reads_as_before(engine):
    """It knew of no charges beside its terms: none is unread."""
    kinds = ("input", "cached", "cache_write", "cache_write_1h", "output", "reasoning",
             "audio_input", "audio_output")  # fmt: skip
    document = {
        "version": 0, "name": "openai/gpt-4o", "book": "litellm", "effective_from_us": 0,
        "terms": {"rates": dict.fromkeys(kinds, 5), "request_pusd": 7},
    }  # fmt: skip
    with engine.begin() as connection:
        values = {"name": "openai/gpt-4o", "since_us": 0, "price": document, "source": "",
                  "recorded_us": 1}  # fmt: skip
        connection.execute(insert(PriceVersionRow).values(**values))
    book = load_price_book(engine)
    price = book.find("openai/gpt-4o", 9)
    assert price.terms == PriceTerms(rates_from({"input": 5, "output": 5}), request_pusd=7)
    assert book.unread_terms(price, 9) == ()
    # A kind that came later costs what it is a part of.
    terms = {"rates": {**dict.fromkeys(kinds, 5), "image_output": 5}, "request_pusd": 7}
    assert msgspec.to_builtins(price) == {**document, "version": 1, "terms": terms}


def test_at_a_start_charges_that_were_not_named_so_far_count_without_approval(engine):
    """Amounts wait for a person, as ever; what a price does not say is no amount."""
    older = [draft("openai/gpt-4o"), draft("openai/gpt-5"), draft("openai/o3")]
    import_drafts(engine, older, at_us=100)

    def unsaid(name: str, usd: int = 10) -> PriceDraft:
        terms = msgspec.structs.replace(draft(name, usd).terms, unread=("page_cost",))
        return draft(name, terms=terms)

    newer = [unsaid("openai/gpt-4o"), unsaid("openai/gpt-5", 11), draft("openai/o3")]
    changes = import_drafts(engine, newer, at_us=200, keep_market=True)
    assert (len(changes.rows), changes.waiting) == (1, 1)
    book = load_price_book(engine)
    unread = {
        name: book.unread_terms(book.find(name, 300), 300) for name in book.names()
    }  # fmt: skip
    assert unread == {"openai/gpt-4o": ("page_cost",), "openai/gpt-5": (), "openai/o3": ()}
    assert book.find("openai/gpt-4o", 150).terms.unread == ()
    assert import_drafts(engine, newer, at_us=300, keep_market=True).rows == ()
