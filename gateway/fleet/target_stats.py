"""Statistics of targets: each worker writes its own rows, and all rows are read.

They hold exponentially weighted moments of log-latency (parameters of a lognormal), failures in a
row with a growing backoff, and the provider's rate-limit headers. The remaining limit is the
minimum that any worker was told, less open requests; it expires when the limit resets, so that a
used-up limit cannot block for ever. A circuit that one worker opens is open for all. Failures in a
row, and the keys that may have caused them, are counted per worker: the first worker with
`CIRCUIT_FAILURES` opens the circuit, and one key alone cannot.
"""

import logging
import math
from collections.abc import Sequence

from backends.ratelimit import Allowance, RateLimitHeaders
from gateway.clock import Clock
from gateway.fleet.circuit_breaker import (
    BACK_OFF_LIMIT_S,
    CIRCUIT_FAILURES,
    EngineCircuits,
    back_off_s,
    is_warming,
)
from gateway.fleet.model_backoff import ModelBackoff
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import ApiStatsCell
from router.estimator_rules import LATENCY_HALF_LIFE_S, LATENCY_STEP, Estimator, share_left
from router.types import ApiState, TargetHealth

log = logging.getLogger("breakeven.targets")

GAIN = 0.05  # minimum weight of an observation
DEVIATIONS = 3.0  # maximum deviation of one observation; larger ones are clamped
LEAST_SIGMA = 0.35  # minimum for that clamp
# Assumed for an unknown target.
PRIOR_TTFT_SIGMA, PRIOR_TPOT_SIGMA = ApiState().ttft_sigma, ApiState().tpot_sigma
FULL = 1000.0  # maximum observations from which fading starts
RESET_S = 10.0  # if the provider does not report the reset of its limit
RESET_LIMIT_S = 60.0  # maximum, after which requests probe the limit again

# Cells of a limit, relative to `REQUESTS_LEFT` or `TOKENS_LEFT`.
_SAID_S, _REFILL_PER_S, _UNTIL_S, _OUT = range(1, 5)
# Plain integers are faster as indices than members of an enumeration.
_REQUESTS, _TOKENS = int(ApiStatsCell.REQUESTS_LEFT), int(ApiStatsCell.TOKENS_LEFT)
_OPENED_S = int(ApiStatsCell.OPENED_S)
_RETRY_AT_S, MOMENTS = int(ApiStatsCell.RETRY_AT_S), int(ApiStatsCell.LN_TPOT_VAR) + 1

_TTFT_VAR, _TPOT_VAR = int(ApiStatsCell.LN_TTFT_VAR), int(ApiStatsCell.LN_TPOT_VAR)

_ONE_SECOND = 1e-12  # stands for log(1 s) = 0, because 0 means that nothing was observed
_STEP = math.log(LATENCY_STEP)

Latencies = tuple[float | None, float, float | None, float, int]
"""As `ApiState` has them: TTFT in ms and its sigma, TPOT and its sigma, observations."""


