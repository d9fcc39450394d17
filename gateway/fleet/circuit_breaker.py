"""Circuit breaker of failing targets, and their gradual return to service.

Five failures in a row open an API's circuit for all workers. Each further failure of a request that
was sent after the pause doubles the pause. Then one request at a time probes the target. From its
first answer on, the number of requests that may wait doubles every half second, which protects a
recovering API from a burst. Own engines that fail despite good metrics are avoided by the worker
that saw it; silent engines (`silence`) are avoided by all workers. Both are probed with one request
at a time. After that, only their load limits their traffic.
"""

from collections.abc import Sequence

from gateway.clock import Clock
from gateway.table_layout import ApiStatsCell, LoadCell

CIRCUIT_FAILURES = 5  # in a row, the default of Envoy's outlier detection
BACK_OFF_S = 5.0  # first pause after the circuit opened; each further failure doubles it
BACK_OFF_LIMIT_S = 60.0
DOUBLES_S = 0.5
RAMP_S = 10.0  # the limit would be 2^20 by then, so it is dropped

# Plain integers are faster as indices than members of an enumeration.
_OPENED_S, _ANSWERED_S, _OUT = (
    int(ApiStatsCell.OPENED_S),
    int(ApiStatsCell.ANSWERED_S),
    int(ApiStatsCell.REQUESTS_OUT),
)
_SEQUENCES, _WAITING = int(LoadCell.SEQUENCES), int(LoadCell.QUEUED_SEQUENCES)
_HEARD, _SILENT, _ASK_AT = int(LoadCell.HEARD_S), int(LoadCell.SILENT_S), int(LoadCell.ASK_AT_S)


def back_off_s(failures: float) -> float:
    """Return the pause after this many failures in a row, in seconds."""
    return min(BACK_OFF_S * 2 ** (failures - CIRCUIT_FAILURES), BACK_OFF_LIMIT_S)


def is_warming(seen: Sequence[Sequence[float]], now_s: float) -> bool:
    """Return whether an API after its pause already has as many open requests as it may have."""
    limit = warming_limit(seen, now_s)
    return limit is not None and sum([cells[_OUT] for cells in seen]) >= limit


def warming_limit(seen: Sequence[Sequence[float]], now_s: float) -> float | None:
    """Return the maximum open requests of an API after its pause; None: no limit."""
    for cells in seen:
        if cells[_OPENED_S]:
            break
    else:  # the usual case, checked for every candidate of every request
        return None
    opened_s = max([cells[_OPENED_S] for cells in seen])
    again = [cells[_ANSWERED_S] for cells in seen if cells[_ANSWERED_S] > opened_s]
    limit = 1.0
    if again:
        answering_s = now_s - min(again)
        if answering_s > RAMP_S:
            return None
        limit = 2.0 ** (answering_s / DOUBLES_S)
    return limit


def is_silent(loads: Sequence[float], now_s: float) -> bool:
    """Return whether an engine was found silent and has not answered since.

    After `ASK_AT_S` this is False while no request waits, so that one request can probe the engine.
    """
    silent_s = loads[_SILENT]
    if silent_s <= loads[_HEARD]:  # the usual case: never silent, or an answer came since
        return False
    return now_s < loads[_ASK_AT] or loads[_WAITING] > 0.0


class EngineCircuits:
    """Failures of own engines in one worker, by row."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[int, int] = {}
        self._until_s: dict[int, float] = {}

    def record_outcome(self, row: int, *, ok: bool) -> None:
        if ok:
            self._failures.pop(row, None)
            return
        failures, now_s = self._failures.get(row, 0) + 1, self._clock.now_s()
        if failures > CIRCUIT_FAILURES and now_s < self._until_s[row]:
            return  # the request was sent before the circuit opened
        self._failures[row] = failures
        if failures >= CIRCUIT_FAILURES:
            self._until_s[row] = now_s + back_off_s(failures)

    def is_shunned(self, row: int, loads: Sequence[float], now_s: float) -> bool:
        """Return whether an engine is avoided: silent, circuit open, or busy with its probe."""
        if is_silent(loads, now_s):
            return True
        if self._failures.get(row, 0) < CIRCUIT_FAILURES:
            return False
        return now_s < self._until_s[row] or loads[_SEQUENCES] > 0.0
