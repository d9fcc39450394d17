"""What is learned from finished requests: output lengths, tokens per byte, API latency.

Each estimate starts from a prior, leans on the wider cell while its own has seen little, and is
bounded in memory. State is exported as plain tuples: restored after a restart, or folded together
from several processes (fold only what was not folded before, or it counts twice).
"""

from math import ceil, exp, inf, log, log2, sqrt

from router.moments import SHRINK, LogHistogram, RecencyCache, RunningMoments
from router.types import ApiState, OutputMoments

Key = tuple[str, ...]
LengthState = tuple[
    tuple[Key, int, tuple[float, float, float], tuple[tuple[int, float, float], ...]], ...
]
RatioState = tuple[tuple[Key, float, float, float, float], ...]
LatencyState = tuple[tuple[Key, tuple[float, float, float], tuple[float, float, float]], ...]

PRIOR_OUTPUT_TOKENS = 150.0  # mean before any observation: reference simulation, 2026-11-20
OUTPUTS_IN_BUCKET = 30  # from which a prompt-size bucket's own p95 is believed
FADE_LENGTHS = 2000.0
FADE_LATENCIES = 200.0
PRIOR_BYTES_PER_TOKEN = 4.0  # English prose in byte-pair vocabularies, until the model's is seen

_WHOLE = -1  # the bucket that stands for all prompt sizes of a key


class OutputLengths:
    """Output tokens by key, usually (team, model), and prompt size in 1.5 * log2 buckets."""

    def __init__(self, *, max_cells: int = 4096) -> None:
        self._cells: RecencyCache[tuple[Key, int], _Lengths] = RecencyCache(max_cells, _Lengths)

    def observe(
        self, key: Key, prompt_tokens: int, output_tokens: float, *, cut: bool = False
    ) -> None:
        """`cut`: a limit ended the answer, so it would have been longer."""
        for bucket in (prompt_bucket(prompt_tokens), _WHOLE):
            moments, histogram = self._cells.touch((key, bucket)).parts
            moments.add(output_tokens, output_tokens * output_tokens)
            histogram.add(output_tokens, cut=cut)

    def moments(self, key: Key, prompt_tokens: int) -> OutputMoments:
        """Mean and mean square lean on the key's; p95 is the longer one's until it is known."""
        whole, all_lengths = (self._cells.get((key, _WHOLE)) or _UNSEEN).parts
        cell, lengths = (self._cells.get((key, prompt_bucket(prompt_tokens))) or _UNSEEN).parts
        mean = cell.lean(cell.mean, whole.lean(whole.mean, PRIOR_OUTPUT_TOKENS))
        # an exponential distribution around the prior mean: its mean square is twice the square
        square = whole.lean(whole.square, 2.0 * PRIOR_OUTPUT_TOKENS**2)
        square = cell.lean(cell.square, square)
        known = lengths.weight >= OUTPUTS_IN_BUCKET
        p95 = lengths.p95() if known else max(lengths.p95(), all_lengths.p95())
        count = int((cell if known else whole).weight)
        return OutputMoments(count, mean, max(square, mean * mean), p95)

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


class TokenRatio:
    """Tokens of a text before it is tokenised, by key, usually (team, model).

    The bound rests on the tokenizer's worst factor, `least_bytes_per_token`: one token per byte
    for byte-level vocabularies, plus what a chat template adds. Where reality was worse, reality.
    """

    def __init__(
        self,
        *,
        least_bytes_per_token: float = 1.0,
        template_tokens: int = 64,
        max_keys: int = 4096,
    ) -> None:
        self._least = least_bytes_per_token
        self._template = template_tokens
        self._cells: RecencyCache[Key, _Ratio] = RecencyCache(max_keys, _Ratio)

    def observe(self, key: Key, size_bytes: int, tokens: int) -> None:
        if size_bytes > 0 and tokens > 0:
            beyond = max(1, tokens - self._template)
            self._cells.touch(key).add(1.0, size_bytes, tokens, size_bytes / beyond)

    def estimate(self, key: Key, size_bytes: int) -> tuple[int, int]:
        """(estimate, bound) in tokens; the estimate never exceeds the bound."""
        cell = self._cells.get(key) or _Ratio()
        share = cell.weight / (cell.weight + SHRINK)
        tokens_per_byte = (1.0 - share) / PRIOR_BYTES_PER_TOKEN
        if cell.size_bytes > 0.0:
            tokens_per_byte += share * cell.tokens / cell.size_bytes
        bound = ceil(size_bytes / min(self._least, cell.least)) + self._template
        return min(max(1, ceil(size_bytes * tokens_per_byte)), bound), bound

    def export(self) -> RatioState:
        return tuple(
            (key, cell.weight, cell.size_bytes, cell.tokens, cell.least)
            for key, cell in self._cells.items()
        )

    def fold(self, state: RatioState) -> None:
        for key, weight, size_bytes, tokens, least in state:
            self._cells.touch(tuple(key)).add(weight, size_bytes, tokens, least)


class LatencyTracker:
    """TTFT and TPOT of external targets, each a lognormal distribution."""

    def __init__(self, *, max_keys: int = 1024) -> None:
        self._cells: RecencyCache[Key, _Latencies] = RecencyCache(max_keys, _Latencies)

    def observe(self, key: Key, *, ttft_ms: float | None, tpot_ms: float | None) -> None:
        cell = self._cells.touch(key)
        for moments, latency in ((cell.ttft, ttft_ms), (cell.tpot, tpot_ms)):
            if latency is not None and 0.0 < latency < inf:
                moments.add(log(latency), log(latency) ** 2)

    def ttft(self, key: Key) -> tuple[float | None, float]:
        """(median in ms, sigma) as `ApiState` has them; no median before an observation."""
        cell = self._cells.get(key)
        return _lognormal(None if cell is None else cell.ttft, ApiState().ttft_sigma)

    def tpot(self, key: Key) -> tuple[float | None, float]:
        cell = self._cells.get(key)
        return _lognormal(None if cell is None else cell.tpot, ApiState().tpot_sigma)

    def observations(self, key: Key) -> int:
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


class _Ratio:
    """Sums of bytes and tokens, and the fewest bytes a token was seen to take."""

    __slots__ = ("least", "size_bytes", "tokens", "weight")

    def __init__(self) -> None:
        self.weight, self.size_bytes, self.tokens, self.least = 0.0, 0.0, 0.0, inf

    def add(self, weight: float, size_bytes: float, tokens: float, least: float) -> None:
        if self.weight >= FADE_LENGTHS:
            self.weight *= 0.5
            self.size_bytes *= 0.5
            self.tokens *= 0.5
        self.weight += weight
        self.size_bytes += size_bytes
        self.tokens += tokens
        self.least = min(self.least, least)


def _lognormal(moments: RunningMoments | None, prior_sigma: float) -> tuple[float | None, float]:
    if moments is None or not moments.weight:
        return None, prior_sigma
    variance = max(0.0, moments.square - moments.mean * moments.mean)
    return exp(moments.mean), sqrt(moments.lean(variance, prior_sigma * prior_sigma))
