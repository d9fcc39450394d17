"""The most of each count that several figures tell: never less of any, and each token once."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from ledger.journals.token_kinds import TokenCounts
from ledger.merged_counts import merge_counts, takes_back

few = st.integers(0, 50)


@st.composite
def counts(draw) -> TokenCounts:
    parts = {name: draw(few) for name in ("reasoning", "audio_output", "image_output")}
    plain = ("input", "cached", "cache_write", "cache_write_1h", "audio_input", "searches")
    beside = {name: draw(few) for name in (*plain, "audio_ms", "characters", "pictures")}
    return TokenCounts(output=sum(parts.values()) + draw(few), **parts, **beside)


@given(st.lists(counts(), min_size=1, max_size=6))
def test_no_whole_and_no_part_is_less_than_any_figure_has_as_far_as_it_fits(told) -> None:
    most = merge_counts(told)
    assert min(asdict(most).values()) >= 0
    assert most.plain_output >= 0
    for tokens in told:
        assert most.whole_prompt >= tokens.whole_prompt
        for name in ("output", "reasoning", "searches", "audio_ms", "characters", "pictures"):
            assert getattr(most, name) >= getattr(tokens, name)
        assert most.cache_write_1h >= tokens.cache_write_1h
    assert most.whole_prompt == max(tokens.whole_prompt for tokens in told)
    assert most.output == max(tokens.output for tokens in told)


@given(counts(), counts())
def test_a_figure_that_grew_is_the_most_and_takes_nothing_back(first, more) -> None:
    last = TokenCounts(**{name: n + getattr(more, name) for name, n in asdict(first).items()})
    assert merge_counts([first, last]) == last
    assert not takes_back(last, merge_counts([first, last]))
    assert merge_counts([first]) == first


def test_a_discount_that_is_told_last_is_none_that_was_taken_back() -> None:
    first, last = TokenCounts(input=3000, output=1), TokenCounts(input=10, cached=2990, output=9)
    assert merge_counts([first, last]) == last


def test_how_long_a_prompt_is_kept_is_told_once() -> None:
    """Anthropic's first figure says it, and the last has their sum alone."""
    first, last = TokenCounts(10, cache_write_1h=500), TokenCounts(10, cache_write=500, output=9)
    most = merge_counts([first, last])
    assert (most.cache_write, most.cache_write_1h, most.whole_prompt) == (0, 500, 510)
    assert not takes_back(last, most)
    assert takes_back(TokenCounts(10, output=9), most)
