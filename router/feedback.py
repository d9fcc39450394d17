"""Feedback loops that correct forecasts by the measured behaviour of each engine.

They make routing robust against a wrong step model: without them a model 30 % too fast keeps 4 % of
its promises. Each engine has `FeedbackLoops`, folded from sums that only grow. Only admitted
requests are observed, and best efforts that kept their promise, so a mistaken "infeasible" would
rarely be corrected. Therefore the factors have a floor, and without answers they drift back to
their start: an engine that was slow and got no request for `SLOW_FORGET_S` is tried again.
"""

from collections import deque
from math import exp, floor, log
from typing import NamedTuple

from router.types import StepModel

SAFETY_TTFT, SAFETY_TPOT = 0.85, 0.80  # to begin with
SAFETY_RANGE = (0.4, 1.0)
SAFETY_GAIN = 0.02
SPARE = 0.4  # of the misses that the SLO allows, so that chance alone does not exceed them
FEEDBACK_RANGE = (0.5, 4.0)
FEEDBACK_S = 5.0  # time constant; one ten times as short chases the mix of prefill and decoding
PREFILL_S = 5.0
SPARE_FIRST, SPARE_RANGE = 1.0, (-2.0, 2.0)  # misses
SPARE_BRIEF_RANGE = (-5.0, 2.0)  # bursts break many at once, and holding them back costs less
BRIEF_TOKENS = 8  # up to this answer length single steps determine the time per token
RECENT, BROKEN_SHARE, BROKEN_CUT = 200, 0.97, 0.8
MOST_WARMER = log(20.0)  # log of the maximum gain after a long run of kept promises
WARM_TO = 0.9  # above it a burst causes many misses at once, so the gain is constant
FORGET_S = 60.0
SLOW_FORGET_S = 10.0
TRUST_FROM_TOKENS = 1000.0
TRUST_TOKENS = 100_000.0  # expected tokens after which earlier ones weigh 1/e


class FeedbackSums(NamedTuple):
    """Sums of the observations of one engine over all workers; all but the pulls only grow."""

    observed_s: float = 0.0
    predicted_s: float = 0.0
    admitted_tokens: float = 0.0  # of prompts, read or not
    ttft_pull: float = 0.0
    tpot_pull: float = 0.0
    judged: float = 0.0  # answers with a promise that ended
    missed: float = 0.0  # answers that missed their promise
    brief_pull: float = 0.0


def pull(*, kept: bool, attainment: float) -> float:
    """Return how one answer moves a safety factor, before the gain; on average 0 at target."""
    spared = SPARE * (1.0 - attainment)
    return spared if kept else spared - 1.0


def is_evidence(*, kept: bool, best_effort: bool) -> bool:
    """Return whether an answer is evidence about the margin of promises.

    A best effort was forecast to miss its promise. Counting that miss would keep the margin so wide
    that nothing is admitted again. A best effort that kept its promise does count.
    """
    return kept or not best_effort


def brief_pull(*, kept: bool, attainment: float, steps: float) -> float:
    """Return how an answer of `steps` tokens after its first one moves `spare_brief_misses`."""
    return pull(kept=kept, attainment=attainment) if kept or steps < BRIEF_TOKENS else 0.0


class PrefixHitTrust:
    """Share of the tokens expected in an engine's prefix cache that were recently found there.

    Tokens found beyond the expected ones (foreign prompts, smaller blocks) do not raise the share
    above 1. The share is 0 until `TRUST_FROM_TOKENS` were expected.
    """

    __slots__ = ("_before", "_expected", "_found")

    def __init__(self) -> None:
        self._expected = self._found = 0.0
        self._before: tuple[float, float] | None = None

    @property
    def share(self) -> float:
        if self._expected < TRUST_FROM_TOKENS:
            return 0.0
        return min(1.0, self._found / self._expected)

    def fold(self, expected_total: float, found_total: float) -> None:
        """Add the newest sums. Each sum only grows, except when a worker or an engine dies."""
        if self._before is not None:
            expected = max(0.0, expected_total - self._before[0])
            kept = exp(-expected / TRUST_TOKENS)
            self._expected = kept * self._expected + expected
            self._found = kept * self._found + max(0.0, found_total - self._before[1])
        self._before = expected_total, found_total


