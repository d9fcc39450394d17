"""What an evaluation says of two models, against distributions whose divergence is known."""

import math

import pytest

from backends.engine.evalfigures import (
    LIMITS,
    PromptComparison,
    TokenLogprob,
    compare_forced,
    compare_free,
    divergence,
    figures,
    verdict,
)


def told(token: str, **chances: float) -> TokenLogprob:
    return TokenLogprob(
        token, math.log(chances[token]), {name: math.log(of) for name, of in chances.items()}
    )


def test_divergence_is_kl_where_all_is_listed_and_less_where_it_is_not():
    mine, theirs = {"a": 0.5, "b": 0.3, "c": 0.2}, {"a": 0.2, "b": 0.4, "c": 0.4}
    logs = [{name: math.log(of) for name, of in item.items()} for item in (mine, theirs)]
    whole = sum(of * math.log(of / theirs[name]) for name, of in mine.items())
    assert divergence(*logs) == pytest.approx(whole)
    assert divergence(logs[0], logs[0]) == 0
    # The candidate does not list `c`: what it gives to it is in its bucket of all others.
    listed = {name: logs[1][name] for name in ("a", "b")}
    assert divergence(logs[0], listed) == pytest.approx(whole)
    coarser = divergence({"a": logs[0]["a"]}, {"a": logs[1]["a"]})
    assert 0 < coarser < whole
    assert math.isfinite(divergence(logs[0], {"z": 0.0}))


def test_on_the_same_text_every_token_counts():
    mine = [told("a", a=0.9, b=0.1), told("b", a=0.2, b=0.8)]
    theirs = [told("a", a=0.4, b=0.6), told("b", a=0.2, b=0.8)]
    found = compare_forced(mine, theirs)
    assert (found.tokens, found.differ) == (2, 1)
    assert found.surprise == pytest.approx((-math.log(0.9 * 0.8), -math.log(0.4 * 0.8)))
    assert found.kl == pytest.approx(0.9 * math.log(0.9 / 0.4) + 0.1 * math.log(0.1 / 0.6))
    with pytest.raises(ValueError, match="tokenize the text differently"):
        compare_forced(mine, theirs[:1])


def test_answers_of_their_own_are_compared_up_to_the_first_difference():
    mine = [told("a", a=0.9, b=0.1), told("b", a=0.2, b=0.8), told("a", a=0.7, b=0.3)]
    theirs = [told("a", a=0.8, b=0.2), told("a", a=0.6, b=0.4), told("a", a=0.5, b=0.5)]
    found = compare_free(mine, theirs)
    assert (found.tokens, found.differ) == (2, 1)
    assert found.surprise == pytest.approx((-math.log(0.9 * 0.8), -math.log(0.8 * 0.4)))
    assert compare_free(mine, mine).differ == 0
    longer = compare_free(mine[:1], mine)
    assert (longer.tokens, longer.differ) == (2, 1), "it ended where the other went on"
    words = [TokenLogprob(word, math.nan, {}) for word in ("so", "it", "is")]
    plain = compare_free(words, words[:2])
    assert (plain.differ, plain.surprise, plain.kl) == (1, None, None)


def items(count: int, differ: int, rise: float = 0.0, scores=None) -> list[PromptComparison]:
    """Of 100 tokens each; the first `differ` of them have one that differs."""
    return [
        PromptComparison(100, int(place < differ), (100.0, 100.0 + 100 * rise), 0.5, scores)
        for place in range(count)
    ]


def test_figures_are_of_all_tokens_together():
    found = figures(items(40, 10, rise=0.1))
    assert found.disagreement.value == 10 / 4000
    assert found.disagreement.low < found.disagreement.value < found.disagreement.high
    assert found.perplexities == pytest.approx((math.e, math.exp(1.1)))
    assert found.perplexity is not None
    assert found.perplexity.value == pytest.approx(math.exp(0.1) - 1)
    assert found.kl is not None
    assert found.kl.value == pytest.approx(0.005)
    assert figures(items(40, 10)) == figures(items(40, 10)), "the same chance each time"
    with pytest.raises(ValueError, match="no answer"):
        figures([])


@pytest.mark.parametrize(
    ("of", "risk", "state", "reason"),
    [
        (items(40, 0), "high", "passes", ""),
        (items(2, 0), "high", "undecided", "more prompts decide"),  # none of 200 is at most 1.5 %
        (items(2, 0), "low", "passes", ""),
        (
            [*items(40, 30), PromptComparison(100, 9, (1.0, 1.0), 0.0)],
            "high",
            "undecided",
            "holds the limit",
        ),
        (items(40, 0, rise=0.03), "low", "passes", ""),
        (items(40, 0, rise=0.03), "high", "fails", "perplexity's rise: 3.05%"),
        (items(40, 0, rise=0.2), "low", "fails", "perplexity's rise"),
        (items(100, 0, rise=0.2, scores=(1.0, 1.0)), "low", "passes", ""),
        (items(100, 0, scores=(1.0, 0.9)), "low", "fails", "score lost: 10.00%"),
        (items(100, 0, scores=(1.0, 1.0)), "high", "undecided", "score lost"),
    ],
)
def test_verdicts(of, risk, state, reason):
    found = verdict(figures(of), LIMITS[risk])
    assert found.state == state, found
    assert reason in "".join(found.reasons)


def test_prompts_without_an_answer_leave_it_open():
    assert verdict(figures(items(40, 0)), 0.05, missing=1).state == "undecided"
    assert verdict(figures(items(40, 0, rise=0.2)), 0.05, missing=1).state == "fails"


def test_a_baseline_that_scores_nothing_loses_nothing():
    found = figures(items(100, 0, scores=(0.0, 0.0)))
    assert found.score is not None
    assert found.score.value == 0
