"""The tokenizer stand-in and the generated text agree to the token."""

from hypothesis import given
from hypothesis import strategies as st

from backends.simulator import words


@given(st.integers(0, 2**32), st.integers(1, 3000))
def test_text_is_exactly_as_long_as_asked(seed, tokens):
    made = words.text(seed, tokens)
    assert words.count(made.encode()) == tokens
    assert len(made) == tokens * words.TOKEN_BYTES


def test_text_says_that_it_is_simulated():
    assert words.text(7, 10).startswith("[simulated]:")


@given(st.binary(max_size=400), st.binary(max_size=200))
def test_equal_beginnings_have_equal_leading_hashes(head, tail):
    whole = words.block_hashes(head + tail, block_tokens=4)
    part = words.block_hashes(head, block_tokens=4)
    assert whole[: len(part)] == part
    assert len(part) == len(head) // 16


def test_a_salt_separates_caches():
    data = b"x" * 64
    assert words.block_hashes(data, block_tokens=4) != words.block_hashes(
        data, block_tokens=4, salt="team"
    )


def test_natural_lengths_spread_around_their_median():
    lengths = sorted(words.natural_length(words.seed_of(str(i).encode())) for i in range(2001))
    assert 160 < lengths[1000] < 200
    assert lengths[100] < 90
    assert lengths[1900] > 400


def test_the_earliest_stop_string_ends_the_text():
    whole = "[simulated]: the sun ran out"
    assert words.find_stop(whole, ["ran", " sun"]) == ("[simulated]: the", 5, " sun")
    assert words.find_stop(whole, ["nowhere", ""]) is None


def test_cutting_gives_the_text_back():
    whole = words.text(3, 20)
    assert "".join(words.cut_text(whole, i, i + 1) for i in range(20)) == whole
