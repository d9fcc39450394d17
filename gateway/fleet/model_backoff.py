"""Backoff of single models of a provider that no configuration names.

These models share one row of the shared load table (`provider/*`), because clients may send any
number of names. Availability, failures and latency belong to the provider and are shared. Rate
limits are per model (OpenAI, Anthropic; Azure per deployment), so a 429 pauses only its model, in
all workers. The pause is as long as the response says; after five 429s in a row, at least as long
as a circuit's. Each worker has `HELD_OFF` entries per row; a full table replaces the one that ends
first.
"""

from dataclasses import replace
from hashlib import blake2b

from backends.errors import BackendError
from backends.ratelimit import Allowance
from gateway.clock import Clock
from gateway.fleet.circuit_breaker import BACK_OFF_LIMIT_S, CIRCUIT_FAILURES, back_off_s
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import HELD_OFF, BackoffCell
from router.types import ApiState

LIMITED = 429
_CELLS, _UNTIL_S, _REFUSALS = len(BackoffCell), int(BackoffCell.UNTIL_S), int(BackoffCell.REFUSALS)


class ModelBackoff:
    """Model backoffs of one worker, which writes only its own cells."""

    def __init__(self, board: SharedLoadTable, worker: int, clock: Clock) -> None:
        self._board, self._worker, self._clock = board, worker, clock

    def record_refusal(self, row: int, model: str, error: BackendError) -> None:
        """Record a 429 of the provider for this model."""
        cells, now_s = self._board.cells, self._clock.now_s()
        place = self._cell_of(row, model)
        if place is None:
            place = self._claim_cell(row, model)
        wait_s = min(stated_delay_s(error), BACK_OFF_LIMIT_S)
        if now_s >= cells[place + _UNTIL_S]:  # else sent before the pause: not counted
            refusals = cells[place + _REFUSALS] = cells[place + _REFUSALS] + 1.0
            if refusals >= CIRCUIT_FAILURES:
                wait_s = max(wait_s, back_off_s(refusals))
        cells[place + _UNTIL_S] = max(cells[place + _UNTIL_S], now_s + wait_s)

    def record_answer(self, row: int, model: str) -> None:
        """Reset the count of 429s in a row after another response."""
        place = self._cell_of(row, model)
        if place is not None:
            self._board.cells[place + _REFUSALS] = 0.0

    def _cell_of(self, row: int, model: str) -> int | None:
        first, number = self._board.held_row(self._worker, row), number_of(model)
        for place in range(first, first + HELD_OFF * _CELLS, _CELLS):
            if self._board.cells[place] == number:
                return place
        return None

    def _claim_cell(self, row: int, model: str) -> int:
        cells, first = self._board.cells, self._board.held_row(self._worker, row)
        places = range(first, first + HELD_OFF * _CELLS, _CELLS)
        place = min(places, key=lambda place: cells[place + _UNTIL_S])
        cells[place + _UNTIL_S] = cells[place + _REFUSALS] = 0.0
        cells[place] = number_of(model)
        return place


def held_off_s(board: SharedLoadTable, row: int, model: str, now_s: float) -> float:
    """Return how many more seconds any worker pauses this model; 0: not paused."""
    number, until_s = number_of(model), now_s
    for cells in board.backoff_cells(row):
        models = cells[::_CELLS]
        if number in models:
            until_s = max(until_s, cells[models.index(number) * _CELLS + _UNTIL_S])
    return until_s - now_s


def with_held_off(state: ApiState, wait_s: float) -> ApiState:
    """Return the provider's state with no requests left for a paused model."""
    return replace(state, requests_left=0, retry_after_s=max(state.retry_after_s, wait_s))


def stated_delay_s(error: BackendError) -> float:
    """Return the seconds of `Retry-After`, or until an exhausted limit resets; 0: unknown."""
    if error.retry_after_s:
        return error.retry_after_s
    limit = error.rate_limit
    return 0.0 if limit is None else max(_spent_s(limit.requests), _spent_s(limit.tokens))


def _spent_s(said: Allowance) -> float:
    return (said.reset_s or 0.0) if said.left == 0 else 0.0


def number_of(model: str) -> float:
    """Return a 48-bit hash of a model's name as an exact float; never 0."""
    return float(int.from_bytes(blake2b(model.encode(), digest_size=6).digest()) | 1 << 48)
