"""Load that attempts reserve on own engines, updated as tokens arrive.

`release` gives back exactly what was reserved, whatever happened in between, and is idempotent, so
an ended attempt leaves no load behind. A stream shows its progress, so its sequence is followed:
the tokens that it holds and may come to hold stand in a sequence cell.
"""

from collections.abc import Sequence
from operator import sub

import msgspec

from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.request.tightest_tpot import TightestTpot
from gateway.table_layout import RESIDENTS, LoadCell, SequenceCell
from router.deadlines import bearable_ms
from router.feedback import brief_pull, is_evidence, predicted_s, pull
from router.forecast import max_kv_tokens, work_of
from router.kv_peak import kv_rounded
from router.request_kinds import KIND_TRAITS
from router.types import EngineState, Slo, StepModel, Verdict

PIECE_S = 0.5  # interval in a stream: a slowing engine is seen before its answers end
COUNT_LIMIT = 2**31  # tokens; larger sums are not exact in a cell, and no engine holds them
# Plain integers: adding enum members costs twice as much.
_HELD, _FINAL = int(SequenceCell.HELD_TOKENS), int(SequenceCell.FINAL_TOKENS)
_HEARD, _PACE = int(SequenceCell.HEARD_S), int(SequenceCell.TOKENS_PER_S)
_SEQUENCES, _CONTEXT = int(LoadCell.SEQUENCES), int(LoadCell.CONTEXT_TOKENS)
_QUEUED, _PROMISED = int(LoadCell.QUEUED_PREFILL_TOKENS), int(LoadCell.PROMISED_TOKENS)
_WAITING, _MOVED = int(LoadCell.QUEUED_SEQUENCES), int(LoadCell.QUEUE_MOVED_S)
_SQUARES = int(LoadCell.QUEUED_SQUARES)
_EXPECTED, _TIGHTEST = int(LoadCell.PREFIX_EXPECTED_TOTAL), int(LoadCell.TIGHTEST_TPOT_MS)
_HEARD_S, _PREFILLED = int(LoadCell.HEARD_S), int(LoadCell.PREFILLED_TOKENS_TOTAL)
_SEQUENCE_S, _CONTEXT_S = int(LoadCell.SEQUENCE_S_LESS), int(LoadCell.CONTEXT_S_LESS)
_HITS = int(LoadCell.QUEUED_HIT_TOKENS)


class LoadTracker:
    """The reservations of one worker, in its rows of the shared load table."""

    def __init__(
        self, board: SharedLoadTable, worker: int, prefixes: PrefixIndex | None = None
    ) -> None:
        self._board = board
        self._worker = worker
        self._prefixes = prefixes
        self._places: dict[int, list[int]] = {}  # free cells, by engine
        self._tightest: dict[int, TightestTpot] = {}

    def reserve(
        self, plan: RoutingPlan, step: AttemptPlan, now_s: float
    ) -> "LoadReservation | None":
        """Reserve the load of an attempt sent at `now_s` (monotonic); APIs reserve none."""
        verdict, request = step.verdict, plan.request
        state = verdict.candidate.engine
        if state is None:
            return None
        prompt, output, slo = request.prompt_tokens, None, plan.policy.slo
        decoded = KIND_TRAITS[request.kind].decoded
        if plan.asked.stream and request.n == 1 and decoded:  # its sequence is followed
            longest = max_kv_tokens(work_of(request, plan.policy), verdict.candidate)
            output = longest - prompt
        promise = ReservedLoad(
            prompt * plan.asked.n,
            verdict.kv_promise_tokens,  # a candidate in the order always has a forecast
            request.n,
            output,
            state.kv_block_tokens,
            slo if plan.asked.stream else None,
            now_s,
            bearable_ms(slo.tpot_ms, state.step) if decoded and verdict.feasible else None,
            state.step,
            plan.asked.stream,
            max(0, min(_known_tokens(verdict, state, prompt), prompt - 1)) * plan.asked.n,
            best_effort=not verdict.feasible,
        )
        engine = step.frozen.target.row
        if request.beginning.marks and self._prefixes is not None:
            self._prefixes.record_sent(engine, request.beginning.marks, now_s)
            row = self._board.load_row(self._worker, engine)
            self._board.cells[row + _EXPECTED] += step.frozen.prefix_tokens
        places = self._places.get(engine)
        if places is None:
            places = self._places[engine] = list(range(RESIDENTS))
            row = self._board.load_row(self._worker, engine)
            self._tightest[engine] = TightestTpot(self._board.cells, row + _TIGHTEST)
        tightest = self._tightest[engine]
        flight = LoadReservation(self._board, self._worker, engine, promise, places, tightest)
        if request.beginning.marks and self._prefixes is not None:
            flight.prefix = self._prefixes, request.beginning.marks
        return flight

    def reserve_prompt(
        self, plan: RoutingPlan, row: int, state: EngineState, kv_tokens: int, now_s: float
    ) -> "LoadReservation":
        """Reserve the load of a prompt that this engine reads for another engine."""
        request, prompt = plan.request, plan.request.prompt_tokens
        hit = max(0, min(state.prefix_hit_tokens, prompt - 1))
        promise = ReservedLoad(
            prompt, kv_tokens, 1, None, state.kv_block_tokens, None, now_s, None, state.step,
            streamed=False, hit_tokens=hit,
        )  # fmt: skip
        if request.beginning.marks and self._prefixes is not None:
            self._prefixes.record_sent(row, request.beginning.marks, now_s)
            self._board.cells[self._board.load_row(self._worker, row) + _EXPECTED] += hit
        return LoadReservation(self._board, self._worker, row, promise)


