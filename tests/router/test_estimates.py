"""What is learned: it starts from priors, follows what is seen, survives restarts, stays small."""

import math
import random
import statistics
from math import inf

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.estimates import (
    PRIOR_OUTPUT_TOKENS,
    LatencyTracker,
    OutputLengths,
    prompt_bucket,
)
from router.estimator_rules import ESTIMATORS, Estimator

KEY = ("chat-large", "search")


def through_msgpack(state):
    return msgspec.msgpack.decode(msgspec.msgpack.encode(state))


def test_prompt_buckets_are_a_factor_of_1_6_wide():
    assert [prompt_bucket(n) for n in (0, 1, 2, 100, 1000, 100_000)] == [0, 0, 1, 9, 14, 24]


def test_output_lengths_start_from_the_prior():
    moments = OutputLengths().moments(KEY, 500)
    assert (moments.count, moments.mean, moments.p95) == (0, PRIOR_OUTPUT_TOKENS, 0.0)
    assert moments.mean_square == 2 * PRIOR_OUTPUT_TOKENS**2


def test_output_lengths_learn_by_prompt_size():
    lengths = OutputLengths()
    for _ in range(500):
        lengths.observe(KEY, 100, 20)
        lengths.observe(KEY, 4000, 400)
    short, long = lengths.moments(KEY, 100), lengths.moments(KEY, 4000)
    assert short.mean == pytest.approx(20, rel=0.4)
    assert long.mean == pytest.approx(400, rel=0.05)
    assert 20 <= short.p95 <= 20 * 2 ** (1 / 8)
    assert 400 <= long.p95 <= 400 * 2 ** (1 / 8)
    between = lengths.moments(KEY, 1000)  # an unseen size: the key's mean, the longer tail
    assert between.mean == pytest.approx(210, rel=0.02)
    assert (between.count, between.p95) == (1000, long.p95)


def test_prompt_sizes_tell_brief_answers_where_they_differ():
    """A third of the answers are brief: nearly all to short prompts, none to long ones."""
    told, alike = OutputLengths(), OutputLengths()
    for number in range(300):
        told.observe(KEY, 500, 40 if number % 10 == 0 else 2)
        told.observe(KEY, 4000, 400)
        told.observe(KEY, 40_000, 1)  # no gap: nothing breaks its time per token
        for prompt in (500, 4000):
            alike.observe(KEY, prompt, 2 if number % 3 == 0 else 400)
    assert told.moments(KEY, 500).brief_odds == pytest.approx(3.0, rel=0.03)
    assert told.moments(KEY, 4000).brief_odds == told.moments(KEY, 40_000).brief_odds == 0.0
    assert told.moments(KEY, 100).brief_odds == 1.0  # not seen
    assert alike.moments(KEY, 500).brief_odds == pytest.approx(1.0, abs=0.05)


def test_few_brief_answers_tell_nothing():
    rare, common = OutputLengths(), OutputLengths()
    for number in range(1000):
        rare.observe(KEY, 4000, 400)
        rare.observe(KEY, 500, 2 if number % 33 == 0 else 400)
        common.observe(KEY, 4000, 400)
        common.observe(KEY, 500, 2 if number % 8 == 0 else 400)
    assert rare.moments(KEY, 500).brief_odds == rare.moments(KEY, 4000).brief_odds == 1.0
    assert common.moments(KEY, 500).brief_odds == 1.0  # twice the key's, but one in eight
    assert common.moments(KEY, 4000).brief_odds == 0.0


def test_a_fresh_bucket_takes_the_longer_tail_until_it_has_thirty():
    lengths = OutputLengths()
    for _ in range(100):
        lengths.observe(KEY, 4000, 400)
    for seen in range(1, 31):
        lengths.observe(KEY, 100, 20)
        assert (lengths.moments(KEY, 100).p95 < 25) is (seen == 30)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=60), st.integers(1, 100_000))
def test_moments_are_those_of_a_distribution(outputs, prompt):
    lengths = OutputLengths()
    for output in outputs:
        lengths.observe(KEY, prompt, output)
    moments = lengths.moments(KEY, prompt)
    assert moments.count == len(outputs)
    assert moments.mean_square >= moments.mean**2 > 0
    assert min(*outputs, 150) - 1e-6 <= moments.mean <= max(*outputs, 150) + 1e-6


def test_answers_that_a_limit_ended_promise_no_short_ones():
    """A team that asked for eight tokens at a time is not known to be brief."""
    cut, ended = OutputLengths(), OutputLengths()
    for _ in range(100):
        cut.observe(KEY, 100, 8, cut=True)
        ended.observe(KEY, 100, 8)
    for prompt in (100, 4000):
        assert cut.moments(KEY, prompt).p95 == inf
        assert ended.moments(KEY, prompt).p95 == 8.0  # the control


