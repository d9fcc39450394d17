import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.journals.records import TokenCounts
from ledger.prices.book import (
    STANDARD,
    Price,
    PriceBook,
    PriceError,
    PriceTerms,
    TierRates,
    bound_pusd,
    check,
    dearest_usage,
    lists_tier,
    rates_from,
    tier_cost_pusd,
    tier_of,
)
from ledger.prices.rates import KINDS, WITHOUT_SOUND, ReachableMedia

CHEAP = PriceTerms(rates_from({"input": 1, "output": 2}))
DEAR = PriceTerms(rates_from({"input": 10, "output": 20}))
DAY_US = 86_400_000_000


def price(version, name="openai/gpt-4o", since=0, terms=CHEAP, **fields):
    return Price(version, name, fields.pop("book", "litellm"), since, terms, **fields)


def versions(*found):
    return [None if finding is None else finding.version for finding in found]


def test_the_version_in_force_at_an_instant():
    book = PriceBook([price(2, since=200, terms=DEAR), price(1, since=100)])
    assert versions(*(book.find("openai/gpt-4o", at) for at in (99, 100, 199, 200, 10**18))) == [
        None, 1, 1, 2, 2,
    ]  # fmt: skip
    assert book.version(2).terms == DEAR
    assert book.version(3) is None
    assert len(book) == 2


def test_of_two_versions_from_the_same_instant_the_later_number_counts():
    book = PriceBook([price(1), price(2, terms=DEAR)])
    assert book.find("openai/gpt-4o", 0).version == 2


def test_a_price_file_overrides_the_bundled_map_while_it_is_in_force():
    negotiated = price(2, since=100, effective_until_us=200, rank=1, book="deal.yaml", terms=DEAR)
    book = PriceBook([price(1), price(3, since=150), negotiated])
    assert versions(*(book.find("openai/gpt-4o", at) for at in (99, 100, 199, 200))) == [1, 2, 2, 3]


def test_a_withdrawn_price_gives_way_to_the_book_below():
    book = PriceBook(
        [
            price(1),
            price(2, rank=1, book="deal.yaml", terms=DEAR),
            price(3, since=100, rank=1, book="deal.yaml", terms=DEAR, withdrawn=True),
        ]
    )
    assert versions(*(book.find("openai/gpt-4o", at) for at in (99, 100))) == [2, 1]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("openai/gpt-4o#eu", "openai/gpt-4o"),
        ("openai/gpt-5.5#eu", "openai/gpt-5.5#eu"),
        ("openai/GPT-4o", "openai/gpt-4o"),
        ("deepinfra/meta-llama/llama-3.3-70b", "deepinfra/meta-llama/Llama-3.3-70B"),
        ("openai/gpt-4o-2024-08-06", "openai/gpt-4o"),
        ("openai/gpt-4o-20240806", "openai/gpt-4o"),
        ("openai/gpt-4o-latest", "openai/gpt-4o"),
        ("openai/gpt-4o-2024-05-13", "openai/gpt-4o-2024-05-13"),
        ("openai/ours", "openai/gpt-4o"),
        ("openai/ours#us", "openai/gpt-4o"),
        ("openai/gpt-4o-mini", None),
        ("openai/gpt-4", None),
        ("gpt-4o", None),
        ("azure/gpt-4o", None),
        ("", None),
    ],
)
def test_names_are_found_by_the_documented_rules_only(asked, found):
    names = [
        "openai/gpt-4o",
        "openai/gpt-5.5",
        "openai/gpt-5.5#eu",
        "openai/gpt-4o-2024-05-13",
        "deepinfra/meta-llama/Llama-3.3-70B",
    ]
    book = PriceBook(
        [price(place, name) for place, name in enumerate(names)], {"openai/ours": "openai/gpt-4o"}
    )
    price_found = book.find(asked, 0)
    assert (price_found and price_found.name) == found


