"""A played host learns lengths and margins by model and team, from answers that ended."""

from gateway.whatif.replay_estimates import ReplayEstimates
from gateway.whatif.traffic import Arrival

KEY, OTHER = ("chat", "red"), ("chat", "blue")


def arrival(prompt_tokens: int, estimate: int, output_tokens: int = 100) -> Arrival:
    return Arrival(0.0, prompt_tokens, output_tokens, "chat", "red", estimate=estimate)


def test_estimates_that_are_often_short_widen_the_margin_of_their_team_alone() -> None:
    """A ratio that is always off is learned; what is off by turns needs room."""
    estimates = ReplayEstimates()
    unknown = estimates.margin(KEY)
    for number in range(200):
        tokens = 15_000 if number % 2 else 7_000
        estimates.observe(KEY, arrival(tokens, 10_000), float(number), cut=False)
    assert estimates.margin(KEY) > unknown
    assert estimates.margin(OTHER) == unknown


def test_estimates_that_are_right_narrow_it() -> None:
    estimates = ReplayEstimates()
    unknown = estimates.margin(KEY)
    for number in range(200):
        estimates.observe(KEY, arrival(10_000, 10_000), float(number), cut=False)
    assert estimates.margin(KEY) < unknown


def test_lengths_are_learned_from_what_ended() -> None:
    estimates = ReplayEstimates()
    before = estimates.moments(KEY, 1000)
    for number in range(200):
        estimates.observe(KEY, arrival(1000, 1000, 37), float(number), cut=False)
    after = estimates.moments(KEY, 1000)
    assert abs(after.mean - 37) < abs(before.mean - 37)
