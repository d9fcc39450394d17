"""The loops: where they come to rest, what a bad start or a death does to them."""

import math
import random

import pytest

from router.feedback import (
    BROKEN_CUT,
    FEEDBACK_RANGE,
    FORGET_S,
    RECENT,
    SAFETY_GAIN,
    SAFETY_RANGE,
    SAFETY_TPOT,
    SAFETY_TTFT,
    SPARE,
    SPARE_FIRST,
    SPARE_RANGE,
    TRUST_FROM_TOKENS,
    TRUST_TOKENS,
    WARM_TO,
    FeedbackLoops,
    FeedbackSums,
    PrefixHitTrust,
    predicted_s,
    pull,
)
from router.types import StepModel


def test_a_pull_is_nothing_on_average_at_the_target() -> None:
    kept, missed = pull(kept=True, attainment=0.99), pull(kept=False, attainment=0.99)
    assert 0.996 * kept + 0.004 * missed == pytest.approx(0.0)
    assert (kept, missed) == pytest.approx((0.004, -0.996))


def folded(loops: FeedbackLoops, now_s: float, **sums: float) -> FeedbackLoops:
    loops.fold(FeedbackSums(**sums), now_s)
    return loops


def test_step_feedback_follows_the_ratio_within_its_range() -> None:
    loops, now_s = FeedbackLoops(), 0.0
    for tick in range(200):
        now_s = 0.5 * tick
        folded(loops, now_s, observed_s=2.0 * tick, predicted_s=float(tick))
    assert loops.step_feedback == pytest.approx(2.0, rel=0.01)
    folded(loops, now_s + 0.5)  # a worker died: its sums went with it
    assert loops.step_feedback == pytest.approx(2.0, rel=0.01)
    for tick in range(1000):
        folded(loops, now_s + 0.5 * tick, observed_s=99.0 * tick, predicted_s=float(tick))
    assert loops.step_feedback == FEEDBACK_RANGE[1]


def test_a_long_step_whose_prompt_is_counted_in_the_next_fold_is_no_slow_engine() -> None:
    """The mean of the folds' ratios would be 1.67."""
    loops, observed_s, predicted_s = FeedbackLoops(), 0.0, 0.0
    for tick in range(400):
        observed_s += 1.0 if tick % 2 else 3.0
        predicted_s += 3.0 if tick % 2 else 1.0
        folded(loops, 0.5 * tick, observed_s=observed_s, predicted_s=predicted_s)
    assert loops.step_feedback == pytest.approx(1.0, abs=0.1)


def test_the_first_reading_and_a_standing_clock_say_nothing() -> None:
    loops = folded(FeedbackLoops(), 100.0, observed_s=90.0, predicted_s=1.0, admitted_tokens=9e9)
    folded(loops, 100.0, observed_s=99.0, predicted_s=2.0)
    assert (loops.step_feedback, loops.prefill_rate) == (1.0, 0.0)


def test_prefill_rate_is_a_running_mean() -> None:
    loops = FeedbackLoops()
    for second in range(100):
        folded(loops, float(second), admitted_tokens=300.0 * second)
    assert loops.prefill_rate == pytest.approx(300.0, rel=0.01)


def test_a_start_is_not_blind_to_its_own_rush() -> None:
    loops = FeedbackLoops()
    for half in range(3):
        folded(loops, 0.5 * half, admitted_tokens=10_000.0 * half)
    assert loops.prefill_rate == pytest.approx(20_000.0)


class Answers:
    """Sums of answers that end twenty at a tick."""

    def __init__(self, loops: FeedbackLoops) -> None:
        self.loops, self.now_s, self.sums = loops, 0.0, FeedbackSums()
        loops.fold(self.sums, 0.0)

    def end(self, kept: list[bool]) -> None:
        pulled = sum(pull(kept=kept_value, attainment=0.99) for kept_value in kept)
        self.sums = self.sums._replace(
            ttft_pull=self.sums.ttft_pull + pulled,
            judged=self.sums.judged + len(kept),
            missed=self.sums.missed + kept.count(False),
        )
        self.now_s += 0.5
        self.loops.fold(self.sums, self.now_s)


def test_kept_promises_raise_the_factor_slowly_to_its_limit() -> None:
    loops = FeedbackLoops()
    answers = Answers(loops)
    answers.end([True] * 20)
    assert SAFETY_TTFT < loops.safety_ttft < SAFETY_TTFT + 0.01
    for _ in range(1000):
        answers.end([True] * 20)
    assert loops.safety_ttft == SAFETY_RANGE[1]
    assert loops.safety_tpot == SAFETY_TPOT  # nothing was said of it


