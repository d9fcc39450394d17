"""One own engine in a replay: the simulated engine, and the gateway's knowledge of it.

The engine is that of `backends.simulator`. The knowledge is kept as in production: sums of the
gateway's own events (dispatch, first token, end), factors of `router.feedback` folded at intervals,
and the fitted step model, which may differ from the true one. `ReplayEngine.state` freezes it for a
decision; other workers' events may be delayed.
"""

from collections import Counter, deque
from dataclasses import dataclass, replace
from math import inf
from operator import sub
from typing import NamedTuple

from backends.simulator.model import SimulatedEngine
from backends.simulator.shape import EngineShape, KvHandover, SequenceEvent, SequenceEventKind
from backends.stepmodel import attended_tokens
from gateway.fleet.target_views import is_crowded
from gateway.whatif.traffic import Arrival
from router.deadlines import bearable_ms
from router.feedback import (
    FeedbackLoops,
    FeedbackSums,
    brief_pull,
    is_evidence,
    predicted_s,
    pull,
)
from router.recheck import PeerLoad
from router.types import EngineState, Slo, StepModel, TargetHealth


@dataclass(frozen=True, slots=True)
class EngineKnowledge:
    """The gateway's knowledge of its engines: error factors, and delays of events."""

    step_factor: float = 1.0  # on the believed step time; below 1 it is optimistic
    prefill_factor: float = 1.0  # additional, on the prefill part
    tick_s: float = 0.5  # between two folds of the loops
    workers: int = 1
    skew_s: float = 0.0  # delay of other workers' events; then choices are rechecked
    looks_again: bool = True
    loops: bool = True  # without them every factor stays as it began


@dataclass(slots=True)
class ReplayRequest:
    """One request in an engine; `promised` is its maximum size in whole blocks, in tokens.

    `hit_tokens` of its prompt are expected in the prefix cache: held, and not read. `is_read_only`:
    another engine answers it. `is_moved`: another engine reads its prompt. `best_effort`: no engine
    was forecast to keep its promise.
    """

    arrival: Arrival
    slo: Slo
    started_s: float
    promised: int
    final: int
    hit_tokens: int = 0
    is_read_only: bool = False
    is_moved: bool = False
    best_effort: bool = False
    first_s: float | None = None
    end_s: float | None = None
    loads: tuple[float, float] = (0.0, 0.0)  # integrals of the engine's load at its first token
    prefilled: float = 0.0
    attended: float = 0.0
    preemptions: int = 0
    worker: int = 0

    @property
    def read_tokens(self) -> int:
        return self.arrival.prompt_tokens - self.hit_tokens

    @property
    def latencies_s(self) -> tuple[float, float]:
        """Return TTFT and TPOT in seconds; TPOT is 0 for an answer of one token."""
        assert self.first_s is not None, "it has ended"
        assert self.end_s is not None, "it has ended"
        further = self.arrival.output_tokens - 1
        tpot_s = (self.end_s - self.first_s) / further if further > 0 else 0.0
        return self.first_s - self.started_s, tpot_s


class _Loads(NamedTuple):
    """Sums of all workers in the shared load table at one time."""

    at_s: float
    sequences: int
    context: float
    queued: int
    promised: int
    waiting: int  # prompts in the queue
    squares: int  # of the tokens of each, added up
    moved_s: float  # when the queue began, or its last prompt left it


class _LoadIntegrals:
    """Sequences and context of an engine, integrated over time.

    The mean of a request's start and end would be too low: it begins when its prompt has just been
    read, and ends when those of others have been.
    """

    __slots__ = ("_at_s", "_before", "_before_s", "_context", "_now")

    def __init__(self) -> None:
        self._before = self._now = (0.0, 0.0)
        self._before_s = self._at_s = self._context = 0.0

    def add(self, until_s: float, sequences: float, context: float) -> None:
        """Add the time until `until_s`, with mean sequences and the current context."""
        lasted_s = until_s - self._at_s
        if not 0.0 < lasted_s < inf:
            return
        self._before, self._before_s = self._now, self._at_s
        held = self._now[1] + lasted_s * 0.5 * (self._context + context)
        self._now, self._at_s = (self._now[0] + lasted_s * sequences, held), until_s
        self._context = context

    def at(self, at_s: float) -> tuple[float, float]:
        """Return both integrals at a time within the last interval."""
        lasted_s = self._at_s - self._before_s
        share = min(1.0, max(0.0, (at_s - self._before_s) / lasted_s)) if lasted_s else 1.0
        one, two = self._before, self._now
        return one[0] + share * (two[0] - one[0]), one[1] + share * (two[1] - one[1])