def test_a_book_that_changed_its_rank_and_ended_is_over():
    """Two files change places, then the one that is now above is dropped: nothing of it is left."""
    book = PriceBook(
        [
            price(1, book="a.yaml", rank=1), price(2, book="b.yaml", rank=2),
            price(3, book="a.yaml", rank=2, since=10), price(4, book="b.yaml", rank=1, since=10),
            price(5, book="a.yaml", rank=2, since=20, withdrawn=True),
            price(6, book="b.yaml", rank=1, since=30, withdrawn=True),
        ]
    )  # fmt: skip
    found = versions(*(book.find("openai/gpt-4o", at_us) for at_us in (5, 15, 25, 35)))
    assert found == [2, 3, 4, None]


def test_of_two_books_of_one_rank_the_last_version_counts():
    book = PriceBook(
        [price(1, book="genai-prices"), price(2), price(3, book="genai-prices", since=9)]
    )
    assert versions(*(book.find("openai/gpt-4o", at_us) for at_us in (5, 9))) == [2, 3]


def test_in_force_lists_each_name_once():
    book = PriceBook([price(1), price(2, since=5), price(3, "a/b", since=9)])
    assert [item.version for item in book.prices_in_force(5)] == [2]
    assert [item.version for item in book.prices_in_force(9)] == [3, 2]


@pytest.mark.parametrize(
    ("word", "tier"),
    [
        (None, STANDARD), ("", STANDARD), ("default", STANDARD), ("auto", STANDARD),
        ("standard_only", STANDARD), ("Priority", "priority"), ("flex", "flex"), ("batch", "batch"),
        ("fast", "priority"),
    ],
)  # fmt: skip
def test_service_tiers_in_the_books_words(word, tier):
    assert tier_of(word) == tier


def scheduled(*places):
    return PriceTerms(
        CHEAP.rates, tuple(TierRates(tier, above, CHEAP.rates) for tier, above in places)
    )


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (price(1, "gpt-4o"), "provider/model"),
        (price(1, "openai/"), "provider/model"),
        (price(1, terms=PriceTerms(rates_from({"input": -1, "output": 1}))), "negative"),
        (price(1, terms=PriceTerms(CHEAP.rates, request_pusd=-1)), "negative"),
        (price(1, terms=PriceTerms(CHEAP.rates, uplift_ppm=-1)), "negative"),
        (price(1, terms=scheduled((STANDARD, 0))), "ascend"),
        (price(1, terms=scheduled((STANDARD, 200), (STANDARD, 100))), "ascend"),
        (price(1, terms=scheduled(("flex", 0), ("flex", 0))), "ascend"),
        (price(1, terms=scheduled(("flex", 100))), "short prompts"),
        (price(1, since=5, effective_until_us=5), "ends before"),
        (price(1, terms=PriceTerms(rates_from({"input": 10**11, "output": 1}))), "64-bit"),
    ],
)
def test_the_dry_run_finds_what_cannot_be_used(broken, fault):
    assert any(fault in line for line in check(broken))
    with pytest.raises(PriceError, match=fault):
        PriceBook([broken])


def test_a_usable_price_has_no_faults_and_survives_storage():
    full = price(1, terms=scheduled(("batch", 0), (STANDARD, 100), (STANDARD, 200)), rank=2)
    assert check(full) == []
    assert msgspec.json.decode(msgspec.json.encode(full), type=Price) == full
    assert msgspec.convert(msgspec.to_builtins(full), Price) == full


@pytest.mark.parametrize(
    ("word", "cost", "listed"),
    [
        (None, 12, True),
        ("default", 12, True),
        ("flex", 6, True),
        ("Priority", 36, True),
        ("scale", 12, False),  # booked at standard rates, and said so
    ],
)
def test_an_answers_tier_has_its_own_rates(word, cost, listed):
    tiers = {"flex": {"input": 1, "output": 2}, "priority": {"input": 6, "output": 12}}
    terms = PriceTerms(
        rates_from({"input": 2, "output": 4}),
        tuple(TierRates(tier, 0, rates_from(rates)) for tier, rates in tiers.items()),
    )
    found = tier_cost_pusd(TokenCounts(input=2, output=2), price(1, terms=terms), word)
    assert found == (cost, listed)