def warmed(misses: int, kept: int) -> float:
    """How far the factor of TTFT got: misses first, then kept promises."""
    loops = FeedbackLoops()
    answers = Answers(loops)
    for _ in range(misses):
        answers.end([False] + [True] * 19)
    loops.safety_ttft = SAFETY_TTFT
    for _ in range(kept // 20):
        answers.end([True] * 20)
    return loops.safety_ttft


def test_a_run_of_kept_promises_warms_as_fast_as_it_is_evidence() -> None:
    """By `exp` of the misses that were expected, up to where a burst could make many."""
    gain = SAFETY_GAIN * SPARE * 0.01
    assert warmed(0, 300) == pytest.approx(WARM_TO, abs=0.01)
    assert warmed(3, 300) == pytest.approx(SAFETY_TTFT + 300 * gain), "the guess was contradicted"
    assert warmed(3, 300) < warmed(1, 500) - 200 * gain < warmed(0, 300)
    assert warmed(0, 1000) - warmed(0, 500) == pytest.approx(500 * gain), "steady from there on"


def test_the_factor_of_steps_warms_steadily() -> None:
    loops = FeedbackLoops()
    sums = FeedbackSums()
    loops.fold(sums, 0.0)
    for tick in range(1, 28):
        sums = sums._replace(tpot_pull=sums.tpot_pull + 20 * 0.004, judged=sums.judged + 20)
        loops.fold(sums, 0.5 * tick)
    assert loops.safety_tpot == pytest.approx(SAFETY_TPOT + 540 * SAFETY_GAIN * 0.004)


def test_it_comes_to_rest_where_misses_are_what_is_spared() -> None:
    """An engine that misses the more, the more is promised."""
    rng, loops = random.Random(7), FeedbackLoops()
    answers, missed = Answers(loops), 0
    for tick in range(3000):
        kept = [rng.random() > 0.02 * max(0.0, loops.safety_ttft - 0.5) for _ in range(20)]
        answers.end(kept)
        missed += kept.count(False) if tick > 1000 else 0
    assert missed / (2000 * 20) == pytest.approx(0.004, abs=0.001)


def test_misses_are_spared_as_kept_promises_earn_them() -> None:
    """Whoever takes every miss that is to spare breaks no more promises than the target allows."""
    loops, missed = FeedbackLoops(), 0
    answers = Answers(loops)
    assert loops.spare_misses == SPARE_FIRST
    for _ in range(5000):
        kept = [True] * 9 + [loops.spare_misses < 1.0]
        answers.end(kept)
        missed += kept.count(False)
        assert SPARE_RANGE[0] <= loops.spare_misses <= SPARE_RANGE[1]
    assert 150 < missed <= 0.004 * 50_000 + 1


def test_a_burst_of_misses_is_forgiven_in_time_and_a_long_peace_spares_few() -> None:
    for kept, bound in ((False, SPARE_RANGE[0]), (True, SPARE_RANGE[1])):
        loops = FeedbackLoops()
        answers = Answers(loops)
        for _ in range(100):
            answers.end([kept] * 20)
        assert loops.spare_misses == bound


def test_the_breaker_cuts_both_at_once_and_not_twice_for_the_same_answers() -> None:
    loops = FeedbackLoops()
    answers = Answers(loops)
    while answers.sums.judged < RECENT - 20:
        answers.end([True] * 20)
    before, tpot = loops.safety_ttft, loops.safety_tpot
    answers.end([False] * 7 + [True] * 13)
    assert loops.safety_tpot == pytest.approx(BROKEN_CUT * tpot)
    assert loops.safety_ttft < BROKEN_CUT * before
    answers.end([True] * 20)
    assert loops.safety_tpot == pytest.approx(BROKEN_CUT * tpot)


def test_the_factors_have_a_floor() -> None:
    answers = Answers(FeedbackLoops())
    for _ in range(50):
        answers.end([False] * 20)
    assert (answers.loops.safety_ttft, answers.loops.safety_tpot) == (0.4, 0.4)


def test_without_answers_the_factors_drift_back() -> None:
    """What was learned from a few bad ones must not keep everybody away for ever."""
    answers = Answers(FeedbackLoops())
    for _ in range(50):
        answers.end([False] * 20)
    for tick in range(2000):
        answers.loops.fold(answers.sums, answers.now_s + tick)
    assert answers.loops.safety_ttft == pytest.approx(SAFETY_TTFT, abs=0.01)
    assert FORGET_S == 60.0


def test_what_steps_take_with_prefill_among_them() -> None:
    model = StepModel(a_s=0.01, b_s=0.001, c_s=1e-5, d_s=1e-4, t0_s=9.0)
    took = predicted_s(model, steps=10, sequences=4, context=150, prefilled=100)
    assert took == pytest.approx(10 * (0.01 + 0.004 + 0.0015) + 0.01)
    assert predicted_s(model, steps=1, sequences=0, context=0, prefilled=-5) == 0.01


def trusted(*sums: tuple[float, float]) -> float:
    trust = PrefixHitTrust()
    for expected, item in sums:
        trust.fold(expected, item)
    return trust.share


def test_the_prefix_cache_is_trusted_as_far_as_it_was_right() -> None:
    assert trusted((0, 0), (TRUST_FROM_TOKENS - 1, 9999)) == 0.0  # too few to tell
    assert trusted((0, 0), (4000, 1000)) == pytest.approx(0.25)
    assert trusted((0, 0), (4000, 9000)) == 1.0  # foreign prompts found theirs, too
    assert trusted((7e6, 9e6), (7e6 + 4000, 9e6 + 2000)) == pytest.approx(0.5)
    assert trusted((0, 0), (4000, 3000), (0, 3000), (2000, 3000)) < 0.75  # a death takes a sum


def test_the_newest_prompts_count_most() -> None:
    right = [(tokens, tokens) for tokens in range(0, 10**6, 1000)]
    wrong = [(10**6 + tokens, 10**6) for tokens in range(0, int(TRUST_TOKENS), 1000)]
    assert trusted(*right) == 1.0
    assert trusted(*right, *wrong) == pytest.approx(math.exp(-1), abs=0.02)


def test_an_engine_that_was_slow_and_got_nothing_since_is_tried_again() -> None:
    """Nothing admitted teaches nothing: what was five times too slow must not stay so for ever."""
    loops, observed = FeedbackLoops(), 0.0
    for tick in range(40):
        observed += 2.5
        folded(loops, 0.5 * tick, observed_s=observed, predicted_s=observed / 5.0)
    assert loops.step_feedback == FEEDBACK_RANGE[1]
    for tick in range(40, 60):
        folded(loops, 0.5 * tick, observed_s=observed, predicted_s=observed / 5.0)
    assert loops.step_feedback == FEEDBACK_RANGE[1], "for as long as a lull may last"
    for tick in range(60, 120):
        folded(loops, 0.5 * tick, observed_s=observed, predicted_s=observed / 5.0)
    assert 1.0 < loops.step_feedback < 1.5


def test_a_factor_below_one_is_not_forgotten_in_a_lull() -> None:
    """It says that the model is too pessimistic; to forget it would cost capacity at each lull."""
    loops = FeedbackLoops()
    for tick in range(100):
        folded(loops, 0.5 * tick, observed_s=0.7 * tick, predicted_s=float(tick))
    known = loops.step_feedback
    for tick in range(100, 300):
        folded(loops, 0.5 * tick, observed_s=0.7 * 99, predicted_s=99.0)
    assert loops.step_feedback == known < 1.0


@pytest.mark.parametrize("folds", [0, 1, 7, 19, 20, 21, 119, 120, 121, 5_000])
@pytest.mark.parametrize("ticks", [1, 4, 60])
def test_a_rest_is_as_many_folds_of_the_same_sums(folds: int, ticks: int) -> None:
    """Slow, breaking promises, in the middle of a rush, also when hardly begun."""
    step_by_step, at_once = FeedbackLoops(), FeedbackLoops()
    for loops in (step_by_step, at_once):
        for tick in range(ticks):
            sums = {
                "observed_s": 3.0 * tick, "predicted_s": 2.0 * tick, "judged": 5.0 * tick,
                "missed": 2.0 * tick, "ttft_pull": -2.0 * tick, "admitted_tokens": 900.0 * tick,
                "brief_pull": -0.3 * tick,
            }  # fmt: skip
            folded(loops, 0.25 + 0.5 * tick, **sums)
    for fold in range(folds):
        folded(step_by_step, 0.25 + 0.5 * (ticks + fold), **sums)
    at_once.skip_folds(folds, 0.5)
    later = {**sums, "admitted_tokens": 1e6, "observed_s": 1e3, "predicted_s": 9e2}
    for loops in (step_by_step, at_once):
        folded(loops, 0.25 + 0.5 * (ticks + folds), **later)
    for name in ("step_feedback", "safety_ttft", "safety_tpot", "prefill_rate", "spare_misses",
                 "spare_brief_misses"):  # fmt: skip
        assert getattr(at_once, name) == pytest.approx(getattr(step_by_step, name), rel=1e-9), name
