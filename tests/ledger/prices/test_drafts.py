import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger.prices.book import PriceBook
from ledger.prices.drafts import PriceDraft, diff
from ledger.prices.rates import PriceError, PriceTerms, rates_from


def draft(name="openai/gpt-4o", usd=10, **fields):
    terms = PriceTerms(rates_from({"input": usd, "output": usd}))
    return PriceDraft(name=name, book=fields.pop("book", "litellm"), terms=terms, **fields)


def imported(drafts, at_us=50):
    return diff([], drafts, at_us=at_us).prices(1)


def test_a_first_import_covers_the_past():
    prices = imported([draft(), draft("openai/gpt-5")])
    assert [(price.version, price.name, price.effective_from_us) for price in prices] == [
        (1, "openai/gpt-4o", 0),
        (2, "openai/gpt-5", 0),
    ]


def test_an_unchanged_import_stores_nothing():
    drafts = [draft(), draft("openai/gpt-5")]
    changes = diff(imported(drafts), drafts, at_us=100)
    assert (changes.rows, changes.unchanged, changes.gone) == ((), 2, ())


@pytest.mark.parametrize(
    "change",
    [
        {"terms": draft(usd=11).terms},
        {"source": "https://elsewhere"},
        {"retired_on": "2027-01-01"},
        {"simulated": True},
        {"effective_until_us": 900},
    ],
)
def test_only_the_changed_row_makes_a_version(change):
    drafts = [draft(), draft("openai/gpt-5")]
    stored = imported(drafts)
    changes = diff(stored, [replace(drafts[0], **change), drafts[1]], at_us=100)
    assert changes.unchanged == 1
    (row,) = changes.rows
    assert (row.price(3).version, row.price(3).effective_from_us) == (3, 100)


def test_reading_the_same_price_again_later_is_no_change():
    stored = imported([draft(source_date="2026-01-01")])
    assert diff(stored, [draft(source_date="2026-10-21")], at_us=100).rows == ()


def test_dated_rows_take_turns():
    first = draft(effective_from_us=100, rank=1, book="deal.yaml")
    second = draft(usd=8, effective_from_us=200, rank=1, book="deal.yaml")
    stored = imported([second, first], at_us=500)
    assert [row.effective_from_us for row in stored] == [100, 200]
    assert PriceBook(stored).find("openai/gpt-4o", 99) is None
    assert diff(stored, [first, second], at_us=500).rows == ()


@pytest.mark.parametrize(("at_us", "since_us"), [(150, 200), (500, 500)])
def test_a_correction_counts_from_its_date_but_never_rewrites_the_past(at_us, since_us):
    first = draft(effective_from_us=100, rank=1, book="deal.yaml")
    second = draft(usd=8, effective_from_us=200, rank=1, book="deal.yaml")
    stored = imported([first, second])
    corrected = replace(second, terms=draft(usd=7).terms)
    (row,) = diff(stored, [first, corrected], at_us=at_us).rows
    assert row.effective_from_us == since_us
    book = PriceBook([*stored, row.price(3)])
    assert book.find("openai/gpt-4o", since_us).terms == corrected.terms
    assert book.find("openai/gpt-4o", since_us - 1).terms != corrected.terms


def test_a_date_that_moved_ends_the_price_until_then():
    early = draft(effective_from_us=100, rank=1, book="deal.yaml")
    stored = imported([early])
    moved = diff(stored, [replace(early, effective_from_us=300)], at_us=200)
    stored += moved.prices(2)
    book = PriceBook(stored)
    assert [book.find("openai/gpt-4o", at) is None for at in (150, 250, 300)] == [0, 1, 0]


def test_what_a_file_drops_is_withdrawn_and_may_come_back():
    negotiated = draft(usd=7, rank=1, book="deal.yaml")
    stored = imported([draft(), negotiated])
    (row,) = diff(stored, [draft()], at_us=100).rows
    assert row.withdrawn
    stored.append(row.price(3))
    book = PriceBook(stored)
    assert book.find("openai/gpt-4o", 99).book == "deal.yaml"
    assert book.find("openai/gpt-4o", 100).book == "litellm"
    assert diff(stored, [draft()], at_us=200).rows == ()
    (back,) = diff(stored, [draft(), negotiated], at_us=300).rows
    assert PriceBook([*stored, back.price(4)]).find("openai/gpt-4o", 300).version == 4


def test_what_the_bundled_map_drops_stays_priced_and_is_named():
    stored = imported([draft(), draft("openai/gpt-5")])
    changes = diff(stored, [draft()], at_us=100)
    assert changes.rows == ()
    assert [named.name for named in changes.gone] == ["openai/gpt-5"]


def test_faults_and_repeats_are_refused_together():
    with pytest.raises(PriceError, match=r"nameless.*stated twice"):
        diff([], [draft("nameless"), draft(), draft()], at_us=0)


NAMES = st.sampled_from(["a/x", "a/y", "b/z"])
DATES = [None, 10, 20, 140, 150, 250]
SOURCES = st.lists(
    st.builds(
        draft,
        name=NAMES,
        usd=st.integers(1, 3),
        book=st.just("deal.yaml"),
        rank=st.just(1),
        effective_from_us=st.sampled_from(DATES),
    ),
    unique_by=lambda named: (named.name, named.effective_from_us),
).map(lambda drafts: sorted(drafts, key=lambda named: named.effective_from_us or 0))


@given(st.lists(SOURCES, max_size=5))
def test_an_import_settles_at_once_and_only_adds(imports):
    stored = []
    for place, drafts in enumerate(imports):
        at_us = 100 * (place + 1)
        stored += diff(stored, drafts, at_us=at_us).prices(len(stored) + 1)
        assert diff(stored, drafts, at_us=at_us + 1).rows == ()
        assert [row.version for row in stored] == list(range(1, len(stored) + 1))
        book = PriceBook(stored)
        for at in (at_us, at_us + 50):
            wanted = {
                draft.name: draft.terms for draft in drafts if (draft.effective_from_us or 0) <= at
            }
            assert {named.name: named.terms for named in book.prices_in_force(at)} == wanted