@pytest.mark.parametrize(
    ("tiers", "dearest"),
    [
        ({}, None),
        ({"flex": {"input": 1, "output": 2}}, None),
        ({"flex": {"input": 2, "output": 4}}, None),  # as dear as the standard one
        ({"flex": {"input": 1, "output": 2}, "priority": {"input": 6, "output": 12}}, "priority"),
        # The dearest kind of the standard tier is not that of the dearest tier.
        ({"priority": {"input": 2, "output": 3, "image_output": 18}}, "priority"),
    ],
)
def test_an_answer_that_named_no_tier_may_have_cost_the_dearest(tiers, dearest):
    terms = PriceTerms(
        rates_from({"input": 2, "output": 4, "reasoning": 5}),
        tuple(TierRates(tier, 0, rates_from(rates)) for tier, rates in tiers.items()),
    )
    listed, tokens = price(1, terms=terms), TokenCounts(input=2, output=2)
    found, tier = dearest_usage(tokens, listed, WITHOUT_SOUND)
    assert tier == dearest
    cost, _ = tier_cost_pusd(found, listed, tier)
    assert cost == bound_pusd(listed, prompt_tokens=2, output_tokens=2, media=WITHOUT_SOUND)


RATES = st.fixed_dictionaries(
    {"input": st.integers(0, 20), "output": st.integers(0, 20)},
    optional={kind: st.integers(0, 40) for kind in KINDS if kind not in ("input", "output")},
).map(rates_from)
MEDIA = st.builds(ReachableMedia, st.booleans(), st.booleans(), st.booleans())


@given(
    rates=RATES, tiers=st.dictionaries(st.sampled_from(["flex", "priority"]), RATES),
    media=MEDIA, searches=st.integers(0, 3), uplift=st.sampled_from((0, 100_000)),
    prompt=st.integers(0, 500), output=st.integers(0, 500),
)  # fmt: skip
def test_an_answer_that_told_nothing_may_have_been_of_the_dearest_kinds_and_tier(
    rates, tiers, media, searches, uplift, prompt, output
):
    """As its hold is, to the pico-USD: writing a cache or thinking may cost more than text."""
    schedules = tuple(TierRates(tier, 0, tiers[tier]) for tier in sorted(tiers))
    terms = PriceTerms(
        rates, schedules, request_pusd=5, search_pusd=7, searches_limit=searches, uplift_ppm=uplift
    )
    listed = price(1, terms=terms)
    bound = {"prompt_tokens": prompt, "output_tokens": output, "media": media}
    found, tier = dearest_usage(TokenCounts(input=prompt, output=output), listed, media)
    assert (found.whole_prompt, found.output, found.searches) == (prompt, output, searches)
    assert tier_cost_pusd(found, listed, tier) == (bound_pusd(listed, **bound), True)
    for named in ("standard", *tiers):
        found, tier = dearest_usage(TokenCounts(prompt, output=output), listed, media, tier=named)
        assert tier == named
        assert tier_cost_pusd(found, listed, tier)[0] == bound_pusd(listed, **bound, tiers=[named])


def test_the_kinds_of_a_prompt_that_was_told_stay_as_they_are():
    terms = PriceTerms(rates_from({"input": 2, "output": 4, "cache_write_1h": 9, "reasoning": 6}))
    told = TokenCounts(input=10, cached=480, output=20)
    found, _ = dearest_usage(told, price(1, terms=terms), WITHOUT_SOUND, is_prompt_told=True)
    assert found == TokenCounts(input=10, cached=480, output=20, reasoning=20)