class ReservedLoad(msgspec.Struct, frozen=True):
    """Load that an attempt reserves; `kv_tokens` is its final size in whole blocks.

    `output_tokens` is set for a single sequence whose progress is visible, `slo` where its first
    token is. `tpot_ms` is a promised TPOT that the engine was forecast to keep, and `step` the step
    model at dispatch. `streamed`: the answer does not come at once, so that it has a pace.
    `hit_tokens` of the prompt are expected in the prefix cache and need no prefill. `best_effort`:
    no engine was forecast to keep the SLO.
    """

    prompt_tokens: int
    kv_tokens: int
    sequences: int
    output_tokens: int | None = None
    block_tokens: int = 1
    slo: Slo | None = None
    sent_s: float = 0.0
    tpot_ms: float | None = None
    step: StepModel | None = None
    streamed: bool = True
    hit_tokens: int = 0
    best_effort: bool = False

    @property
    def read_tokens(self) -> int:
        return self.prompt_tokens - self.hit_tokens


class LoadReservation:
    """Estimated load of one attempt on one own engine; `engine` is its row in the table.

    Changes count from the last event. If an attempt ends without any, the sums over time do not
    include it.
    """

    __slots__ = (
        "_board",
        "_context",
        "_engine",
        "_felt_s",
        "_felt_steps",
        "_final",
        "_first",
        "_heard_s",
        "_is_kept",
        "_kv",
        "_landed",
        "_place",
        "_place_row",
        "_places",
        "_promise",
        "_row",
        "_start",
        "_tightest",
        "prefix",
    )

    def __init__(
        self,
        board: SharedLoadTable,
        worker: int,
        engine: int,
        promise: ReservedLoad,
        places: list[int] | None = None,
        tightest: TightestTpot | None = None,
    ) -> None:
        """Reserve the load; `places` are free sequence cells, one of which is used until then.

        The cell is returned to `places` on release.
        """
        self.prefix: tuple[PrefixIndex, Sequence[int]] | None = None  # index, marks of its prefix
        self._board = board
        self._engine = engine
        self._row = row = board.load_row(worker, engine)
        self._promise = promise
        self._kv = float(promise.kv_tokens)
        self._context = 0
        self._start: tuple[float, ...] | None = None  # time, and the engine's sums at that time
        self._landed = self._is_kept = False
        self._heard_s = promise.sent_s
        cells = board.cells
        cells[row + _SEQUENCES] += promise.sequences
        cells[row + _SEQUENCE_S] -= promise.sent_s * promise.sequences
        cells[row + _QUEUED] += promise.read_tokens
        cells[row + _SQUARES] += promise.read_tokens**2
        cells[row + _HITS] += promise.hit_tokens
        cells[row + _PROMISED] += promise.kv_tokens
        if not cells[row + _WAITING]:
            cells[row + _MOVED] = promise.sent_s
        cells[row + _WAITING] += 1.0
        self._tightest = tightest
        if tightest is not None and promise.tpot_ms is not None:
            tightest.add(promise.tpot_ms)
        self._places = places
        self._place: int | None = None
        self._place_row = 0
        self._final = 0
        self._first: tuple[float, int] | None = None  # time and output of the engine's first count
        self._felt_s = self._felt_steps = 0.0  # since then, already fed to the feedback
        if promise.output_tokens is not None:
            self._final = promise.prompt_tokens + promise.output_tokens
            if places:
                self._place = places.pop()
                self._place_row = board.resident_row(worker, engine, self._place)
                self._stands(promise.prompt_tokens, self._final)

    def first_token(self, now_s: float) -> None:
        """Record a token. The first ends the prefill: the sequence now decodes."""
        cells = self._board.cells
        cells[self._row + _HEARD_S] = self._heard_s = now_s
        if self._context or self._landed:
            return
        self._leave_queue()
        cells[self._row + _MOVED] = now_s
        cells[self._row + _PREFILLED] += self._promise.read_tokens
        self._hold(self._promise.prompt_tokens)
        if self._promise.streamed:
            self._start = self._sums_at(now_s)
        slo = self._promise.slo
        if slo is not None:
            waited_s = now_s - self._promise.sent_s
            self._judge(LoadCell.TTFT_PULL_TOTAL, waited_s, slo.ttft_ms, slo.attainment)

    def keep(self, now_s: float) -> None:
        """Record that the prompt is read and only its KV stays, for another engine."""
        if self._landed or self._is_kept:
            return
        self.first_token(now_s)
        self._hold(-self._context)
        cells, sequences = self._board.cells, self._promise.sequences
        cells[self._row + _SEQUENCES] -= sequences
        cells[self._row + _SEQUENCE_S] += self._heard_s * sequences
        self._is_kept = True

    def add_tokens(self, tokens: int) -> None:
        """Record that the sequence holds `tokens` more tokens."""
        if self._context and not self._landed:
            self._hold(tokens)

    def _hold(self, tokens: int) -> None:
        """Grow the context, as of the last event."""
        cells = self._board.cells
        cells[self._row + _CONTEXT] += tokens
        cells[self._row + _CONTEXT_S] -= self._heard_s * tokens
        self._context += tokens

    def set_counts(self, prompt_tokens: int, output_tokens: int, now_s: float) -> None:
        """Correct the reservation by the engine's own token counts.

        A sequence that outgrows its reservation gets one more block at a time. Counts above any
        engine's capacity are ignored: they would stay in the table after the release.
        """
        promise = self._promise
        if not (0 < prompt_tokens <= COUNT_LIMIT and 0 <= output_tokens <= COUNT_LIMIT):
            return
        if not self._context or self._landed or promise.output_tokens is None:
            return
        self._heard_s = now_s
        held, block = prompt_tokens + output_tokens, promise.block_tokens
        final = prompt_tokens + promise.output_tokens
        if held > final:
            final = held + block
        self.add_tokens(held - self._context)
        if final != self._final:
            change = kv_rounded(final, block) - kv_rounded(self._final, block)
            self._board.cells[self._row + _PROMISED] += change
            self._kv += change
            self._final = final
        if self._first is None:
            self._first = (now_s, output_tokens)
        elapsed_s, steps = now_s - self._first[0], output_tokens - self._first[1]
        if promise.step is not None and elapsed_s - self._felt_s >= PIECE_S:
            self._feel(promise.step, elapsed_s, steps)
        if elapsed_s > 0.0:
            self._stands(held, final, now_s, steps / elapsed_s)
        else:
            self._stands(held, final)

    def record_pace(self, model: StepModel, *, observed_s: float, steps: float) -> None:
        """Record the final pace, `steps` in `observed_s` seconds, and judge it by the SLO.

        The part that the step feedback does not have yet is fed to it.
        """
        if self._start is None or steps <= 0 or observed_s <= 0:
            return
        self._feel(model, observed_s, steps)
        slo = self._promise.slo
        if slo is not None:
            self._judge(LoadCell.TPOT_PULL_TOTAL, observed_s / steps, slo.tpot_ms, slo.attainment)
            if slo.tpot_ms is None:
                return
            kept = 1000.0 * observed_s / steps <= slo.tpot_ms
            if self._is_evidence(kept=kept):
                pulled = brief_pull(kept=kept, attainment=slo.attainment, steps=steps)
                self._board.cells[self._row + LoadCell.BRIEF_PULL_TOTAL] += pulled

    def _feel(self, model: StepModel, until_s: float, until_steps: float) -> None:
        """Feed the step feedback: the time of the latest steps, and the model's prediction.

        Both arguments count from the first token. The load is the mean over the time in between.
        The mean of both ends would be too low: decoding begins when the attempt's own prompt has
        just been read, and ends when those of others have been. Sums of a worker that died are
        lost.
        """
        observed_s, steps = until_s - self._felt_s, until_steps - self._felt_steps
        if self._start is None or steps <= 0.0 or observed_s <= 0.0:
            return
        self._felt_s, self._felt_steps = until_s, until_steps
        began = self._start
        self._start = self._sums_at(began[0] + observed_s)
        _, sequence_s, context_s, prefilled = map(sub, self._start, began)
        cells = self._board.cells
        cells[self._row + LoadCell.OBSERVED_STEP_S_TOTAL] += observed_s
        cells[self._row + LoadCell.PREDICTED_STEP_S_TOTAL] += predicted_s(
            model,
            steps=steps,
            sequences=max(0.0, sequence_s / observed_s),
            context=max(0.0, context_s / observed_s),
            prefilled=prefilled,
        )

    def _sums_at(self, at_s: float) -> tuple[float, ...]:
        """Return `at_s`, time integrals of the engine's sequences and context, and read tokens."""
        loads = self._board.loads(self._engine)
        sequence_s = at_s * loads[_SEQUENCES] + loads[_SEQUENCE_S]
        context_s = at_s * loads[_CONTEXT] + loads[_CONTEXT_S]
        return at_s, sequence_s, context_s, loads[_PREFILLED]

    def _is_evidence(self, *, kept: bool) -> bool:
        return is_evidence(kept=kept, best_effort=self._promise.best_effort)

    def _judge(self, cell: LoadCell, took_s: float, limit_ms: float | None, share: float) -> None:
        """Compare a result with its SLO limit, and move the engine's correction factor.

        `share` is the SLO's attainment.
        """
        if limit_ms is None:
            return
        cells, row, kept = self._board.cells, self._row, 1000.0 * took_s <= limit_ms
        if not self._is_evidence(kept=kept):
            return
        cells[row + cell] += pull(kept=kept, attainment=share)
        cells[row + LoadCell.JUDGED_TOTAL] += 1.0
        cells[row + LoadCell.MISSED_TOTAL] += not kept

    def release(self) -> None:
        if self._landed:
            return
        self._landed = True
        cells = self._board.cells
        if self._is_kept:
            cells[self._row + _PROMISED] -= self._kv
            return
        cells[self._row + _SEQUENCES] -= self._promise.sequences
        cells[self._row + _SEQUENCE_S] += self._heard_s * self._promise.sequences
        cells[self._row + _PROMISED] -= self._kv
        if self._context:
            self._hold(-self._context)
            if self.prefix is not None:
                index, marks = self.prefix
                index.record_released(self._engine, marks, self._heard_s)
        else:
            self._leave_queue()
        if self._tightest is not None and self._promise.tpot_ms is not None:
            self._tightest.remove(self._promise.tpot_ms)
        if self._place is not None and self._places is not None:
            self._stands(0, 0)
            self._places.append(self._place)

    def _leave_queue(self) -> None:
        cells, read = self._board.cells, self._promise.read_tokens
        cells[self._row + _QUEUED] -= read
        cells[self._row + _SQUARES] -= read**2
        cells[self._row + _HITS] -= self._promise.hit_tokens
        cells[self._row + _WAITING] -= 1.0

    def _stands(self, held: int, final: int, heard_s: float = 0.0, pace: float = 0.0) -> None:
        """Write the sequence cell; a reader may see a new held count with an old final size."""
        if self._place is not None:
            cells, row = self._board.cells, self._place_row
            cells[row + _HELD] = held
            cells[row + _FINAL] = final
            cells[row + _PACE] = pace
            cells[row + _HEARD] = heard_s


def _known_tokens(verdict: Verdict, state: EngineState, prompt: int) -> int:
    """Return the prompt's tokens that need no prefill: cached, or read by another engine."""
    return state.prefix_hit_tokens if verdict.prefill is None else prompt - 1
