"""Bytes per token cannot be poisoned: steps, limits, neighbours and the way back.

`hostile` observations are those of a client and a provider that work together; what they say is
only limited by what `observe` accepts.
"""

import random
import struct
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.request.usage_checks import TEMPLATE_TOKENS as TEMPLATE_OF_DISPUTES
from router.estimate_rows import WINDOW
from router.estimator_rules import (
    AGING_S,
    CONTEXT_MARGIN,
    ESTIMATORS,
    RATIO_HALF_LIFE_S,
    UNUSED_S,
    Estimator,
    Objection,
)
from router.token_ratio import (
    MARGIN_LIMIT,
    ROW_CELLS,
    TEMPLATE_LIMIT,
    TEMPLATE_TOKENS,
    RatioCell,
    TokenRatio,
    impossible,
)

KEY, OTHER = ("chat-large", "search"), ("chat-large", "support")
RULE = ESTIMATORS[Estimator.BYTES_PER_TOKEN]
TEXT = 10_000  # bytes
ENGLISH = 4.0

sizes = st.integers(0, 2_000_000)
hostile = st.lists(st.tuples(sizes, st.integers(-5, 60_000_000)), max_size=40)
accepted = st.integers(1, 200_000).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(-(-size // 128), size + TEMPLATE_LIMIT))
)


def slots(count: int) -> memoryview:
    return memoryview(array("d", bytes(8 * ROW_CELLS * (count + 1))))


def taught(ratio: TokenRatio, pairs, now_s: float = 0.0, key=KEY) -> TokenRatio:
    for size, tokens in pairs:
        ratio.observe(key, size, tokens, now_s)
    return ratio


def honest(count: int, size: int = TEXT, bytes_per_token: float = ENGLISH):
    return [(size, max(1, round(size / bytes_per_token)))] * count


def test_tokens_of_a_text_before_any_was_seen() -> None:
    assert TokenRatio().estimate(KEY, 4000) == (1000, 4064)
    assert TokenRatio().estimate(KEY, 0) == (1, 64)
    assert TokenRatio().text_tokens(KEY, 1001) == 251


def test_the_ratio_follows_what_targets_report() -> None:
    ratio = taught(TokenRatio(), [(3000, 1000)] * 980)
    assert ratio.estimate(KEY, 6000)[0] == pytest.approx(2000, rel=0.02)
    taught(ratio, [(3000, 1500)] * 1500)
    assert ratio.estimate(KEY, 6000)[0] == pytest.approx(3000, rel=0.05)
    assert ratio.text_tokens(KEY, 6000) == pytest.approx(3000, rel=0.05)
    assert ratio.estimate(OTHER, 4000)[0] == 1000


@pytest.mark.parametrize(
    ("size", "tokens", "objection"),
    [
        (60, 5_000_000, Objection.TOO_MANY),  # `lie-poisons-texts`
        (200, 8_500, Objection.TOO_MANY),  # `picture-poisons-texts`, had the picture no name
        (60, 60 + TEMPLATE_LIMIT, None),
        (60, 61 + TEMPLATE_LIMIT, Objection.TOO_MANY),
        (1280, 10, None),
        (1281, 10, Objection.TOO_FEW),
        (0, 5, Objection.TOO_FEW),
        (5, 0, Objection.TOO_FEW),
        (5, -1, Objection.TOO_FEW),
    ],
)
def test_what_no_text_can_be_teaches_nothing(size, tokens, objection) -> None:
    ratio = taught(TokenRatio(), honest(100))
    before = ratio.estimate(KEY, TEXT)
    assert impossible(size, tokens) is objection
    assert ratio.observe(KEY, size, tokens, 0.0) is objection
    assert (ratio.estimate(KEY, TEXT) == before) is (objection is not None)


@given(hostile, sizes)
def test_the_bound_is_never_above_what_the_bytes_can_be(pairs, size) -> None:
    estimate, bound = taught(TokenRatio(), pairs).estimate(KEY, size)
    assert 1 <= estimate <= bound
    assert size + TEMPLATE_TOKENS <= bound <= size + TEMPLATE_LIMIT


@given(st.lists(accepted, max_size=30), accepted)
def test_one_observation_moves_the_ratio_by_at_most_the_stated_factor(pairs, one) -> None:
    ratio, large = taught(TokenRatio(), pairs), 10**9
    before, template = ratio.text_tokens(KEY, large), ratio.estimate(KEY, 0)[1]
    taught(ratio, [one])
    after = ratio.text_tokens(KEY, large)
    assert before / RULE.step - 1 <= after <= before * RULE.step + 1
    assert large / 128 <= after <= 4 * large + 1
    assert ratio.estimate(KEY, 0)[1] <= 2 * template


@given(st.lists(accepted, min_size=1, max_size=30))
def test_what_was_seen_last_is_within_the_bound_once_it_was_seen_five_times(pairs) -> None:
    """A template is believed, twice as long each time: five steps are 2,048 tokens."""
    size, tokens = pairs[-1]
    ratio = taught(TokenRatio(), [*pairs, *[pairs[-1]] * 5])
    assert tokens <= ratio.estimate(KEY, size)[1]


@given(hostile, st.lists(accepted, max_size=20))
def test_other_teams_and_models_are_not_touched(pairs, theirs) -> None:
    alone, beside = TokenRatio(), TokenRatio()
    taught(alone, theirs, key=OTHER)
    for number, pair in enumerate(pairs):
        taught(beside, [pair])
        taught(beside, theirs[number : number + 1], key=OTHER)
    taught(beside, theirs[len(pairs) :], key=OTHER)
    for size in (1, 60, TEXT):
        assert beside.estimate(OTHER, size) == alone.estimate(OTHER, size)


@settings(max_examples=10)
@given(
    st.lists(accepted, min_size=1, max_size=20),
    st.sampled_from((32, 500, 4096, TEXT, 200_000)),
    st.sampled_from((1.35, 3.0, ENGLISH)),
)
def test_honest_traffic_brings_the_estimate_back(attack, size, bytes_per_token) -> None:
    """Of thousands of lies, too: no evidence weighs more than what `FADE` observations do."""
    ratio = taught(TokenRatio(), attack * (2000 // len(attack)))
    taught(ratio, honest(RULE.returns, size, bytes_per_token))
    clean = taught(TokenRatio(), honest(RULE.returns, size, bytes_per_token))
    estimate, bound = ratio.estimate(KEY, TEXT)
    expected, usual = clean.estimate(KEY, TEXT)
    assert estimate == pytest.approx(expected, rel=0.05)
    assert bound == usual


@pytest.mark.parametrize("seed", range(4))
def test_a_mix_of_texts_converges_to_its_own_ratio(seed) -> None:
    """English, Chinese, base64 and code; a picture between two texts teaches nothing."""
    draw, ratio, size_sum, token_sum = random.Random(seed), TokenRatio(), 0, 0
    for _ in range(2000):
        bytes_per_token = draw.choice((4.4, 3.0, 1.35, 3.2))
        size = draw.randint(60, 8000)
        tokens = max(1, round(size / bytes_per_token * draw.uniform(0.9, 1.1)))
        taught(ratio, [(size, tokens), (200, 8500)])
        size_sum, token_sum = size_sum + size, token_sum + tokens
    assert ratio.estimate(KEY, 10**6)[0] == pytest.approx(10**6 * token_sum / size_sum, rel=0.05)


def test_a_template_is_learned_kept_and_refuted() -> None:
    """A system prompt of 500 tokens that a target adds is in the bound as long as it is there."""
    ratio = taught(TokenRatio(), [(32, 508)] * 4)
    assert ratio.estimate(KEY, 32)[1] >= 508
    taught(ratio, [(4000, 1500), (32, 508)] * 50)
    estimate, bound = ratio.estimate(KEY, 32)
    assert (estimate, bound) == (pytest.approx(508, rel=0.2), pytest.approx(508, abs=8))
    assert ratio.estimate(KEY, 40_000)[0] == pytest.approx(10_500, rel=0.2)
    taught(ratio, [(32, 8)] * 500)
    assert ratio.estimate(KEY, 32)[1] == 32 + TEMPLATE_TOKENS


def test_a_template_is_no_longer_than_usage_may_be_without_a_dispute() -> None:
    assert TEMPLATE_LIMIT == TEMPLATE_OF_DISPUTES


def test_an_old_observation_weighs_half_after_the_stated_time() -> None:
    ratio = taught(TokenRatio(), honest(5000, TEXT, 1.0), now_s=0.0)
    fresh = ratio.text_tokens(KEY, 10**9) / 10**9 - 0.25
    template = taught(TokenRatio(), [(60, 2000)] * 6)
    beyond = template.estimate(KEY, 0)[1] - TEMPLATE_TOKENS
    for known in (ratio, template):
        known.age(RATIO_HALF_LIFE_S / 2)  # in steps as in one
        known.age(RATIO_HALF_LIFE_S)
    assert template.estimate(KEY, 0)[1] - TEMPLATE_TOKENS == pytest.approx(beyond / 2, abs=1)
    aged = taught(ratio, honest(1, TEXT), now_s=RATIO_HALF_LIFE_S).text_tokens(KEY, 10**9) / 10**9
    assert 0.25 < aged < 0.25 + fresh
    (row,) = ratio.rows()
    assert (row.observations, row.seen_s) == (5001, RATIO_HALF_LIFE_S)
    # The weight itself: half of 256 long texts and half of the prior.
    ratio.age(RATIO_HALF_LIFE_S + AGING_S / 2)
    assert ratio.text_tokens(KEY, 10**9) / 10**9 == pytest.approx(aged)


def test_an_observation_lets_its_key_age_first() -> None:
    often, once = TokenRatio(), TokenRatio()
    for known in (often, once):
        taught(known, honest(300, TEXT, 1.0))
    often.age(500 * AGING_S)
    taught(often, honest(1), now_s=500 * AGING_S)
    taught(once, honest(1), now_s=500 * AGING_S)
    assert often.estimate(KEY, TEXT) == once.estimate(KEY, TEXT)


def test_a_clock_that_is_set_back_ages_nothing() -> None:
    ratio = taught(TokenRatio(), honest(300, TEXT, 2.0), now_s=1e9)
    before = ratio.estimate(KEY, TEXT)
    ratio.age(5.0)
    assert ratio.estimate(KEY, TEXT) == before


def test_a_key_that_nobody_asks_for_is_dropped() -> None:
    ratio = taught(TokenRatio(), honest(9), now_s=0.0)
    taught(ratio, honest(9), now_s=UNUSED_S / 2, key=OTHER)
    ratio.age(UNUSED_S)
    assert [row.seen_s for row in ratio.rows()] == [UNUSED_S / 2]
    assert ratio.estimate(KEY, TEXT) == TokenRatio().estimate(KEY, TEXT)


def test_a_model_or_a_team_is_forgotten_alone() -> None:
    ratio = TokenRatio()
    for model in ("a", "b"):
        for team in ("s", "t"):
            taught(ratio, honest(9, TEXT, 2.0), key=(model, team))
    assert ratio.forget("a", "s") == 1
    assert ratio.estimate(("a", "s"), 4000) == (1000, 4064)
    assert ratio.estimate(("b", "s"), 4000)[0] > 1000
    assert ratio.forget(None, "s") == 1
    assert ratio.forget("a", None) == 1
    assert ratio.forget("none", None) == 0
    assert ratio.forget(None, None) == 1
    assert list(ratio.rows()) == []


def test_memory_is_bounded_and_a_flood_of_models_displaces_the_teams_own() -> None:
    """A client may name any model behind a passthrough: it does not cost the others their keys."""
    ratio = TokenRatio(slots(256))
    theirs = [(f"m{number}", "others") for number in range(20)]
    for key in theirs:
        taught(ratio, honest(50, TEXT, 2.0), key=key)
    for number in range(3000):
        taught(ratio, [(60, 70)], now_s=float(number), key=(f"model-{number}", "flood"))
    assert len(list(ratio.rows())) <= 256
    kept = [key for key in theirs if ratio.estimate(key, TEXT)[0] > 4000]
    assert kept == theirs


def test_where_all_places_are_taken_the_oldest_goes() -> None:
    ratio = TokenRatio(slots(WINDOW))
    for number in range(WINDOW + 1):
        taught(ratio, honest(1), now_s=float(number), key=("m", f"team-{number}"))
    assert sorted(row.seen_s for row in ratio.rows()) == [float(n) for n in range(1, WINDOW + 1)]


def test_processes_that_share_memory_share_what_they_learn() -> None:
    memory, placed = slots(64), []
    one = TokenRatio(memory, lambda slot, key: placed.append((slot, key)))
    two = TokenRatio(memory)
    assert two.estimate(KEY, 4000) == (1000, 4064)
    taught(one, honest(300, TEXT, 2.0))
    assert two.estimate(KEY, 4000)[0] > 1900
    taught(two, honest(300, TEXT, 2.0))
    (row,) = one.rows()
    assert (row.observations, placed) == (600, [(row.slot, KEY)])
    assert one.estimate(KEY, 4000) == two.estimate(KEY, 4000)
    one.forget(None, None)
    assert two.estimate(KEY, 4000) == (1000, 4064)
    taught(two, honest(1))
    assert len(list(one.rows())) == 1


@given(st.lists(st.binary(min_size=8, max_size=8), min_size=6, max_size=6), accepted)
def test_whatever_a_row_holds_the_limits_hold(cells, one) -> None:
    """A file may be damaged, and two processes may write at once."""
    memory = slots(WINDOW)
    ratio = taught(TokenRatio(memory), honest(1))
    (row,) = ratio.rows()
    damaged = (*(cell for cell in RatioCell if 2 <= cell <= 4), RatioCell.SHORT)
    for cell, raw in zip(damaged, cells, strict=False):  # the sums and the template
        memory[(row.slot + 1) * ROW_CELLS + cell] = struct.unpack("d", raw)[0]
    for _ in range(2):
        estimate, bound = ratio.estimate(KEY, TEXT)
        assert 1 <= estimate <= bound
        assert TEXT + TEMPLATE_TOKENS <= bound <= TEXT + TEMPLATE_LIMIT
        assert 1.0 <= ratio.margin(KEY) <= MARGIN_LIMIT
        taught(ratio, [one])


@pytest.mark.parametrize(
    ("spread", "least", "most"), [(0.0, 1.0, 1.03), (0.05, 1.05, 1.15), (0.2, 1.2, 1.4)]
)
def test_a_context_needs_as_much_room_as_estimates_fell_short(spread, least, most) -> None:
    rng = random.Random(7)
    ratio = TokenRatio()
    assert ratio.margin(KEY) == CONTEXT_MARGIN
    pairs = [
        (TEXT, round(TEXT / ENGLISH * (1.0 + rng.uniform(-spread, spread)))) for _ in range(600)
    ]
    assert least <= taught(ratio, pairs).margin(KEY) <= most
    assert ratio.margin(OTHER) == CONTEXT_MARGIN


@given(hostile, accepted)
def test_one_observation_moves_the_margin_little(before, one) -> None:
    ratio = taught(TokenRatio(), [*honest(1), *before])
    margin = ratio.margin(KEY)
    assert taught(ratio, [one]).margin(KEY) <= 1.25 * margin
    ratio.age(AGING_S + 60 * RATIO_HALF_LIFE_S / 2.1)
    assert ratio.margin(KEY) == pytest.approx(CONTEXT_MARGIN, abs=0.02)