class TargetStats:
    def __init__(self, board: SharedLoadTable, worker: int, clock: Clock) -> None:
        self._board = board
        self._worker = worker
        self._clock = clock
        self._suspects: dict[int, set[str]] = {}  # by API: keys of the failures in a row
        self._doubts: dict[int, set[str]] = {}  # by engine
        self.engines = EngineCircuits(clock)
        self.held_off = ModelBackoff(board, worker, clock)

    def api(
        self, row: int, *, ttft_s: float | None, tpot_s: float | None, ok: bool,
        suspect: str | None = None,
    ) -> None:  # fmt: skip
        """Record the end of an attempt at an API; latencies are None without an output token.

        `suspect` is the key whose request may have caused the failure. Each key counts once in a
        row of failures, so that one key's invalid requests cannot open the circuit for others.
        """
        cells, base = self._board.cells, self._board.api_stats_row(self._worker, row)
        if not ok:
            if suspect is not None and not _counts(self._suspects, row, suspect):
                return
            failures, now_s = cells[base + ApiStatsCell.FAILURES_IN_A_ROW] + 1, self._clock.now_s()
            if failures > CIRCUIT_FAILURES and now_s < cells[base + ApiStatsCell.RETRY_AT_S]:
                return  # the request was sent before the circuit opened
            cells[base + ApiStatsCell.FAILURES_IN_A_ROW] = failures
            if failures >= CIRCUIT_FAILURES:
                cells[base + ApiStatsCell.RETRY_AT_S] = now_s + back_off_s(failures)
                cells[base + ApiStatsCell.OPENED_S] = now_s
            if failures == CIRCUIT_FAILURES:
                log.warning("circuit opened target=%s failures=%d", self._name(row), failures)
            return
        if cells[base + ApiStatsCell.FAILURES_IN_A_ROW] >= CIRCUIT_FAILURES:
            log.info("circuit closed target=%s", self._name(row))
        cells[base + ApiStatsCell.FAILURES_IN_A_ROW] = 0.0
        self._suspects.pop(row, None)
        if ttft_s is None:
            return
        count = cells[base + ApiStatsCell.OBSERVATIONS]
        gain = max(GAIN, 1.0 / (count + 1))
        self._fold(base + ApiStatsCell.LN_TTFT_MEAN, base + ApiStatsCell.LN_TTFT_VAR, ttft_s, gain)
        if tpot_s is not None:
            self._fold(
                base + ApiStatsCell.LN_TPOT_MEAN, base + ApiStatsCell.LN_TPOT_VAR, tpot_s, gain
            )
        cells[base + ApiStatsCell.OBSERVATIONS] = count + 1

    def _name(self, row: int) -> str:
        return self._board.layout.apis[row]

    def age(self, elapsed_s: float) -> None:
        """Reduce the weight of this worker's latencies by the elapsed time.

        New observations then count for more, and fully faded statistics become unknown.
        """
        kept = share_left(elapsed_s, LATENCY_HALF_LIFE_S)
        for row in range(len(self._board.layout.apis)):
            first = self._board.api_stats_row(self._worker, row)
            seen = self._board.cells[first : first + MOMENTS]
            if seen[0]:
                faded = faded_moments(seen.tolist(), kept)
                for cell, value in enumerate(faded):
                    seen[cell] = value
            seen.release()

    def forget(self, target: str | None) -> None:
        """Delete this worker's latencies of a target (None: of all); failures stay."""
        for row, name in enumerate(self._board.layout.apis):
            if target in (None, name):
                first = self._board.api_stats_row(self._worker, row)
                for cell in range(first, first + MOMENTS):
                    self._board.cells[cell] = 0.0

    def statistics(self) -> dict[tuple[Estimator, str], float]:
        """Return how many APIs have known latencies in any worker, and their range of medians."""
        apis = range(len(self._board.layout.apis))
        every = [latencies_of(self._board.api_stats(row)) for row in apis]
        medians = sorted(ttft_ms / 1e3 for ttft_ms, *_ in every if ttft_ms is not None)
        found = {(Estimator.API_LATENCY, "keys"): float(len(medians))}
        if medians:
            found[Estimator.API_LATENCY, "least"] = medians[0]
            found[Estimator.API_LATENCY, "most"] = medians[-1]
        return found

    def engine(self, row: int, *, ok: bool, suspect: str | None = None) -> None:
        """Record the end of an attempt at an own engine; `suspect` is used as in `api`."""
        if ok:
            self._doubts.pop(row, None)
        elif suspect is not None and not _counts(self._doubts, row, suspect):
            return
        self.engines.record_outcome(row, ok=ok)

    def discount_failures(self, row: int, suspect: str) -> None:
        """Remove the failure of a key's request that a similar engine answered."""
        self._doubts.get(row, set()).discard(suspect)

    def record_answer(self, row: int) -> None:
        """Record the head of an answer; the first one after a pause admits more requests."""
        board = self._board
        opened_s = max(board.api_cells(row, _OPENED_S))
        cell = board.api_stats_row(self._worker, row) + ApiStatsCell.ANSWERED_S
        if opened_s and board.cells[cell] <= opened_s:
            board.cells[cell] = self._clock.now_s()

    def record_retry_after(self, row: int, retry_after_s: float) -> None:
        """Pause a target in all workers for its `Retry-After`, in seconds.

        A shorter value that arrives later does not end a longer pause.
        """
        cell = self._board.api_stats_row(self._worker, row) + ApiStatsCell.RETRY_AT_S
        until_s = self._clock.now_s() + min(retry_after_s, BACK_OFF_LIMIT_S)
        self._board.cells[cell] = max(self._board.cells[cell], until_s)

    def begin_call(self, row: int, tokens: int) -> "ApiCall":
        """Count a request to an API as open; `tokens` is what the provider will count for it."""
        return ApiCall(self._board, self._board.api_stats_row(self._worker, row), tokens)

    def record_rate_limit(self, row: int, said: RateLimitHeaders) -> None:
        """Store the provider's rate-limit headers.

        Nothing is stored for models that share a row (`provider/*`), because each has its own
        limits.
        """
        if self._board.layout.apis[row].endswith("/*"):
            return
        base = self._board.api_stats_row(self._worker, row)
        self._store_allowance(base + ApiStatsCell.REQUESTS_LEFT, said.requests)
        self._store_allowance(base + ApiStatsCell.TOKENS_LEFT, said.tokens)

    def _store_allowance(self, first: int, said: Allowance) -> None:
        """Store a reported limit, unless a lower value is known.

        Responses may arrive out of order, so the minimum holds until the limit resets. A limit that
        refills continuously loses nothing, because the stored value grows at the same rate.
        """
        if said.left is None:
            return
        cells, now_s = self._board.cells, self._clock.now_s()
        known = _remaining_of(cells[first : first + _OUT].tolist(), now_s)
        if known is not None and known < said.left:
            return
        reset_s = RESET_S if said.reset_s is None else min(said.reset_s, RESET_LIMIT_S)
        cells[first + _SAID_S] = now_s
        cells[first + _REFILL_PER_S] = said.refill_per_s
        cells[first + _UNTIL_S] = now_s + reset_s
        cells[first] = said.left + 1.0

    def _fold(self, mean_cell: int, variance_cell: int, seconds: float, gain: float) -> None:
        cells = self._board.cells
        value, mean = math.log(max(seconds, 1e-6)), cells[mean_cell]
        if mean == 0.0:  # first observation; earlier unstreamed answers have no pace
            cells[mean_cell] = value or _ONE_SECOND
            return
        # Clamp outliers: one answer proves little, but repeated ones widen the variance.
        most = DEVIATIONS * max(math.sqrt(cells[variance_cell]), LEAST_SIGMA)
        most = min(most, _STEP / gain)
        delta = min(max(value - mean, -most), most)
        cells[mean_cell] = mean + gain * delta or _ONE_SECOND
        cells[variance_cell] = (1 - gain) * (cells[variance_cell] + gain * delta * delta)


