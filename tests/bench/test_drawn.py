"""Drawn traffic has the statistics that it is said to have, and is the same every time."""

import random
from itertools import islice, pairwise
from statistics import fmean, median, pstdev

import pytest
from drawn import KINDS, Drawn


def test_short_bursty_answers_are_short_and_their_gaps_wide() -> None:
    rows = Drawn().rows("short bursty")
    answers = [answer for _, _, answer in rows]
    gaps = [later[0] - row[0] for row, later in pairwise(rows)]
    assert 700 < fmean(prompt for _, prompt, _ in rows) < 900
    assert 180 < fmean(answers) < 240
    assert 0.17 < fmean(answer <= 3 for answer in answers) < 0.24
    assert 1.5 < pstdev(gaps) / fmean(gaps) < 2.2


def test_long_prompts_are_long_and_come_in_groups() -> None:
    rows = Drawn().rows("long prompts")
    prompts = [prompt for _, prompt, _ in rows]
    assert 11_000 < fmean(prompts) < 13_000
    assert 6_000 < median(prompts) < 8_000
    assert 0.005 < fmean(prompt > 80_000 for prompt in prompts) < 0.02
    assert 300 < fmean(answer for _, _, answer in rows) < 370


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_the_same_every_time(name: str) -> None:
    first, again = (list(islice(KINDS[name](random.Random(name)), 400)) for _ in range(2))
    assert first == again
    assert min(min(row[1:]) for row in first) >= 1