def test_output_lengths_restart_and_fold():
    whole, first, second = OutputLengths(), OutputLengths(), OutputLengths()
    for number in range(200):
        cut = number % 50 == 0
        whole.observe(KEY, 900, number, cut=cut)
        (first if number % 2 else second).observe(KEY, 900, number, cut=cut)
    restored = OutputLengths()
    restored.fold(through_msgpack(whole.export()))
    assert restored.export() == whole.export()
    assert restored.moments(KEY, 900).mean == whole.moments(KEY, 900).mean
    first.fold(second.export())
    folded, expected = first.moments(KEY, 900), whole.moments(KEY, 900)
    assert folded.count == expected.count == 200
    assert folded.mean == pytest.approx(expected.mean)
    assert folded.p95 == expected.p95


@given(
    st.lists(st.integers(0, 50_000), max_size=30),
    st.integers(0, 50_000_000),
    st.sampled_from((100, 4000)),
)
def test_one_answer_moves_mean_and_square_by_at_most_the_stated_factor(seen, output, prompt):
    lengths, step = OutputLengths(), ESTIMATORS[Estimator.OUTPUT_TOKENS].step
    for number in seen:
        lengths.observe(KEY, 100, number)
    before = lengths.moments(KEY, prompt)
    lengths.observe(KEY, prompt, output)
    after = lengths.moments(KEY, prompt)
    assert after.mean <= step * before.mean * (1 + 1e-9)
    assert after.mean_square <= max(step * before.mean_square, after.mean**2) * (1 + 1e-9)
    assert after.mean >= before.mean / step


def test_long_answers_move_the_mean_to_their_length():
    """A limit on one answer is none on many: also where few are long."""
    always, seldom = OutputLengths(), OutputLengths()
    for number in range(2000):
        always.observe(KEY, 100, 8000)
        seldom.observe(KEY, 100, 2000 if number % 20 == 0 else 5)
    assert always.moments(KEY, 100).mean == pytest.approx(8000, rel=0.03)
    assert seldom.moments(KEY, 100).mean == pytest.approx(0.05 * 2000 + 0.95 * 5, rel=0.05)


def test_lengths_of_a_model_or_a_team_are_forgotten():
    lengths = OutputLengths()
    keys = [(model, team) for model in ("a", "b") for team in ("s", "t")]
    for key in keys:
        lengths.observe(key, 100, 500)
    assert lengths.known() == (4, 500.0)
    assert lengths.forget("a", "s") == 2  # all sizes, and the size of its prompt
    assert lengths.forget(None, "s") == 2
    assert lengths.moments(("a", "t"), 100).count == 1
    assert lengths.forget("a", None) + lengths.forget(None, None) == 4
    assert lengths.known() == (0, 0.0)


def test_memory_is_bounded():
    lengths = OutputLengths(max_cells=10)
    for number in range(1000):
        lengths.observe((f"team-{number}",), 100, 5)
    assert len(lengths.export()) == 10
    latency = LatencyTracker(max_keys=3)
    for number in range(50):
        latency.observe((str(number),), ttft_ms=1.0, tpot_ms=1.0)
    assert len(latency.export()) == 3


def test_latency_is_unknown_before_an_observation():
    tracker = LatencyTracker()
    assert (tracker.ttft(KEY), tracker.tpot(KEY)) == ((None, 0.35), (None, 0.30))
    assert tracker.observations(KEY) == 0


def test_latency_learns_a_lognormal():
    tracker, rng = LatencyTracker(), random.Random(7)
    seen = [rng.lognormvariate(math.log(800), 0.6) for _ in range(180)]
    for ttft in seen:
        tracker.observe(KEY, ttft_ms=ttft, tpot_ms=None)
    for nonsense in (-1.0, 0.0, math.nan, math.inf):
        tracker.observe(KEY, ttft_ms=nonsense, tpot_ms=nonsense)
    median, sigma = tracker.ttft(KEY)
    assert median == pytest.approx(statistics.geometric_mean(seen))
    assert sigma == pytest.approx(0.6, abs=0.08)
    assert tracker.observations(KEY) == 180
    assert tracker.tpot(KEY) == (None, 0.30)


def test_one_observation_keeps_the_prior_spread():
    tracker = LatencyTracker()
    tracker.observe(KEY, ttft_ms=200.0, tpot_ms=10.0)
    median, sigma = tracker.tpot(KEY)
    assert median == pytest.approx(10.0)
    assert sigma == pytest.approx(0.30, abs=0.01)


def test_latency_restarts():
    tracker, restored = LatencyTracker(), LatencyTracker()
    for ttft in (100.0, 200.0, 400.0):
        tracker.observe(KEY, ttft_ms=ttft, tpot_ms=ttft / 10)
    restored.fold(through_msgpack(tracker.export()))
    assert restored.ttft(KEY) == pytest.approx(tracker.ttft(KEY))
    assert restored.tpot(KEY) == pytest.approx(tracker.tpot(KEY))
