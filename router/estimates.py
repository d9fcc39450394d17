"""Estimates learned from finished requests: output lengths and API latency.

Each estimate starts from a prior, is blended with a wider cell while its own has few observations,
and is bounded in memory. State is exported as plain tuples, to restore it after a restart or to
merge several processes. Merge each state once: merging it again counts it twice.
"""

from math import exp, inf, log, log2, sqrt

from router.estimator_rules import AGING_S, LENGTH_HALF_LIFE_S, LENGTH_STEP, share_left
from router.moments import SHRINK, LogHistogram, RecencyCache, RunningMoments
from router.types import ApiState, OutputMoments

CellKey = tuple[str, ...]
LengthState = tuple[
    tuple[CellKey, int, tuple[float, float, float], tuple[tuple[int, float, float], ...]], ...
]
LatencyState = tuple[tuple[CellKey, tuple[float, float, float], tuple[float, float, float]], ...]

PRIOR_OUTPUT_TOKENS = 150.0  # mean before any observation: reference simulation, 2026-11-20
OUTPUTS_IN_BUCKET = 30  # from which a prompt-size bucket's own p95 is used
BRIEF_LEAST = 0.2  # share of brief answers in a bucket from which the next one is expected brief
BRIEF_OVERALL = 0.02  # share of a key's answers below which prompt sizes are not compared
FADE_LENGTHS = 2000.0
FADE_LATENCIES = 200.0
FORGOTTEN = 0.5  # observations: a cell with less is dropped, and its key begins anew

_WHOLE = -1  # the bucket that stands for all prompt sizes of a key
# An exponential distribution around the prior mean: its mean square is twice the square.
_PRIOR = PRIOR_OUTPUT_TOKENS, 2.0 * PRIOR_OUTPUT_TOKENS**2
_PART_STEP = 0.5 * (1.0 + LENGTH_STEP)  # of a cell: it leans on a wider one, which moves, too
_UNLIMITED = 0.5 * min(1.0, _PART_STEP - 1.0)  # times the weight: below, no limit can be reached


class OutputLengths:
    """Output tokens by key, usually (team, model), and by prompt size in 1.5 * log2 buckets."""

    def __init__(self, *, max_cells: int = 4096) -> None:
        self._cells: RecencyCache[tuple[CellKey, int], _Lengths] = RecencyCache(max_cells, _Lengths)
        self._aged_s: float | None = None

    def observe(
        self, key: CellKey, prompt_tokens: int, output_tokens: float, *, cut: bool = False
    ) -> None:
        """Record the length of one answer. `cut`: a limit ended the answer, so it would be longer.

        Mean and mean square are moved by a factor of at most `LENGTH_STEP` each. The p95 is a rank,
        in which one answer always counts as one.
        """
        narrow = self._cells.touch((key, prompt_bucket(prompt_tokens)))
        whole = self._cells.touch((key, _WHOLE))
        for part in (narrow, whole):
            told, moments = output_tokens, part.moments
            if told * told > _UNLIMITED * moments.weight * moments.mean * moments.mean:
                wider = _PRIOR if part is whole else _leaned(whole.moments, *_PRIOR)
                told = min(told, _most_told(moments, *wider))
            moments.add(told, told * told)
            part.histogram.add(output_tokens, cut=cut)

    def age(self, now_s: float) -> None:
        """Fade old observations of every key; `now_s` is the time of the next observation.

        Faded cells are blended with wider ones, and those with the prior.
        """
        since_s = 0.0 if self._aged_s is None else now_s - self._aged_s
        if self._aged_s is not None and -AGING_S < since_s < AGING_S:
            return
        self._aged_s, share = now_s, share_left(since_s, LENGTH_HALF_LIFE_S)
        faded = set()
        for key, cell in self._cells.items():
            for part in cell.parts:
                part.age(share)
            if cell.moments.weight < FORGOTTEN:
                faded.add(key)
        self._cells.drop(faded.__contains__)

    def forget(self, model: str | None, team: str | None) -> int:
        """Drop the cells that match `model` and `team` (`None` matches all) and return how many."""
        return self._cells.drop(
            lambda cell: model in (None, cell[0][0]) and team in (None, cell[0][-1])
        )

    def known(self) -> tuple[int, float]:
        """Return the number of keys and the mean length over all observations that count."""
        cells = [cell.moments for (_, bucket), cell in self._cells.items() if bucket == _WHOLE]
        weight = sum(cell.weight for cell in cells)
        mean = sum(cell.weight * cell.mean for cell in cells) / weight if weight else 0.0
        return len(cells), mean

    def mean(self, key: CellKey) -> float | None:
        """Return the mean over all prompt sizes, without a prior; `None` without observations."""
        whole = self._cells.get((key, _WHOLE))
        return None if whole is None else whole.moments.mean

    def moments(self, key: CellKey, prompt_tokens: int) -> OutputMoments:
        """Return the moments of a prompt size, blended with those of its key.

        Until the prompt size has `OUTPUTS_IN_BUCKET` answers, p95 is the larger of its own and the
        key's.
        """
        whole, all_lengths = (self._cells.get((key, _WHOLE)) or _UNSEEN).parts
        cell, lengths = (self._cells.get((key, prompt_bucket(prompt_tokens))) or _UNSEEN).parts
        mean, square = _leaned(cell, *_leaned(whole, *_PRIOR))
        known = lengths.weight >= OUTPUTS_IN_BUCKET
        p95 = lengths.p95() if known else max(lengths.p95(), all_lengths.p95())
        count = int((cell if known else whole).weight)
        odds = _brief_odds(lengths, all_lengths) if known else 1.0
        return OutputMoments(count, mean, max(square, mean * mean), p95, odds)

    def export(self) -> LengthState:
        return tuple(
            (key, bucket, cell.moments.export(), cell.histogram.export())
            for (key, bucket), cell in self._cells.items()
        )

    def fold(self, state: LengthState) -> None:
        for key, bucket, (weight, mean, square), bins in state:
            moments, histogram = self._cells.touch((tuple(key), bucket)).parts
            moments.add(mean, square, weight)
            for index, count, cut in bins:
                histogram.add_bin(index, count, cut)


