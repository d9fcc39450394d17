"""What the workers learn of each API; each writes its own rows of the board, all are read.

Exponentially weighted moments of log-latency (a lognormal's parameters), failures in a row with a
back-off that grows, and the provider's own rate-limit headers. What is left of a limit is the
least that any worker was told, less what is out and unanswered; it is void when the limit starts
over, so that a limit that was spent never stays closed.
"""

import math

from backends.ratelimit import Allowance, RateLimit
from gateway.clock import Clock
from gateway.slots import Board, Seen
from router.types import ApiState

GAIN = 0.05  # an observation's weight once a few have been seen
CIRCUIT_FAILURES = 5  # in a row, as Envoy's outlier detection ejects
BACK_OFF_S = 5.0  # first silence after the circuit opened; doubles per further failure
BACK_OFF_LIMIT_S = 60.0
RESET_S = 10.0  # where the provider does not say when its limit starts over
RESET_LIMIT_S = 60.0  # beyond it a request now and then asks again

# A limit's cells, from `REQUESTS_LEFT` or `TOKENS_LEFT` on.
_SAID_S, _REFILL_PER_S, _UNTIL_S, _OUT = range(1, 5)


class Experience:
    def __init__(self, board: Board, worker: int, clock: Clock) -> None:
        self._board = board
        self._worker = worker
        self._clock = clock

    def api(self, row: int, *, ttft_s: float | None, tpot_s: float | None, ok: bool) -> None:
        """One attempt ended; latencies are None when it produced no token."""
        cells, base = self._board.cells, self._board.seen_row(self._worker, row)
        if not ok:
            failures = cells[base + Seen.FAILURES_IN_A_ROW] + 1
            cells[base + Seen.FAILURES_IN_A_ROW] = failures
            if failures >= CIRCUIT_FAILURES:
                wait = min(BACK_OFF_S * 2 ** (failures - CIRCUIT_FAILURES), BACK_OFF_LIMIT_S)
                cells[base + Seen.RETRY_AT_S] = self._clock.now_s() + wait
            return
        cells[base + Seen.FAILURES_IN_A_ROW] = 0.0
        if ttft_s is None:
            return
        count = cells[base + Seen.OBSERVATIONS]
        gain = max(GAIN, 1.0 / (count + 1))
        self._fold(base + Seen.LN_TTFT_MEAN, base + Seen.LN_TTFT_VAR, ttft_s, gain)
        if tpot_s is not None:
            self._fold(base + Seen.LN_TPOT_MEAN, base + Seen.LN_TPOT_VAR, tpot_s, gain)
        cells[base + Seen.OBSERVATIONS] = count + 1

    def wait(self, row: int, retry_after_s: float) -> None:
        """The target asked for silence (`Retry-After`): honoured by every worker."""
        base = self._board.seen_row(self._worker, row)
        until = self._clock.now_s() + min(retry_after_s, BACK_OFF_LIMIT_S)
        self._board.cells[base + Seen.RETRY_AT_S] = until

    def depart(self, row: int, tokens: int) -> "Passage":
        """A request leaves for an API; `tokens` is what the provider will count for it."""
        return Passage(self._board, self._board.seen_row(self._worker, row), tokens)

    def room(self, row: int, said: RateLimit) -> None:
        """What the provider's rate-limit headers said.

        Models that share a row (`provider/*`) have limits of their own: of those nothing is kept.
        """
        if self._board.layout.apis[row].endswith("/*"):
            return
        base = self._board.seen_row(self._worker, row)
        self._said(base + Seen.REQUESTS_LEFT, said.requests)
        self._said(base + Seen.TOKENS_LEFT, said.tokens)

    def _said(self, first: int, said: Allowance) -> None:
        """Answers overtake each other: until the limit starts over, the least that was told holds.

        Nothing is lost by it where a limit refills: what was told grows as the limit does.
        """
        if said.left is None:
            return
        cells, now_s = self._board.cells, self._clock.now_s()
        known = _left(self._board, first, now_s)
        if known is not None and known < said.left:
            return
        reset_s = RESET_S if said.reset_s is None else min(said.reset_s, RESET_LIMIT_S)
        cells[first + _SAID_S] = now_s
        cells[first + _REFILL_PER_S] = said.refill_per_s
        cells[first + _UNTIL_S] = now_s + reset_s
        cells[first] = said.left + 1.0

    def _fold(self, mean_cell: int, variance_cell: int, seconds: float, gain: float) -> None:
        cells = self._board.cells
        value = math.log(max(seconds, 1e-6))
        delta = value - cells[mean_cell]
        cells[mean_cell] += gain * delta
        cells[variance_cell] = (1 - gain) * (cells[variance_cell] + gain * delta * delta)


