"""What this worker learns of each API, written to its own rows of the board.

Exponentially weighted moments of log-latency (a lognormal's parameters), failures in a row with a
back-off that grows, and the provider's own rate-limit headers. Readers fold all workers' rows.
"""

import math

from gateway.clock import Clock
from gateway.slots import Board, Seen

GAIN = 0.05  # an observation's weight once a few have been seen
CIRCUIT_FAILURES = 5  # in a row, as Envoy's outlier detection ejects
BACK_OFF_S = 5.0  # first silence after the circuit opened; doubles per further failure
BACK_OFF_LIMIT_S = 60.0


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
        if count == 0:
            cells[base + Seen.REQUESTS_LEFT] = cells[base + Seen.TOKENS_LEFT] = -1.0
        cells[base + Seen.OBSERVATIONS] = count + 1

    def wait(self, row: int, retry_after_s: float) -> None:
        """The target asked for silence (`Retry-After`): honoured by every worker."""
        base = self._board.seen_row(self._worker, row)
        until = self._clock.now_s() + min(retry_after_s, BACK_OFF_LIMIT_S)
        self._board.cells[base + Seen.RETRY_AT_S] = until

    def room(self, row: int, *, requests_left: int | None, tokens_left: int | None) -> None:
        """What the provider's rate-limit headers said."""
        base = self._board.seen_row(self._worker, row)
        cells = self._board.cells
        cells[base + Seen.REQUESTS_LEFT] = -1.0 if requests_left is None else requests_left
        cells[base + Seen.TOKENS_LEFT] = -1.0 if tokens_left is None else tokens_left

    def _fold(self, mean_cell: int, variance_cell: int, seconds: float, gain: float) -> None:
        cells = self._board.cells
        value = math.log(max(seconds, 1e-6))
        delta = value - cells[mean_cell]
        cells[mean_cell] += gain * delta
        cells[variance_cell] = (1 - gain) * (cells[variance_cell] + gain * delta * delta)