class SafetyFactor:
    """Share of a promise that admission may use, learned from how answers kept it.

    Every kept promise raises the factor a little and every miss lowers it a lot, so that it settles
    where the share of misses is `SPARE` of what the SLO allows: 0.996 for 0.99. The start is a
    guess. Until a miss contradicts it, a run of kept promises raises the gain by `exp(expected
    misses)`, the odds that misses are fewer than allowed, up to `WARM_TO`. Each miss requires a run
    longer by one expected miss, so the settling point does not move.
    """

    __slots__ = ("_begin", "_misses", "_most", "_run", "value")

    def __init__(self, begin: float, *, most_warmer: float = 0.0) -> None:
        self._begin = self.value = begin
        self._most = most_warmer
        self._run = self._misses = 0.0  # in expected misses; seen ones

    def track(self, pulled: float) -> None:
        """Move the factor by the pull of the answers since the last call."""
        if pulled < 0.0:
            self._run, self._misses = 0.0, self._misses + max(1.0, -pulled)
            self._move(SAFETY_GAIN * pulled)
        elif pulled > 0.0:
            before, self._run = self._run, self._run + pulled
            warmer = self._warmth(self._run) - self._warmth(before)
            self._move(SAFETY_GAIN * (warmer if self.value < WARM_TO else pulled))

    def cut(self) -> None:
        """Lower the factor at once after too many broken promises."""
        self.value = _within(BROKEN_CUT * self.value, SAFETY_RANGE)

    def forget(self, gain: float) -> None:
        """Drift back towards the start; the evidence fades at the same rate."""
        self.value += gain * (self._begin - self.value)
        self._run *= 1.0 - gain
        self._misses *= 1.0 - gain

    def _move(self, by: float) -> None:
        self.value = _within(self.value + by, SAFETY_RANGE)

    def _warmth(self, run: float) -> float:
        """Return the total increase of a run so far, before the gain; its slope is at least 1."""
        early = min(run, self._misses)
        warmer = min(run - early, self._most)
        return early + exp(warmer) - 1.0 + (run - early - warmer) * exp(warmer)


