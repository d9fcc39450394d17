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
    TokenRatio,
    prompt_bucket,
)

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


def test_memory_is_bounded():
    lengths = OutputLengths(max_cells=10)
    for number in range(1000):
        lengths.observe((f"team-{number}",), 100, 5)
    assert len(lengths.export()) == 10
    ratio, latency = TokenRatio(max_keys=3), LatencyTracker(max_keys=3)
    for number in range(50):
        ratio.observe((str(number),), 100, 25)
        latency.observe((str(number),), ttft_ms=1.0, tpot_ms=1.0)
    assert len(ratio.export()) == len(latency.export()) == 3


def test_tokens_of_a_text_before_any_was_seen():
    assert TokenRatio().estimate(KEY, 4000) == (1000, 4064)
    assert TokenRatio().estimate(KEY, 0) == (1, 64)


def test_the_ratio_follows_what_engines_report():
    ratio = TokenRatio()
    for _ in range(980):
        ratio.observe(KEY, 3000, 1000)
    assert ratio.estimate(KEY, 6000)[0] == pytest.approx(2000, rel=0.02)
    for _ in range(6000):
        ratio.observe(KEY, 3000, 1500)
    assert ratio.estimate(KEY, 6000)[0] == pytest.approx(3000, rel=0.05)
    ratio.observe(KEY, 0, 5)
    ratio.observe(KEY, 5, 0)
    assert ratio.estimate(("other",), 4000)[0] == 1000


@given(st.lists(st.tuples(st.integers(1, 10_000), st.integers(1, 30_000)), min_size=1, max_size=30))
def test_what_was_seen_once_stays_within_the_bound(pairs):
    ratio = TokenRatio()
    for size, tokens in pairs:
        ratio.observe(KEY, size, tokens)
    for size, tokens in pairs:
        estimate, bound = ratio.estimate(KEY, size)
        assert 1 <= estimate <= bound
        assert tokens <= bound


def test_the_ratio_restarts():
    ratio, restored = TokenRatio(), TokenRatio()
    ratio.observe(KEY, 100, 300)
    restored.fold(through_msgpack(ratio.export()))
    assert restored.estimate(KEY, 1000) == ratio.estimate(KEY, 1000)


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
