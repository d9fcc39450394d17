import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.journals.records import TokenCounts
from ledger.prices.rates import (
    KINDS,
    STANDARD,
    TEXT_ALONE,
    WITHOUT_SOUND,
    Price,
    PriceError,
    PriceTerms,
    TierRates,
    UnpricedTierError,
    bound_pusd,
    cost_pusd,
    is_unlisted,
    per_unit_bound_pusd,
    prompt_tokens,
    rates_for,
    rates_from,
)

TIERS = ("batch", "flex", "priority")


def price(listed, *schedules, **terms):
    every = tuple(
        TierRates(tier, above, rates_from(kinds)) for tier, above, kinds in sorted(schedules)
    )
    return Price(1, "openai/m", "test", 0, PriceTerms(rates_from(listed), every, **terms))


MINI = price({"input": 150_000, "output": 600_000, "cached": 75_000})
LONG = price(
    {"input": 10, "output": 30, "cached": 1},
    (STANDARD, 200_000, {"input": 20, "output": 45, "cached": 2}),
    (STANDARD, 500_000, {"input": 50, "output": 90}),
    ("priority", 0, {"input": 25, "output": 75}),
    ("priority", 200_000, {"input": 40, "output": 90}),
)


def test_a_published_example_to_the_pico():
    # 500 uncached + 500 cached + 100 output at $0.15, $0.075 and $0.60 per million: $0.0001725.
    assert cost_pusd(TokenCounts(input=500, cached=500, output=100), MINI) == 172_500_000


def test_every_kind_has_its_own_rate():
    rates = {kind: 10**place for place, kind in enumerate(KINDS)}
    tokens = TokenCounts(1, 2, 3, 4, output=15, reasoning=6, audio_input=7, audio_output=8)
    expected = {
        "input": 1, "cached": 2, "cache_write": 3, "cache_write_1h": 4,
        "output": 1, "reasoning": 6, "audio_input": 7, "audio_output": 8,
    }  # fmt: skip
    assert cost_pusd(tokens, price(rates)) == sum(rates[k] * n for k, n in expected.items())


def test_unlisted_kinds_cost_what_is_charged_instead():
    rates = rates_from({"input": 3, "output": 15, "cache_write": 4})
    assert (rates.cached, rates.cache_write, rates.cache_write_1h) == (3, 4, 4)
    assert (rates.reasoning, rates.audio_input, rates.audio_output) == (15, 3, 15)


@pytest.mark.parametrize("listed", [{}, {"input": 1}, {"output": 1}])
def test_input_and_output_must_be_listed(listed):
    with pytest.raises(PriceError, match="must be priced"):
        rates_from(listed)


def test_unknown_kinds_are_refused():
    with pytest.raises(PriceError, match="video"):
        rates_from({"input": 1, "output": 1, "video": 1})


@pytest.mark.parametrize(
    ("prompt", "tier", "rate"),
    [
        (200_000, STANDARD, 10),
        (200_001, STANDARD, 20),
        (500_001, STANDARD, 50),
        (10, "priority", 25),
        (200_001, "priority", 40),
        (900_000, "priority", 40),
    ],
)
def test_the_whole_request_switches_above_a_threshold(prompt, tier, rate):
    assert cost_pusd(TokenCounts(input=prompt), LONG, tier=tier) == prompt * rate


def test_the_threshold_counts_the_whole_prompt():
    tokens = TokenCounts(input=1, cached=100_000, cache_write=50_000, cache_write_1h=50_000)
    assert prompt_tokens(tokens) == 200_001
    assert cost_pusd(tokens, LONG) == 20 + 2 * 100_000 + 20 * 100_000


def test_some_providers_switch_at_the_threshold_itself():
    at = price(
        {"input": 1, "output": 1}, (STANDARD, 100, {"input": 2, "output": 2}), inclusive=True
    )
    assert cost_pusd(TokenCounts(input=99), at) == 99
    assert cost_pusd(TokenCounts(input=100), at) == 200


