"""A share of what a prompt cache may have: nothing before it was seen, and between 0 and 1."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.cached_share import LIMIT, SHARE_CELLS, CachedShare
from router.estimate_rows import cells_of
from router.estimator_rules import DAY_S, ESTIMATORS, Estimator

TARGET = "openai/gpt-5"
tokens = st.integers(-(10**9), 10**9)


def seen(*answers: tuple[int, int]) -> CachedShare:
    shares = CachedShare()
    for readable, cached in answers:
        shares.observe(TARGET, readable, cached, 0.0)
    return shares


def test_before_an_answer_only_a_promise_counts() -> None:
    assert CachedShare().share(TARGET, promised=False) == 0.0
    assert CachedShare().share(TARGET, promised=True) == 1.0


def test_one_answer_says_most_and_twenty_nearly_all() -> None:
    assert seen((1000, 900)).share(TARGET, promised=False) == pytest.approx(0.9 / 1.1)
    assert seen(*[(1000, 900)] * 40).share(TARGET, promised=False) == pytest.approx(0.9, rel=0.05)
    assert seen(*[(1000, 0)] * 40).share(TARGET, promised=True) == pytest.approx(0.0, abs=0.03)
    assert seen((1000, 900)).share("openai/gpt-6", promised=False) == 0.0


@given(st.lists(st.tuples(tokens, tokens), max_size=40), st.booleans())
def test_it_is_a_share_whatever_is_told(answers, promised) -> None:
    assert 0.0 <= seen(*answers).share(TARGET, promised=promised) <= LIMIT


def test_so_many_honest_answers_as_the_guide_says_bring_it_back() -> None:
    shares = seen(*[(1000, 0)] * 1000, *[(1000, 800)] * ESTIMATORS[Estimator.CACHED_SHARE].returns)
    assert shares.share(TARGET, promised=False) == pytest.approx(0.8, rel=0.05)


def test_age_takes_half_of_the_weight_in_a_day() -> None:
    shares = seen(*[(1000, 1000)] * 40)
    (before,) = shares.rows()
    shares.age(DAY_S)
    (after,) = shares.rows()
    assert after.observations == pytest.approx(before.observations / 2)
    assert after.share == pytest.approx(before.share)
    assert shares.forget(TARGET) == 1
    assert shares.share(TARGET, promised=False) == 0.0


def test_processes_share_it_and_nonsense_in_a_cell_is_no_share() -> None:
    cells = memoryview(array("d", bytes(8 * cells_of(SHARE_CELLS, 8))))
    first, second = CachedShare(cells), CachedShare(cells)
    first.observe(TARGET, 100, 100, 1.0)
    assert second.share(TARGET, promised=False) == first.share(TARGET, promised=False) > 0.5
    for nonsense in (float("nan"), float("inf"), -1.0, 1e300):
        for slot in range(len(cells) // SHARE_CELLS):
            for cell in (2, 3):
                cells[slot * SHARE_CELLS + cell] = nonsense
        assert 0.0 <= second.share(TARGET, promised=False) <= LIMIT