def test_within_an_unchanged_span_every_instant_has_the_same_price():
    ended = price(2, since=100, effective_until_us=150)
    above = price(3, since=120, rank=1)
    book = PriceBook([price(1), ended, above, price(4, since=180, rank=1, withdrawn=True)])
    spans = {book.unchanged_span_us(at_us) for at_us in range(-10, 300)}
    assert sorted(spans)[1:-1] == [(0, 100), (100, 120), (120, 150), (150, 180)]
    for since_us, until_us in spans:
        within = [at_us for at_us in range(-10, 300) if since_us <= at_us < until_us]
        assert len({book.find("openai/gpt-4o", at_us) for at_us in within}) == 1
        assert all(book.unchanged_span_us(at_us) == (since_us, until_us) for at_us in within)


UNREAD = ("search_context_cost_per_query", "output_cost_per_image_token")
LISTED = msgspec.structs.replace(CHEAP, unread=UNREAD)


@pytest.mark.parametrize(
    ("stated", "left"),
    [
        ({}, UNREAD),
        ({"request_pusd": 1}, UNREAD[1:]),
        ({"search_pusd": 1}, (*UNREAD, "max_searches")),
        ({"search_pusd": 1, "complete": True}, ("max_searches",)),
        ({"search_pusd": 1, "searches_limit": 5}, UNREAD[1:]),
        ({"complete": True}, ()),
    ],
)
def test_a_files_price_is_partly_known_as_the_markets_until_it_says_more(stated, left):
    terms = msgspec.structs.replace(DEAR, **stated)
    book = PriceBook([price(1, terms=LISTED), price(2, rank=1, book="deal.yaml", terms=terms)])
    assert book.find("openai/gpt-4o", 0).version == 2
    assert book.unread_terms(book.find("openai/gpt-4o", 0), 0) == left


def test_what_the_market_does_not_list_is_what_its_file_states():
    gone = price(3, since=100, withdrawn=True)
    deal = price(2, rank=1, book="deal.yaml", terms=DEAR)
    book = PriceBook([price(1, terms=LISTED), gone, deal])
    assert [book.unread_terms(deal, at_us) for at_us in (99, 100)] == [UNREAD, ()]
    assert PriceBook([deal]).unread_terms(deal, 0) == ()
    assert PriceBook([price(1, terms=LISTED)]).unread_terms(price(1, terms=LISTED), 0) == UNREAD


def test_a_price_lists_its_schedules_tiers_and_the_standard_one() -> None:
    flex = TierRates("flex", 0, rates_from({"input": 1, "output": 1}))
    terms = PriceTerms(rates_from({"input": 2, "output": 2}), (flex,))
    listed = [lists_tier(price(1, terms=terms), tier) for tier in ("standard", "flex", "scale")]
    assert listed == [True, True, False]


def test_a_batch_is_no_tier_that_a_request_can_ask_for() -> None:
    """Red before: a client that named it was booked at a batch's rates, and served as usual."""
    batch = TierRates("batch", 0, rates_from({"input": 1, "output": 1}))
    terms = PriceTerms(rates_from({"input": 2, "output": 2}), (batch,))
    assert not lists_tier(price(1, terms=terms), "batch")


@pytest.mark.parametrize(
    ("outside", "limit", "is_fault"), [(False, 0, 0), (True, 9, 0), (False, 9, 1), (True, 10**9, 1)]
)
def test_thoughts_have_a_limit_of_their_own_only_outside(outside, limit, is_fault) -> None:
    terms = msgspec.structs.replace(CHEAP, reasoning_outside=outside, reasoning_limit=limit)
    assert len(check(price(1, terms=terms))) == is_fault


def test_searches_without_a_limit_have_no_bound_but_at_a_reranker() -> None:
    searched = msgspec.structs.replace(CHEAP, search_pusd=5)
    free = msgspec.structs.replace(CHEAP.rates, output=0, reasoning=0)
    for terms, left in (
        (searched, ("max_searches",)),
        (msgspec.structs.replace(searched, searches_limit=30), ()),
        (msgspec.structs.replace(searched, rates=free), ()),
    ):
        for rank in (0, 1):
            book = PriceBook([price(1, rank=rank, terms=terms)])
            assert book.unread_terms(book.find("openai/gpt-4o", 0), 0) == left