@pytest.mark.parametrize("model", [MINI, LONG])
def test_a_tier_without_rates_is_refused_never_free(model):
    with pytest.raises(UnpricedTierError, match="batch"):
        cost_pusd(TokenCounts(input=1), model, tier="batch")
    with pytest.raises(UnpricedTierError):
        bound_pusd(model, prompt_tokens=1, output_tokens=1, tiers=("batch",))


def test_fees_and_uplift_round_once():
    regional = price({"input": 1, "output": 1}, request_pusd=4, uplift_ppm=100_000)
    assert cost_pusd(TokenCounts(input=1), regional) == 6  # 5.5: half to even
    assert cost_pusd(TokenCounts(input=21), regional) == 28  # 27.5: half to even
    assert bound_pusd(regional, prompt_tokens=1, output_tokens=0) == 6


def test_the_bound_takes_only_what_the_request_can_reach():
    full = {"prompt_tokens": 100, "output_tokens": 10}
    assert bound_pusd(LONG, **full) == 100 * 25 + 10 * 75
    assert bound_pusd(LONG, **full, tiers=(STANDARD,)) == 100 * 10 + 10 * 30
    assert bound_pusd(LONG, **full, tiers=("priority",)) == 100 * 25 + 10 * 75
    voice = price({"input": 1, "output": 2, "audio_input": 30, "audio_output": 60})
    assert bound_pusd(voice, **full, media=WITHOUT_SOUND) == 100 + 20
    assert bound_pusd(voice, **full) == 3000 + 600
    sketch = price({"input": 1, "output": 2, "image_output": 60})
    assert bound_pusd(sketch, **full, media=WITHOUT_SOUND) == 100 + 600
    assert bound_pusd(sketch, **full, media=TEXT_ALONE) == 100 + 20
    assert cost_pusd(TokenCounts(input=1, output=10, image_output=4), sketch) == 1 + 12 + 240


RATES = st.fixed_dictionaries(
    {"input": st.integers(0, 10**8), "output": st.integers(0, 10**9)},
    optional={kind: st.integers(0, 10**9) for kind in KINDS if kind not in ("input", "output")},
)
PLACES = st.dictionaries(
    st.tuples(st.sampled_from((STANDARD, *TIERS)), st.sampled_from([0, 1000, 128_000, 200_000])),
    RATES,
    max_size=8,
)


@st.composite
def prices(draw):
    places = {place: r for place, r in draw(PLACES).items() if place != (STANDARD, 0)}
    for tier, _ in list(places):
        if tier != STANDARD:
            places.setdefault((tier, 0), draw(RATES))
    return price(
        draw(RATES),
        *((tier, above, kinds) for (tier, above), kinds in places.items()),
        request_pusd=draw(st.integers(0, 10**10)),
        uplift_ppm=draw(st.sampled_from([0, 100_000, 123_457])),
        inclusive=draw(st.booleans()),
    )


@st.composite
def usages(draw):
    kinds = [draw(st.integers(0, 150_000)) for _ in range(5)]
    output = draw(st.integers(0, 100_000))
    reasoning = draw(st.integers(0, output))
    audio = draw(st.integers(0, output - reasoning))
    image = draw(st.integers(0, output - reasoning - audio))
    return TokenCounts(*kinds[:4], output, reasoning, kinds[4], audio, image_output=image)


