"""The peak of sequences that end one after the other, against a walk through time."""

from hypothesis import given
from hypothesis import strategies as st

from router.kv_peak import EXACT_RESIDENTS, kv_peak_tokens, kv_rounded

sequences = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 700)).map(lambda two: (two[0], sum(two), 0)),
    min_size=1,
    max_size=40,
)


def walked(residents: list[tuple[int, int]], block: int) -> int:
    """The oracle: step by step until the last one ends."""
    most = 0
    for step in range(max(final - held for held, final, _ in residents) + 1):
        held = [held + step for held, final, _ in residents if held + step <= final]
        most = max(most, sum(-(-tokens // block) * block for tokens in held))
    return most


@given(sequences, st.sampled_from([1, 16, 128]))
def test_the_peak_is_what_a_walk_through_time_finds(residents, block: int) -> None:
    peak = kv_peak_tokens(residents, block)
    exact = walked(residents, block)
    if len(residents) <= EXACT_RESIDENTS:
        assert peak == exact
    else:
        assert exact <= peak < exact + block * len(residents)
    assert peak <= sum(kv_rounded(final, block) for _, final, _ in residents)


@given(sequences, st.lists(st.integers(0, 300), min_size=40, max_size=40), st.data())
def test_wherever_a_sequence_really_is_the_peak_with_slack_is_no_less(residents, slacks, data):
    """What was heard is old: each is up to its slack further, or where it was."""
    said = [
        (held, final, slack) for (held, final, _), slack in zip(residents, slacks, strict=False)
    ]
    true = [
        (min(final, held + data.draw(st.integers(0, slack))), final, 0)
        for held, final, slack in said
    ]
    assert walked(true, 128) <= kv_peak_tokens(said, 128)
