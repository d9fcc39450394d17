"""What is asked, and when: rates that come out, prompts that share what they are told to."""

import random

import pytest

from backends.engine.benchload import (
    BenchPrompts,
    LoadProfile,
    PromptShape,
    closed_load,
    even_load,
    poisson_load,
    random_words,
    recorded_load,
)
from backends.simulator.measurements import MeasuredRequest

SHAPE = PromptShape(512, 256)


def test_poisson_arrivals_have_their_rate_and_can_be_repeated():
    loop = poisson_load(4.0, 4000, SHAPE, random.Random(1))
    gaps = [b.at_s - a.at_s for a, b in zip(loop.asks, loop.asks[1:], strict=False)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert mean == pytest.approx(0.25, rel=0.05)
    assert spread == pytest.approx(mean, rel=0.05), "as large as the mean: nothing is paced"
    assert loop == poisson_load(4.0, 4000, SHAPE, random.Random(1))
    assert loop.name == "4"


def test_even_arrivals_have_one_distance():
    assert [ask.at_s for ask in even_load(2.0, 4, SHAPE).asks] == [0.0, 0.5, 1.0, 1.5]


def test_a_closed_loop_has_no_times():
    loop = closed_load(8, 20, SHAPE, spread_s=2.0)
    assert {ask.at_s for ask in loop.asks} == {0.0}
    assert (len(loop.asks), loop.at_once, loop.spread_s, loop.name) == (20, 8, 2.0, "8 at once")


def test_recorded_arrivals_begin_at_zero_and_can_be_quicker():
    rows = [MeasuredRequest(at, 10, 5, 0.1, 0.2) for at in (7.0, 5.0, 9.0)]
    loop = recorded_load(rows, speed=2.0)
    assert [ask.at_s for ask in loop.asks] == [0.0, 1.0, 2.0]
    assert loop.name == "recorded"
    assert LoadProfile(loop.asks, rate=1.5).name == "1.5"


def test_prompts_have_the_tokens_that_were_measured():
    """A tokenizer of 1.5 tokens a word behind a template of 9."""
    prompts = BenchPrompts.measured(0, random.Random(1), (40, 69), (240, 369))
    assert len(prompts.text(309).split()) == 200
    assert prompts.text(309) != prompts.text(309)


def test_prompts_share_their_beginning_and_no_more():
    prompts = BenchPrompts(400, random.Random(1), per_word=1.0, around=0.0)
    first, second = prompts.text(512).split(), prompts.text(512).split()
    assert first[:400] == second[:400]
    assert first[400:] != second[400:]
    assert len(first) == 512
    assert len(prompts.text(300).split()) == 300, "shorter than what is shared"


def test_words_are_as_many_as_asked():
    assert len(random_words(17, random.Random(1)).split()) == 17