class ApiCall:
    """Open request at an API until the head of its answer; reduces the remaining limit."""

    __slots__ = ("_board", "_landed", "_row", "_tokens")

    def __init__(self, board: SharedLoadTable, row: int, tokens: int) -> None:
        self._board, self._row, self._tokens, self._landed = board, row, tokens, False
        board.cells[row + ApiStatsCell.REQUESTS_OUT] += 1.0
        board.cells[row + ApiStatsCell.TOKENS_OUT] += tokens

    def release(self) -> None:
        """End the call when the answer's head came or the request failed; idempotent."""
        if not self._landed:
            self._landed = True
            self._board.cells[self._row + ApiStatsCell.REQUESTS_OUT] -= 1.0
            self._board.cells[self._row + ApiStatsCell.TOKENS_OUT] -= self._tokens


def latencies_of(seen: Sequence[Sequence[float]]) -> Latencies:
    """Return the latencies over all workers, from the first `MOMENTS` cells."""
    count, ttft_mean, ttft_var, tpot_mean, tpot_var = fold_moments(seen)
    paced = tpot_mean != 0.0  # unstreamed answers have no pace
    return (
        1000 * math.exp(ttft_mean) if count else None,
        math.sqrt(ttft_var) if count > 1 else PRIOR_TTFT_SIGMA,
        1000 * math.exp(tpot_mean) if paced else None,
        math.sqrt(tpot_var) if paced and count > 1 else PRIOR_TPOT_SIGMA,
        count,
    )


