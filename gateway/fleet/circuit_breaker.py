"""When a target that failed is left alone, and how it is taken into service again.

Five failures in a row open an API's circuit for every worker, and the silence doubles with each
further one that was sent after it. After it one request at a time asks whether the target answers;
from its first answer on, twice as many may wait for theirs every half second. So nobody who
recovers meets at once all that piled up meanwhile.

Engines that fail although their metrics look well are left alone by the worker that saw it, those
that take requests and say nothing (`silence`) by all; both are asked again with one request at a
time, and how much they then get, their own load decides.
"""

from collections.abc import Sequence

from gateway.clock import Clock
from gateway.table_layout import ApiStatsCell, LoadCell

CIRCUIT_FAILURES = 5  # in a row, as Envoy's outlier detection ejects
BACK_OFF_S = 5.0  # first silence after the circuit opened; doubles per further failure
BACK_OFF_LIMIT_S = 60.0
DOUBLES_S = 0.5
RAMP_S = 10.0  # by then a million: no limit

# Plain numbers: members of an enumeration cost time as indices.
_OPENED_S, _ANSWERED_S, _OUT = (
    int(ApiStatsCell.OPENED_S),
    int(ApiStatsCell.ANSWERED_S),
    int(ApiStatsCell.REQUESTS_OUT),
)
_SEQUENCES, _WAITING = int(LoadCell.SEQUENCES), int(LoadCell.QUEUED_SEQUENCES)
_HEARD, _SILENT, _ASK_AT = int(LoadCell.HEARD_S), int(LoadCell.SILENT_S), int(LoadCell.ASK_AT_S)


def back_off_s(failures: float) -> float:
    """Return how long a target is left alone after so many failures in a row."""
    return min(BACK_OFF_S * 2 ** (failures - CIRCUIT_FAILURES), BACK_OFF_LIMIT_S)


def is_warming(seen: Sequence[Sequence[float]], now_s: float) -> bool:
    """Whether an API whose silence is over has as many requests out as it may have."""
    limit = warming_limit(seen, now_s)
    return limit is not None and sum([cells[_OUT] for cells in seen]) >= limit


def warming_limit(seen: Sequence[Sequence[float]], now_s: float) -> float | None:
    """Return how many requests an API whose silence is over may have out; None: as many as come."""
    for cells in seen:
        if cells[_OPENED_S]:
            break
    else:  # the usual case, looked at for every candidate of every request
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
    """Whether nothing was heard since it was found so; then one at a time asks (`silence`)."""
    silent_s = loads[_SILENT]
    if silent_s <= loads[_HEARD]:  # the usual case: 0, and something was heard
        return False
    return now_s < loads[_ASK_AT] or loads[_WAITING] > 0.0


class EngineCircuits:
    """One worker's failures with own engines, by their rows."""

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
            return  # it was on its way when the engine was first left alone
        self._failures[row] = failures
        if failures >= CIRCUIT_FAILURES:
            self._until_s[row] = now_s + back_off_s(failures)

    def is_shunned(self, row: int, loads: Sequence[float], now_s: float) -> bool:
        """Return whether a target is avoided: silent, its circuit open, or on its one trial."""
        if is_silent(loads, now_s):
            return True
        if self._failures.get(row, 0) < CIRCUIT_FAILURES:
            return False
        return now_s < self._until_s[row] or loads[_SEQUENCES] > 0.0