class FeedbackLoops:
    """Factors of one engine; `fold` takes the newest sums, about every half second.

    * `step_feedback` is observed over predicted step time and scales every predicted second. Both
      are
      averaged before the division: a long step is often observed in one fold and its prompt counted
      in the next, and the mean of such ratios is above the ratio of the means.
    * `safety_ttft` and `safety_tpot`, each a `SafetyFactor`, scale the promises that admission
      tests.
      `pull` is the part of one answer; answers with different promises add up.
    * Breaker: if fewer than `BROKEN_SHARE` of the last `RECENT` answers kept their promise, both
      factors fall at once by a fifth.
    * `prefill_rate` is recently admitted prompt tokens per second, which slow decoding.
    * `spare_misses` is the number of first tokens that may be late: earned by kept ones, spent by
      late
      ones. `spare_brief_misses` is the number of TPOT promises that answers of up to `BRIEF_TOKENS`
      tokens may miss; a single step can break such a promise.
    """

    __slots__ = (
        "_age_s", "_at_s", "_judged_s", "_observed_s", "_predicted", "_recent", "_sums", "_tpot",
        "_ttft", "prefill_rate", "spare_brief_misses",
        "spare_misses", "step_feedback",
    )  # fmt: skip

    def __init__(self) -> None:
        self.step_feedback = 1.0
        self._ttft, self._tpot = (
            SafetyFactor(SAFETY_TTFT, most_warmer=MOST_WARMER),
            SafetyFactor(SAFETY_TPOT),
        )
        self.prefill_rate = self._age_s = 0.0
        self.spare_misses = self.spare_brief_misses = SPARE_FIRST
        self._sums: FeedbackSums | None = None
        self._at_s = self._judged_s = self._observed_s = 0.0
        self._predicted = 0.0  # of steps, each second; the mean of where any were observed
        self._recent: deque[tuple[float, float]] = deque()

    @property
    def safety_ttft(self) -> float:
        return self._ttft.value

    @safety_ttft.setter
    def safety_ttft(self, known: float) -> None:
        self._ttft.value = known

    @property
    def safety_tpot(self) -> float:
        return self._tpot.value

    @safety_tpot.setter
    def safety_tpot(self, known: float) -> None:
        self._tpot.value = known

    def fold(self, sums: FeedbackSums, now_s: float) -> None:
        before, self._sums = self._sums, sums
        elapsed_s, self._at_s = now_s - self._at_s, now_s
        if before is None or elapsed_s <= 0.0:
            self._judged_s = self._observed_s = now_s
            return
        # If a worker dies, its sums are gone: a decrease is no observation.
        observed = sums.observed_s - before.observed_s
        predicted = sums.predicted_s - before.predicted_s
        if elapsed_s > SLOW_FORGET_S:  # folds were missed: this is not a pause in traffic
            self._observed_s = now_s
        if observed > 0.0 and predicted > 0.0:
            self._observed_s = now_s
            gain, rate = 1.0 - exp(-elapsed_s / FEEDBACK_S), predicted / elapsed_s
            self._predicted += gain * (rate - self._predicted) if self._predicted else rate
            gain *= rate / self._predicted
            moved = self.step_feedback + gain * (observed / predicted - self.step_feedback)
            self.step_feedback = _within(moved, FEEDBACK_RANGE)
        elif now_s - self._observed_s > SLOW_FORGET_S:
            gain = 1.0 - exp(-elapsed_s / SLOW_FORGET_S)
            self.step_feedback += gain * min(0.0, 1.0 - self.step_feedback)
        rate = max(0.0, sums.admitted_tokens - before.admitted_tokens) / elapsed_s
        self._age_s += elapsed_s  # the first seconds count in full, so a start sees its load
        gain = min(1.0, elapsed_s / min(self._age_s, PREFILL_S))
        self.prefill_rate += gain * (rate - self.prefill_rate)
        judged, missed = sums.judged - before.judged, sums.missed - before.missed
        if judged > 0.0 <= missed:
            self._judged_s = now_s
            self._track(sums, before)
            self._break(judged, missed)
        elif now_s - self._judged_s > FORGET_S:
            self._forget(elapsed_s)

    def skip_folds(self, folds: int, period_s: float) -> None:
        """Apply `folds` more folds of the last sums, one each `period_s` seconds.

        The period is at most `SLOW_FORGET_S`, the longest interval between two folds.
        """
        slow_s = _late_s(self._observed_s + SLOW_FORGET_S - self._at_s, folds, period_s)
        unjudged_s = _late_s(self._judged_s + FORGET_S - self._at_s, folds, period_s)
        self._at_s += folds * period_s
        while folds and self._age_s < PREFILL_S:
            self._age_s += period_s
            self.prefill_rate *= 1.0 - min(1.0, period_s / min(self._age_s, PREFILL_S))
            folds -= 1
        self._age_s += folds * period_s
        self.prefill_rate *= max(0.0, 1.0 - period_s / PREFILL_S) ** folds
        drift = 1.0 - exp(-slow_s / SLOW_FORGET_S)
        self.step_feedback += drift * min(0.0, 1.0 - self.step_feedback)
        self._forget(unjudged_s)

    def _track(self, sums: FeedbackSums, before: FeedbackSums) -> None:
        pulled = sums.ttft_pull - before.ttft_pull
        self._ttft.track(pulled)
        self.spare_misses = _within(self.spare_misses + pulled, SPARE_RANGE)
        self._tpot.track(sums.tpot_pull - before.tpot_pull)
        pulled = sums.brief_pull - before.brief_pull
        self.spare_brief_misses = _within(self.spare_brief_misses + pulled, SPARE_BRIEF_RANGE)

    def _break(self, judged: float, missed: float) -> None:
        recent = self._recent
        recent.append((judged, missed))
        count = sum(value for value, _ in recent)
        while count - recent[0][0] >= RECENT:
            count -= recent.popleft()[0]
        if count < RECENT or sum(value for _, value in recent) <= (1.0 - BROKEN_SHARE) * count:
            return
        recent.clear()  # the next cut needs `RECENT` new answers
        self._ttft.cut()
        self._tpot.cut()

    def _forget(self, elapsed_s: float) -> None:
        gain = 1.0 - exp(-elapsed_s / FORGET_S)
        self._ttft.forget(gain)
        self._tpot.forget(gain)


def _late_s(from_s: float, folds: int, period_s: float) -> float:
    """Return the total seconds of those folds that are later than `from_s` seconds from now."""
    return period_s * (folds - min(folds, max(0, floor(from_s / period_s))))


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])


def predicted_s(
    model: StepModel,
    *,
    steps: float,
    sequences: float,
    context: float,
    prefilled: float,
    attended: float = 0.0,
) -> float:
    """Return the predicted seconds of these steps at mean loads, including the given prefill.

    `attended` counts pairs of a prompt token and an earlier token read in these steps.
    """
    decode_s = model.a_s + model.b_s * sequences + model.c_s * context
    read_s = model.d_s * max(0.0, prefilled) + model.q_s * max(0.0, attended)
    return steps * decode_s + read_s