class ReplayEngine:
    def __init__(
        self,
        name: str,
        shape: EngineShape,
        knowledge: EngineKnowledge,
        *,
        reads_for_others: bool = False,
    ) -> None:
        self.name = name
        self.reads_for_others = reads_for_others
        self.shape = shape
        self.loops = FeedbackLoops()
        self.flights: dict[str, ReplayRequest] = {}
        self.engine = SimulatedEngine(shape)
        self._knowledge = knowledge
        step, factor = shape.step, knowledge.step_factor
        self.believed = StepModel(
            factor * step.a_s,
            factor * step.b_s,
            factor * step.c_s,
            factor * knowledge.prefill_factor * step.d_s,
            step.t0_s,
            factor * knowledge.prefill_factor * step.q_s,
        )
        self.fetched: list[tuple[str, float]] = []  # requests whose KV transfer ended, and when
        self._queued = self._hits = self._promised = self._waiting = self._squares = 0
        self._moved_s = 0.0
        self._observed = self._predicted = self._prefilled = self._attended = 0.0
        self._integrals = _LoadIntegrals()
        self._ttft_pull = self._tpot_pull = self._brief_pull = 0.0
        self._judged = self._missed = 0
        # at, worker, sequences, prompt tokens queued, tokens promised: only where news is late
        self._tpots: Counter[float] = Counter()  # promised to those that run
        self._news: deque[tuple[float, int, int, int, int]] = deque()

    @property
    def is_looked_at_again(self) -> bool:
        """Return whether choices are rechecked, because other workers' events are delayed."""
        return self._knowledge.skew_s > 0.0 and self._knowledge.looks_again

    def submit(self, name: str, flight: ReplayRequest, worker: int = 0) -> None:
        """Dispatch a request; the engine must have been advanced to this time."""
        arrival, at_s = flight.arrival, flight.started_s
        if not flight.is_moved:
            self._enter(name, flight, at_s, KvHandover(is_kept=flight.is_read_only))
        flight.worker = worker
        self.flights[name] = flight
        self._promise(flight, 1)
        if not self._waiting:
            self._moved_s = at_s
        flight.hit_tokens = min(flight.hit_tokens, arrival.prompt_tokens - 1)
        self._hits += flight.hit_tokens
        queued, held = flight.read_tokens, flight.promised
        self._change_load(at_s, worker, sequences=1, queued=queued, held=held)

    def receive(self, name: str, at_s: float, moving_s: float) -> bool:
        """Receive the KV of a read prompt; return false if its request was given up."""
        flight = self.flights.get(name)
        if flight is None:
            return False
        self._enter(name, flight, at_s, KvHandover(is_moved=True, moving_s=moving_s))
        return True

    def release(self, name: str, flight: ReplayRequest, at_s: float) -> None:
        """Free the KV that was kept of a prompt."""
        self.engine.free_kept(name)
        self._change_load(at_s, flight.worker, sequences=0, queued=0, held=-flight.promised)

    def _enter(self, name: str, flight: ReplayRequest, at_s: float, kv: KvHandover) -> None:
        arrival = flight.arrival
        self.engine.submit(
            name,
            at_s,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
            hashes=arrival.blocks(self.shape.block_tokens),
            kv=kv,
        )

    def advance(self, until_s: float) -> list[tuple[str, ReplayRequest]]:
        """Advance time and return the requests that ended."""
        ended: list[tuple[str, ReplayRequest]] = []
        before = float(len(self.flights))
        events = self.engine.advance(until_s)
        finished = sum(event.what is SequenceEventKind.FINISHED for event in events)
        self._integrals.add(until_s, 0.5 * (2.0 * before - finished), self.engine.context_tokens)
        for event in events:
            flight = self.flights[event.id]
            if event.what is SequenceEventKind.FIRST:
                self._first(flight, event.at_s)
                if flight.is_moved:
                    self.fetched.append((event.id, event.at_s))
            elif event.what is SequenceEventKind.FINISHED:
                ended.append((event.id, self._finish(flight, event)))
            elif event.what is SequenceEventKind.PREEMPTED:
                flight.preemptions += 1
        return ended

    def abort(self, name: str) -> ReplayRequest:
        """Abort a running request; it is not used as feedback."""
        flight = self.flights.pop(name)
        self._promise(flight, -1)
        self.engine.abort(name)
        queued = 0
        if flight.first_s is None:
            queued = flight.read_tokens
            self._hits -= flight.hit_tokens
        self._change_load(
            self.engine.now_s, flight.worker, sequences=-1, queued=-queued, held=-flight.promised
        )
        return flight

    def fold(self, now_s: float) -> None:
        """Fold the feedback, as telemetry does at every scrape."""
        if self._knowledge.loops:
            sums = FeedbackSums(
                self._observed, self._predicted, self._prefilled + self._queued,
                self._ttft_pull, self._tpot_pull, self._judged, self._missed,
                self._brief_pull,
            )  # fmt: skip
            self.loops.fold(sums, now_s)
        else:
            self.loops.fold(FeedbackSums(admitted_tokens=self._prefilled + self._queued), now_s)

    def skip_folds(self, folds: int, period_s: float) -> None:
        """Apply `folds` folds of the last sums: nothing runs in between."""
        self.loops.skip_folds(folds, period_s)

    def state(
        self, now_s: float, worker: int = 0, tightest_ttft_ms: float | None = None
    ) -> EngineState:
        """Return the engine's state as this worker knows it at this time."""
        seen = self._loads(now_s)
        if self._knowledge.skew_s:
            seen = self._stale_loads_of(worker, seen)
        shape, loops = self.shape, self.loops
        held = seen.context + seen.queued + self._hits
        state = EngineState(
            TargetHealth.HEALTHY, self.believed, seen.sequences, 0, seen.context, seen.queued,
            shape.kv_capacity_tokens, held, max(0.0, seen.promised - held), shape.block_tokens,
            shape.max_num_seqs, shape.prefill_budget_tokens, loops.step_feedback,
            loops.safety_ttft, loops.safety_tpot, loops.prefill_rate,
            tightest_ttft_ms, min(self._tpots, default=None),
            head_tokens=seen.squares / seen.queued if seen.queued else 0.0,
            head_since_s=now_s - seen.moved_s,
            queued_hit_tokens=float(self._hits), spare_misses=loops.spare_misses,
            spare_brief_misses=loops.spare_brief_misses,
        )  # fmt: skip
        return replace(state, residents=self._residents()) if is_crowded(state) else state

    def missed_load(self, flight: ReplayRequest) -> PeerLoad:
        """Return other workers' load at this request's dispatch that its worker did not know."""
        until_s = flight.started_s
        since_s = until_s - self._knowledge.skew_s
        late = [
            item for item in self._news if item[1] != flight.worker and since_s < item[0] <= until_s
        ]
        sequences, queued, held = (float(sum(pair[at] for pair in late)) for at in (2, 3, 4))
        return PeerLoad(sequences, 0.0, queued, held)  # decoding sequences are known at once

    def _promise(self, flight: ReplayRequest, count: int) -> None:
        """Add or remove a promised TPOT; a best effort has none that others must respect."""
        if flight.best_effort:
            return
        tpot_ms = bearable_ms(flight.slo.tpot_ms, self.believed)
        if tpot_ms is not None:
            self._tpots[tpot_ms] += count
            if not self._tpots[tpot_ms]:
                del self._tpots[tpot_ms]

    def _loads(self, now_s: float) -> _Loads:
        context = self.engine.context_tokens
        return _Loads(
            now_s, len(self.flights), context, self._queued, self._promised, self._waiting,
            self._squares, self._moved_s,
        )  # fmt: skip

    def _change_load(
        self, at_s: float, worker: int, *, sequences: int, queued: int, held: int
    ) -> None:
        """Change a worker's sums: `queued` prompt tokens, `held` promised tokens."""
        self._queued += queued
        self._promised += held
        self._waiting += (queued > 0) - (queued < 0)
        self._squares += queued * abs(queued)
        skew_s = self._knowledge.skew_s
        if skew_s:
            news = self._news
            news.append((at_s, worker, sequences, queued, held))
            while news[0][0] <= at_s - 2.0 * skew_s:  # a recheck needs events of this age
                news.popleft()

    def _stale_loads_of(self, worker: int, now: _Loads) -> _Loads:
        """Return the load without recent events of other workers; own events are known at once."""
        since_s = now.at_s - self._knowledge.skew_s
        late = [item for item in self._news if item[1] != worker and item[0] > since_s]
        queued = now.queued - sum(pair[3] for pair in late)
        waiting = now.waiting - sum((pair[3] > 0) - (pair[3] < 0) for pair in late)
        return now._replace(
            sequences=now.sequences - sum(pair[2] for pair in late),
            queued=max(0, queued),
            promised=now.promised - sum(pair[4] for pair in late),
            waiting=max(0, waiting),
            squares=max(0, now.squares - sum(pair[3] * abs(pair[3]) for pair in late)),
        )

    def _residents(self) -> tuple[tuple[float, float, float], ...]:
        """Return the decoding sequences; one beyond its promise counts one block more."""
        block, flights, found = self.shape.block_tokens, self.flights, []
        for name, held in self.engine.held_tokens():
            final = flights[name].final
            found.append((float(held), float(final if held <= final else held + block), 0.0))
        return tuple(found)

    def _first(self, flight: ReplayRequest, at_s: float) -> None:
        flight.first_s = at_s
        read = flight.read_tokens
        self._hits -= flight.hit_tokens
        self._change_load(at_s, flight.worker, sequences=0, queued=-read, held=0)
        self._moved_s = at_s
        self._prefilled += read
        self._attended += attended_tokens(flight.hit_tokens, read)
        flight.loads = self._integrals.at(at_s)
        flight.prefilled, flight.attended = self._prefilled, self._attended
        limit_ms = flight.slo.ttft_ms
        if limit_ms is not None:
            kept = 1000.0 * (at_s - flight.started_s) <= limit_ms
            if is_evidence(kept=kept, best_effort=flight.best_effort):
                self._ttft_pull += pull(kept=kept, attainment=flight.slo.attainment)
                self._judged += 1
                self._missed += not kept

    def _finish(self, flight: ReplayRequest, event: SequenceEvent) -> ReplayRequest:
        assert flight.first_s is not None, "nothing ends before its first token"
        flight.end_s = event.at_s
        steps = flight.arrival.output_tokens - 1
        if steps > 0:
            self._observe_decode(flight, event.at_s - flight.first_s, steps)
        del self.flights[event.id]
        self._promise(flight, -1)
        held = 0 if flight.is_read_only else -flight.promised  # kept for the engine that answers
        self._change_load(event.at_s, flight.worker, sequences=-1, queued=0, held=held)
        return flight

    def _observe_decode(self, flight: ReplayRequest, observed_s: float, steps: int) -> None:
        assert flight.end_s is not None, "it has just ended"
        sequences, context = map(sub, self._integrals.at(flight.end_s), flight.loads)
        self._observed += observed_s
        self._predicted += predicted_s(
            self.believed,
            steps=steps,
            sequences=sequences / observed_s,
            context=context / observed_s,
            prefilled=self._prefilled - flight.prefilled,
            attended=self._attended - flight.attended,
        )
        limit_ms = flight.slo.tpot_ms
        if limit_ms is not None:
            kept = 1000.0 * observed_s / steps <= limit_ms
            if not is_evidence(kept=kept, best_effort=flight.best_effort):
                return
            attainment = flight.slo.attainment
            self._tpot_pull += pull(kept=kept, attainment=attainment)
            self._brief_pull += brief_pull(kept=kept, attainment=attainment, steps=steps)
            self._judged += 1
            self._missed += not kept