@given(prices(), usages(), st.integers(0, 1000), st.integers(0, 1000), st.integers(1, 8))
def test_no_settle_exceeds_its_bound_in_any_tier(model, tokens, spare_prompt, spare_output, n):
    bound = bound_pusd(
        model,
        prompt_tokens=prompt_tokens(tokens) + spare_prompt,
        output_tokens=n * (-(-tokens.output // n) + spare_output),
    )
    tiers = {STANDARD, *(schedule.tier for schedule in model.terms.schedules)}
    for tier in tiers:
        assert 0 <= cost_pusd(tokens, model, tier=tier) <= bound


@given(prices(), usages(), st.sampled_from((STANDARD, *TIERS)))
def test_no_settle_exceeds_the_bound_of_its_own_tier(model, tokens, tier):
    full = {"prompt_tokens": prompt_tokens(tokens), "output_tokens": tokens.output}
    try:
        cost = cost_pusd(tokens, model, tier=tier)
    except UnpricedTierError:
        with pytest.raises(UnpricedTierError):
            bound_pusd(model, **full, tiers=(tier,))
        return
    assert cost <= bound_pusd(model, **full, tiers=(tier,))


@given(prices(), usages(), st.sampled_from((STANDARD, *TIERS)))
def test_a_cost_is_the_sum_over_kinds_written_out(model, tokens, tier):
    try:
        rates = rates_for(model, tier, prompt_tokens(tokens))
    except UnpricedTierError:
        return
    counts = {
        "input": tokens.input,
        "cached": tokens.cached,
        "cache_write": tokens.cache_write,
        "cache_write_1h": tokens.cache_write_1h,
        "output": tokens.plain_output,
        "image_output": tokens.image_output,
        "reasoning": tokens.reasoning,
        "audio_input": tokens.audio_input,
        "audio_output": tokens.audio_output,
    }
    assert counts.keys() == set(KINDS), "a new kind is written out here, too"
    plain = sum(counts[kind] * getattr(rates, kind) for kind in KINDS) + model.terms.request_pusd
    exact = plain * (1_000_000 + model.terms.uplift_ppm)
    assert abs(cost_pusd(tokens, model, tier=tier) * 1_000_000 - exact) <= 500_000


@pytest.mark.parametrize(
    ("tokens", "pusd"),
    [
        (TokenCounts(audio_ms=1500), 7500),
        (TokenCounts(audio_ms=1), 5),
        (
            TokenCounts(audio_ms=1500, audio_input=10, output=2),
            10 * 3 + 2 * 8,
        ),  # counted and listed
        (TokenCounts(searches=3), 21),
        (TokenCounts(searches=1, input=4), 7 + 8),
    ],
)
def test_sound_and_searches(tokens, pusd):
    found = price({"input": 2, "output": 8, "audio_input": 3}, second_pusd=5000, search_pusd=7)
    assert cost_pusd(tokens, found) == pusd


def test_sound_without_a_price_by_tokens_is_paid_by_its_seconds():
    found = price({"input": 0, "output": 0}, second_pusd=5000)
    assert cost_pusd(TokenCounts(audio_ms=2000, audio_input=20, output=9), found) == 10_000


@given(st.integers(0, 10**8), st.integers(0, 10**6), st.integers(0, 10**9), st.integers(0, 10**6))
def test_what_is_beside_tokens_is_bounded(ms, searches, second, uplift):
    found = price(
        {"input": 0, "output": 0},
        second_pusd=second, search_pusd=11, request_pusd=3, uplift_ppm=uplift,
    )  # fmt: skip
    cost = cost_pusd(TokenCounts(audio_ms=ms, searches=searches), found)
    assert 0 <= per_unit_bound_pusd(found, audio_ms=ms, searches=searches) - cost <= 4


def test_a_kind_is_unlisted_where_it_costs_what_stands_in_for_it() -> None:
    rates = rates_from({"input": 1, "output": 2, "cached": 5})
    assert is_unlisted(rates, "reasoning")
    assert not is_unlisted(rates, "cached")
    assert not is_unlisted(rates, "input")


def test_a_picture_is_charged_by_its_form_or_by_its_tokens():
    rates = rates_from({"input": 1, "output": 0, "image_output": 2})
    forms = (TierRates("hd", 0, rates, 9), TierRates("priority", 0, rates))
    found = Price(1, "a/b", "t", 0, PriceTerms(rates, forms, picture_pusd=5))
    two = TokenCounts(pictures=2)
    assert [cost_pusd(two, found, tier=tier) for tier in ("standard", "hd", "priority")] == [
        10, 18, 10,
    ]  # fmt: skip
    counted = TokenCounts(pictures=2, output=30, image_output=30)
    assert cost_pusd(counted, found, tier="hd") == 60
    assert per_unit_bound_pusd(found, pictures=2) == 18
    assert per_unit_bound_pusd(found, {"standard"}, pictures=2) == 10