def state_of(
    seen: Sequence[Sequence[float]], latencies: Latencies, now_s: float, needed_tokens: int
) -> ApiState:
    """Return the state of an API over all workers, with the wait for a request of this size."""
    requests, requests_wait_s = _remaining_for(seen, _REQUESTS, 1, now_s)
    tokens, tokens_wait_s = _remaining_for(seen, _TOKENS, needed_tokens, now_s)
    silence_s = max([cells[_RETRY_AT_S] for cells in seen]) - now_s
    return ApiState(
        TargetHealth.HEALTHY,
        *latencies,
        silence_s > 0.0 or is_warming(seen, now_s),  # the circuit is open
        requests,
        tokens,
        max(0.0, silence_s, requests_wait_s, tokens_wait_s),
    )


def faded_moments(seen: Sequence[float], kept: float) -> list[float]:
    """Return one worker's moments of an API, with this share of their weight kept.

    The variances move towards the values assumed for an unknown target.
    """
    count = min(seen[0], FULL) * kept
    if count < 1.0:
        return [0.0] * MOMENTS
    faded = [count, *seen[1:]]
    for cell, prior in ((_TTFT_VAR, PRIOR_TTFT_SIGMA), (_TPOT_VAR, PRIOR_TPOT_SIGMA)):
        faded[cell] = prior**2 + kept * (seen[cell] - prior**2)
    return faded


def _counts(suspects: dict[int, set[str]], row: int, suspect: str) -> bool:
    """Return whether a failure counts: each key once, until many keys have failed."""
    seen = suspects.setdefault(row, set())
    if suspect in seen:
        return len(seen) >= CIRCUIT_FAILURES
    if len(seen) < CIRCUIT_FAILURES:
        seen.add(suspect)
    return True


def fold_moments(seen: Sequence[Sequence[float]]) -> tuple[int, float, float, float, float]:
    """Return (observations, means and variances of TTFT and TPOT) weighted over workers."""
    total = ttft_mean = ttft_var = tpot_mean = tpot_var = 0.0
    for cells in seen:
        count, value, two, three, four = cells[:MOMENTS]
        total += count
        ttft_mean += count * value
        ttft_var += count * two
        tpot_mean += count * three
        tpot_var += count * four
    if not total:
        return 0, 0.0, 0.0, 0.0, 0.0
    return int(total), ttft_mean / total, ttft_var / total, tpot_mean / total, tpot_var / total


def _remaining_for(
    seen: Sequence[Sequence[float]], first: int, needed: int, now_s: float
) -> tuple[int | None, float]:
    """Return (remaining limit over all workers, seconds until `needed` is available)."""
    least, told = math.inf, None
    for cells in seen:
        if cells[first]:
            left = _remaining_of(cells[first : first + _OUT], now_s)
            if left is not None and left < least:
                least, told = left, cells
    if told is None:
        return None, 0.0
    least -= sum(cells[first + _OUT] for cells in seen)
    wait_s, refill_per_s = 0.0, told[first + _REFILL_PER_S]
    if least < needed:
        wait_s = told[first + _UNTIL_S] - now_s
        if refill_per_s > 0.0:
            wait_s = min(wait_s, (needed - least) / refill_per_s)
    return max(0, int(least)), wait_s


def _remaining_of(said: Sequence[float], now_s: float) -> float | None:
    """Return the remaining limit that a worker was told plus its refill; `None` if unknown."""
    left, said_s, refill_per_s, until_s = said
    if not left or now_s >= until_s:
        return None
    return left - 1.0 + refill_per_s * max(0.0, now_s - said_s)
