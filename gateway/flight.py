"""One attempt in the air: its promises on the board, kept in step with its own events.

`land` gives back exactly what was taken, whatever happened in between, and is idempotent: an
attempt that ends in any way leaves no promise behind.
"""

from gateway.plan import Plan, Step
from gateway.slots import Board, Load
from router.forecast import kv_promise_tokens, work_of


class Flights:
    """Takes off flights on this worker's rows."""

    def __init__(self, board: Board, worker: int) -> None:
        self._board = board
        self._worker = worker

    def take_off(self, plan: Plan, step: Step) -> "Flight | None":
        """The promises of one attempt; APIs have none."""
        candidate = step.frozen.candidate
        if candidate.engine is None:
            return None
        work = work_of(plan.request, plan.policy)
        return Flight(
            self._board,
            self._board.load_row(self._worker, step.frozen.target.row),
            prompt_tokens=plan.request.prompt_tokens * plan.request.n,
            promised_tokens=kv_promise_tokens(work, candidate, candidate.engine),
            sequences=plan.request.n,
        )


class Flight:
    """Dead reckoning of one attempt on one own engine; `row` is this worker's load row."""

    __slots__ = ("_board", "_context", "_landed", "_promised", "_prompt", "_row", "_sequences")

    def __init__(
        self, board: Board, row: int, *, prompt_tokens: int, promised_tokens: int, sequences: int
    ) -> None:
        self._board = board
        self._row = row
        self._prompt = prompt_tokens
        self._promised = promised_tokens
        self._sequences = sequences
        self._context = 0
        self._landed = False
        cells = board.cells
        cells[row + Load.SEQUENCES] += sequences
        cells[row + Load.QUEUED_PREFILL_TOKENS] += prompt_tokens
        cells[row + Load.PROMISED_TOKENS] += promised_tokens

    def first_token(self) -> None:
        """The prompt is in the cache; the sequence decodes."""
        if self._context or self._landed:
            return
        cells = self._board.cells
        cells[self._row + Load.QUEUED_PREFILL_TOKENS] -= self._prompt
        cells[self._row + Load.CONTEXT_TOKENS] += self._prompt
        cells[self._row + Load.PREFILLED_TOKENS_TOTAL] += self._prompt
        self._context = self._prompt

    def grew(self, tokens: int) -> None:
        """The sequence holds this many more tokens."""
        if self._context and not self._landed:
            self._board.cells[self._row + Load.CONTEXT_TOKENS] += tokens
            self._context += tokens

    def stepped(self, *, observed_s: float, predicted_s: float) -> None:
        """Feed the step feedback: what these steps took and what the model said."""
        self._board.cells[self._row + Load.OBSERVED_STEP_S_TOTAL] += observed_s
        self._board.cells[self._row + Load.PREDICTED_STEP_S_TOTAL] += predicted_s

    def land(self) -> None:
        if self._landed:
            return
        self._landed = True
        cells = self._board.cells
        cells[self._row + Load.SEQUENCES] -= self._sequences
        cells[self._row + Load.PROMISED_TOKENS] -= self._promised
        if self._context:
            cells[self._row + Load.CONTEXT_TOKENS] -= self._context
        else:
            cells[self._row + Load.QUEUED_PREFILL_TOKENS] -= self._prompt