class Passage:
    """One request at an API until the head of its answer: it counts against what is left."""

    __slots__ = ("_board", "_landed", "_row", "_tokens")

    def __init__(self, board: Board, row: int, tokens: int) -> None:
        self._board, self._row, self._tokens, self._landed = board, row, tokens, False
        board.cells[row + Seen.REQUESTS_OUT] += 1.0
        board.cells[row + Seen.TOKENS_OUT] += tokens

    def land(self) -> None:
        """The answer's head told what is left, or there is none; idempotent."""
        if not self._landed:
            self._landed = True
            self._board.cells[self._row + Seen.REQUESTS_OUT] -= 1.0
            self._board.cells[self._row + Seen.TOKENS_OUT] -= self._tokens


def api_state(board: Board, row: int, now_s: float, *, needed_tokens: int = 0) -> ApiState:
    """One API as all workers know it, and when there is room again for a request of this size."""
    seen = board.experience(row)
    count = int(seen[Seen.OBSERVATIONS])
    paced = seen[Seen.LN_TPOT_MEAN] != 0.0  # answers that were not streamed have no pace
    requests, requests_wait_s = _room(board, row, Seen.REQUESTS_LEFT, 1, now_s)
    tokens, tokens_wait_s = _room(board, row, Seen.TOKENS_LEFT, needed_tokens, now_s)
    silence_s = seen[Seen.RETRY_AT_S] - now_s
    return ApiState(
        ttft_median_ms=1000 * math.exp(seen[Seen.LN_TTFT_MEAN]) if count else None,
        ttft_sigma=math.sqrt(seen[Seen.LN_TTFT_VAR]) if count > 1 else 0.35,
        tpot_median_ms=1000 * math.exp(seen[Seen.LN_TPOT_MEAN]) if paced else None,
        tpot_sigma=math.sqrt(seen[Seen.LN_TPOT_VAR]) if paced and count > 1 else 0.30,
        observations=count,
        circuit_open=silence_s > 0.0,
        requests_left=requests,
        tokens_left=tokens,
        retry_after_s=max(0.0, silence_s, requests_wait_s, tokens_wait_s),
    )


def _room(
    board: Board, row: int, field: Seen, needed: int, now_s: float
) -> tuple[int | None, float]:
    """(what is left for all workers together, seconds until `needed` is)."""
    cells = board.cells
    firsts = [board.seen_row(worker, row) + field for worker in range(board.layout.workers)]
    told = [(left, at) for at in firsts if (left := _left(board, at, now_s)) is not None]
    if not told:
        return None, 0.0
    least, at = min(told)
    least -= sum(cells[first + _OUT] for first in firsts)
    wait_s, refill_per_s = 0.0, cells[at + _REFILL_PER_S]
    if least < needed:
        wait_s = cells[at + _UNTIL_S] - now_s
        if refill_per_s > 0.0:
            wait_s = min(wait_s, (needed - least) / refill_per_s)
    return max(0, int(least)), wait_s


def _left(board: Board, first: int, now_s: float) -> float | None:
    """What one worker was told, and what came back since; `None`: not said, or void."""
    left, said_s, refill_per_s, until_s = board.cells[first : first + _OUT].tolist()
    if not left or now_s >= until_s:
        return None
    grown: float = left - 1.0 + refill_per_s * max(0.0, now_s - said_s)
    return grown
