"""One attempt in the air: its promises on the board, kept in step with its own events.

`land` gives back exactly what was taken, whatever happened in between, and is idempotent: an
attempt that ends in any way leaves no promise behind.
"""

from dataclasses import dataclass

from gateway.plan import Plan, Step
from gateway.slots import Board, Load
from router.forecast import kv_promise_tokens, work_of
from router.types import StepModel


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
        promise = Promise(
            prompt_tokens=plan.request.prompt_tokens * plan.asked.n,
            kv_tokens=kv_promise_tokens(work, candidate, candidate.engine),
            sequences=plan.request.n,
        )
        return Flight(self._board, self._worker, step.frozen.target.row, promise)


@dataclass(frozen=True, slots=True)
class Promise:
    """What an attempt may come to hold: `kv_tokens` is its block-rounded final size."""

    prompt_tokens: int
    kv_tokens: int
    sequences: int


class Flight:
    """Dead reckoning of one attempt on one own engine; `engine` is its row on the board."""

    __slots__ = ("_board", "_context", "_engine", "_landed", "_promise", "_row", "_start")

    def __init__(self, board: Board, worker: int, engine: int, promise: Promise) -> None:
        self._board = board
        self._engine = engine
        self._row = row = board.load_row(worker, engine)
        self._promise = promise
        self._context = 0
        self._start: list[float] | None = None  # the engine's loads at the first token
        self._landed = False
        cells = board.cells
        cells[row + Load.SEQUENCES] += promise.sequences
        cells[row + Load.QUEUED_PREFILL_TOKENS] += promise.prompt_tokens
        cells[row + Load.PROMISED_TOKENS] += promise.kv_tokens

    def first_token(self) -> None:
        """The prompt is in the cache; the sequence decodes."""
        if self._context or self._landed:
            return
        cells = self._board.cells
        cells[self._row + Load.QUEUED_PREFILL_TOKENS] -= self._promise.prompt_tokens
        cells[self._row + Load.CONTEXT_TOKENS] += self._promise.prompt_tokens
        cells[self._row + Load.PREFILLED_TOKENS_TOTAL] += self._promise.prompt_tokens
        self._context = self._promise.prompt_tokens
        self._start = self._board.loads(self._engine)

    def grew(self, tokens: int) -> None:
        """The sequence holds this many more tokens."""
        if self._context and not self._landed:
            self._board.cells[self._row + Load.CONTEXT_TOKENS] += tokens
            self._context += tokens

    def paced(self, model: StepModel, *, observed_s: float, steps: float) -> None:
        """Feed the step feedback: what `steps` steps took, and what the model says of them.

        The load while they ran is taken as the mean of the loads at their start and at their end.
        """
        if self._start is None or steps <= 0 or observed_s <= 0:
            return
        end = self._board.loads(self._engine)
        sequences = (self._start[Load.SEQUENCES] + end[Load.SEQUENCES]) / 2
        context = (self._start[Load.CONTEXT_TOKENS] + end[Load.CONTEXT_TOKENS]) / 2
        prefilled = end[Load.PREFILLED_TOKENS_TOTAL] - self._start[Load.PREFILLED_TOKENS_TOTAL]
        predicted_s = steps * (
            model.a_s + model.b_s * sequences + model.c_s * context
        ) + model.d_s * max(0.0, prefilled)
        self._board.cells[self._row + Load.OBSERVED_STEP_S_TOTAL] += observed_s
        self._board.cells[self._row + Load.PREDICTED_STEP_S_TOTAL] += predicted_s

    def land(self) -> None:
        if self._landed:
            return
        self._landed = True
        cells = self._board.cells
        cells[self._row + Load.SEQUENCES] -= self._promise.sequences
        cells[self._row + Load.PROMISED_TOKENS] -= self._promise.kv_tokens
        if self._context:
            cells[self._row + Load.CONTEXT_TOKENS] -= self._context
        else:
            cells[self._row + Load.QUEUED_PREFILL_TOKENS] -= self._promise.prompt_tokens