class LatencyTracker:
    """TTFT and TPOT of external targets, each as a lognormal distribution."""

    def __init__(self, *, max_keys: int = 1024) -> None:
        self._cells: RecencyCache[CellKey, _Latencies] = RecencyCache(max_keys, _Latencies)

    def observe(self, key: CellKey, *, ttft_ms: float | None, tpot_ms: float | None) -> None:
        cell = self._cells.touch(key)
        for moments, latency in ((cell.ttft, ttft_ms), (cell.tpot, tpot_ms)):
            if latency is not None and 0.0 < latency < inf:
                moments.add(log(latency), log(latency) ** 2)

    def ttft(self, key: CellKey) -> tuple[float | None, float]:
        """Return median (ms) and sigma as in `ApiState`; no median without observations."""
        cell = self._cells.get(key)
        return _lognormal(None if cell is None else cell.ttft, ApiState().ttft_sigma)

    def tpot(self, key: CellKey) -> tuple[float | None, float]:
        cell = self._cells.get(key)
        return _lognormal(None if cell is None else cell.tpot, ApiState().tpot_sigma)

    def observations(self, key: CellKey) -> int:
        cell = self._cells.get(key)
        return 0 if cell is None else int(cell.ttft.weight)

    def export(self) -> LatencyState:
        return tuple(
            (key, cell.ttft.export(), cell.tpot.export()) for key, cell in self._cells.items()
        )

    def fold(self, state: LatencyState) -> None:
        for key, ttft, tpot in state:
            cell = self._cells.touch(tuple(key))
            for moments, (weight, mean, square) in ((cell.ttft, ttft), (cell.tpot, tpot)):
                moments.add(mean, square, weight)


def prompt_bucket(prompt_tokens: int) -> int:
    return int(1.5 * log2(prompt_tokens)) if prompt_tokens > 1 else 0


def _brief_odds(bucket: LogHistogram, whole: LogHistogram) -> float:
    """Return the bucket's share of brief answers over the key's; at most 1 if it is small."""
    share, overall = bucket.brief_share(), whole.brief_share()
    if overall < BRIEF_OVERALL:
        return 1.0
    odds = share / overall
    return odds if share >= BRIEF_LEAST else min(1.0, odds)


def _leaned(cell: RunningMoments, mean: float, square: float) -> tuple[float, float]:
    """Return mean and mean square of a cell, blended with those of a wider cell."""
    return cell.lean(cell.mean, mean), cell.lean(cell.square, square)


def _most_told(cell: RunningMoments, mean: float, square: float) -> float:
    """Return the longest answer that moves a cell's blended moments by at most `_PART_STEP`."""
    mean, square = _leaned(cell, mean, square)
    room = (_PART_STEP - 1.0) * (cell.weight + SHRINK) + _PART_STEP
    return min(mean * room, sqrt(square * room))


class _Lengths:
    __slots__ = ("histogram", "moments", "parts")

    def __init__(self) -> None:
        self.moments, self.histogram = RunningMoments(FADE_LENGTHS), LogHistogram(FADE_LENGTHS)
        self.parts = self.moments, self.histogram


_UNSEEN = _Lengths()  # never added to


class _Latencies:
    __slots__ = ("tpot", "ttft")

    def __init__(self) -> None:
        self.ttft, self.tpot = RunningMoments(FADE_LATENCIES), RunningMoments(FADE_LATENCIES)


def _lognormal(moments: RunningMoments | None, prior_sigma: float) -> tuple[float | None, float]:
    if moments is None or not moments.weight:
        return None, prior_sigma
    variance = max(0.0, moments.square - moments.mean * moments.mean)
    return exp(moments.mean), sqrt(moments.lean(variance, prior_sigma * prior_sigma))
