"""The simulated engine in virtual time: continuous batching, KV blocks, queue, preemption.

Deterministic, without clock, randomness and I/O. The caller submits, aborts and advances; time
passes only in `advance`. One step serves every decoding sequence one token, then prefill chunks in
arrival order up to the token budget, and lasts as `StepTiming` gives. A prompt is admitted when its
blocks fit. If a decoding sequence finds no block, the last admitted one is preempted and later
computed again. While nothing can change, many steps pass at once (`batch`). The scheduler sees a
request some time after its submission.
"""

from bisect import insort
from collections import deque
from collections.abc import Sequence

from backends.simulator.batch import DecodingBatch, SequenceJob
from backends.simulator.kv import BlockPool
from backends.simulator.shape import (
    EngineShape,
    KvHandover,
    SequenceEvent,
    SequenceEventKind,
    SequenceTotals,
    TooLargeError,
)
from backends.stepmodel import attended_tokens

GOLDEN = 0.618_033_988_749_895  # its multiples lie evenly in a round, whatever their number


class SimulatedEngine:
    """One replica. Call `advance(now)` before `submit(now)` or `abort` at the same time."""

    def __init__(self, shape: EngineShape, *, tokens: bool = False) -> None:
        self.shape = shape
        self.totals = SequenceTotals()
        self.now_s = 0.0
        self._tokens = tokens
        self._pool = BlockPool(
            blocks=shape.blocks, block_tokens=shape.block_tokens, caching=shape.prefix_caching
        )
        self._pace = shape.step_timing
        self._batch = DecodingBatch(self._pace, self._pool)
        self._arriving: list[SequenceJob] = []  # in the order in which they become visible
        self._phase = 0.0
        self._waiting: deque[SequenceJob] = deque()
        self._prefilling: list[SequenceJob] = []
        self._running: dict[str, SequenceJob] = {}  # in order of admission
        self._chunks: list[tuple[SequenceJob, int]] = []  # of the step in progress
        self._boundary_s = 0.0  # where the next step starts
        self._end_s: float | None = None  # of the step in progress
        self._kept: dict[str, tuple[Sequence[int], int]] = {}  # blocks of prompts, by request
        self._is_blocked = False  # nothing runs, and what waits does not fit beside what is kept

    def submit(
        self,
        id: str,  # noqa: A002 - the word of the domain, and of every event
        now_s: float,
        *,
        prompt_tokens: int,
        output_tokens: int,
        hashes: Sequence[int] = (),
        kv: KvHandover | None = None,
    ) -> None:
        """Queue a request that will generate exactly `output_tokens` unless aborted.

        Raises `TooLargeError` if the engine can never hold it.
        """
        length = prompt_tokens + output_tokens
        if length > self.shape.context_tokens or length > self.shape.kv_capacity_tokens:
            raise TooLargeError(f"{length} tokens do not fit")
        if prompt_tokens < 1 or output_tokens < 1:
            raise ValueError("a request has at least one prompt and one output token")
        self.now_s = max(self.now_s, now_s)
        full = (prompt_tokens - 1) // self.shape.block_tokens  # the last token is always computed
        self._phase = (self._phase + GOLDEN) % 1.0
        visible_s = now_s + self._pace.intake_s(len(self._running), self._phase)
        job = SequenceJob(id, prompt_tokens, output_tokens, tuple(hashes[:full]), visible_s)
        if kv is not None:
            job.is_kept, job.is_moved = kv.is_kept, kv.is_moved
            job.visible_s += kv.moving_s
        insort(self._arriving, job, key=_visible_s)

    def abort(self, id: str) -> int | None:  # noqa: A002  (as on the wire)
        """Stop a request at once. Return its generated tokens, `None` if it is unknown."""
        job = self._running.get(id)
        if job is None:
            for queue in (self._waiting, self._arriving):
                for queued in queue:
                    if queued.id == id:
                        queue.remove(queued)
                        self._is_blocked = False  # jobs behind it may fit now
                        self.totals.aborted += 1
                        return queued.base
            return None
        generated = self._batch.generated(job)
        self._drop(job)
        self.totals.aborted += 1
        return generated

    def free_kept(self, id: str) -> bool:  # noqa: A002  (as on the wire)
        """Free the kept KV of a request; false if there is none."""
        held = self._kept.pop(id, None)
        if held is None:
            return False
        self._pool.release(*held)
        self._is_blocked = False
        return True

    @property
    def kept(self) -> int:
        """Return the number of finished requests whose KV waits for another engine."""
        return len(self._kept)

    def advance(self, until_s: float) -> list[SequenceEvent]:
        """Let time pass to `until_s`. Return the events in time order."""
        events: list[SequenceEvent] = []
        while True:
            if self._end_s is None and not self._start_step(until_s, events):
                break
            if self._end_s is not None:
                if self._end_s > until_s:
                    break
                self._complete(self._end_s, events)
        self.now_s = max(self.now_s, until_s)
        return events

    def next_s(self) -> float | None:
        """Return the time of the next event; `None` if idle, or blocked until kept KV is freed."""
        if self._end_s is not None:
            return self._end_s
        if self._running or (self._waiting and not self._is_blocked):
            return self._boundary_s
        return self._arriving[0].visible_s if self._arriving else None

    @property
    def running(self) -> int:
        return len(self._running)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unfinished(self) -> int:
        return len(self._running) + len(self._waiting) + len(self._arriving)

    @property
    def context_tokens(self) -> int:
        """Return the number of tokens that the decoding sequences attend to."""
        return self._batch.context_tokens

    def held_tokens(self) -> list[tuple[str, int]]:
        """Return the tokens that each decoding sequence attends to, by request."""
        return self._batch.held_tokens()

    @property
    def queued_prefill_tokens(self) -> int:
        """Return the prompt tokens not computed yet: in progress, waiting, or about to arrive."""
        rest = sum(j.target - j.computed for j in self._prefilling)
        queued = sum(j.target for j in (*self._waiting, *self._arriving))
        return rest + queued

    @property
    def kv_used_tokens(self) -> int:
        return self._pool.used * self.shape.block_tokens

    @property
    def kv_usage_ratio(self) -> float:
        return self._pool.used / self._pool.capacity

    def prefix_hit_tokens(self, hashes: Sequence[int]) -> int:
        return self._pool.hits(hashes) * self.shape.block_tokens

    def reset_prefix_cache(self) -> None:
        self._pool.forget()

    # -- one step

    def _start_step(self, until_s: float, events: list[SequenceEvent]) -> bool:
        """Start the next step, or let many pass; false if none can start by `until_s`."""
        if not self._running and not self._waiting:
            if not self._arriving or self._arriving[0].visible_s > until_s:
                return False
            self._boundary_s = max(self._boundary_s, self._arriving[0].visible_s)
        if self._boundary_s > until_s:
            return False
        self._arrive()
        preempted = self._preempt_for_growth(events)
        self._chunks = self._plan(events, admit=not preempted or not self._running)
        if self._chunks:
            self._batch.reserve(1)
            prefill = sum(tokens for _, tokens in self._chunks)
            attended = sum(attended_tokens(job.computed, tokens) for job, tokens in self._chunks)
            self._end_s = self._boundary_s + self._batch.step_s(prefill, attended)
            return True
        self._is_blocked = not self._running
        if self._is_blocked:
            self._boundary_s = until_s
            self._arrive()  # behind it: they wait in turn
            return False
        horizon_s = self._arriving[0].visible_s if self._arriving else None
        limit = 1 if self._tokens else None
        steps, end_s = self._batch.steps(self._boundary_s, until_s, horizon_s, limit)
        if steps > 1:
            self._run_steps(steps, end_s, events)
        else:
            self._batch.reserve(1)
            self._end_s = self._boundary_s + self._batch.step_s(0)
        return True

    def _arrive(self) -> None:
        while self._arriving and self._arriving[0].visible_s <= self._boundary_s:
            self._waiting.append(self._arriving.pop(0))

    def _preempt_for_growth(self, events: list[SequenceEvent]) -> bool:
        """Preempt the last admitted sequences until each decoding one has its next block."""
        preempted = False
        while self._batch.size and self._batch.growth(1) > self._pool.free:
            victim = next(reversed(self._running.values()))
            generated = self._batch.generated(victim)
            self._drop(victim)
            victim.restart(generated)
            self._waiting.appendleft(victim)
            self.totals.preemptions += 1
            events.append(
                SequenceEvent(self._boundary_s, victim.id, SequenceEventKind.PREEMPTED, generated)
            )
            preempted = True
        return preempted

    def _plan(self, events: list[SequenceEvent], *, admit: bool) -> list[tuple[SequenceJob, int]]:
        """Return this step's prefill chunks in arrival order, admitting from the queue."""
        chunks: list[tuple[SequenceJob, int]] = []
        budget = self.shape.prefill_budget_tokens - self._batch.size
        for job in self._prefilling:
            if budget <= 0:
                return chunks
            tokens = self._chunk(job, budget)
            budget -= tokens
            chunks.append((job, tokens))
        while admit and budget > 0 and self._waiting:
            if len(self._running) >= self.shape.max_num_seqs or not self._admit(self._waiting[0]):
                break
            job = self._waiting.popleft()
            events.append(
                SequenceEvent(
                    self._boundary_s, job.id, SequenceEventKind.ADMITTED, job.base, job.cached
                )
            )
            tokens = self._chunk(job, budget)
            budget -= tokens
            chunks.append((job, tokens))
        return chunks

    def _chunk(self, job: SequenceJob, budget: int) -> int:
        """Schedule a job's next tokens; blocks that they fill can be hit from now on."""
        tokens = min(budget, job.target - job.computed)
        filled = (job.computed + tokens) // self.shape.block_tokens
        job.shared += self._pool.publish(job.hashes[job.published : filled])
        job.published = max(job.published, filled)
        return tokens

    def _admit(self, job: SequenceJob) -> bool:
        size = self.shape.block_tokens
        total = -(-job.target // size)
        hits = self._pool.acquire(job.hashes, total, spare=self._batch.growth(1))
        if hits is None:
            return False
        job.shared = list(job.hashes[:hits])
        job.published = hits
        job.computed = max(hits * size, job.target - 1) if job.is_moved else hits * size
        job.blocks = total
        if job.preemptions == 0:
            job.cached = hits * size
            self.totals.prefix_queries += job.prompt_tokens
            self.totals.prefix_hits += job.cached
        self._running[job.id] = job
        self._prefilling.append(job)
        return True

    def _complete(self, end_s: float, events: list[SequenceEvent]) -> None:
        """End the step in progress: one token per sequence, and its chunks are computed."""
        chunks, self._chunks, self._end_s = self._chunks, [], None
        self._run_steps(1, end_s, events, reserved=True)
        for job, tokens in chunks:
            if self._running.get(job.id) is not job:
                continue  # aborted while its chunk was computed
            job.computed += tokens
            if job.computed < job.target:
                continue
            self._prefilling.remove(job)
            fresh = job.base == 0
            if fresh:
                self.totals.prompt_tokens += job.prompt_tokens
            job.base += 1
            self.totals.generation_tokens += 1
            if fresh:
                events.append(SequenceEvent(end_s, job.id, SequenceEventKind.FIRST, 1))
            elif self._tokens:
                events.append(SequenceEvent(end_s, job.id, SequenceEventKind.TOKEN, job.base))
            self._batch.add(job)
        self._finish(end_s, events)

    def _run_steps(
        self, steps: int, end_s: float, events: list[SequenceEvent], *, reserved: bool = False
    ) -> None:
        if not reserved:
            self._batch.reserve(steps)
        self.totals.busy_s += end_s - self._boundary_s
        self.totals.steps += steps
        self.totals.generation_tokens += steps * self._batch.size
        self._boundary_s = end_s
        self._batch.advance(steps)
        if self._tokens:
            events.extend(
                SequenceEvent(end_s, j.id, SequenceEventKind.TOKEN, self._batch.generated(j))
                for j in self._batch.members()
            )
        if not reserved:
            self._finish(end_s, events)

    def _finish(self, end_s: float, events: list[SequenceEvent]) -> None:
        for job in self._batch.pop_finished():
            self._drop(job, keep=job.is_kept)
            self.totals.finished += 1
            events.append(
                SequenceEvent(end_s, job.id, SequenceEventKind.FINISHED, job.output_tokens)
            )

    def _drop(self, job: SequenceJob, *, keep: bool = False) -> None:
        """Remove a running request; its blocks are released, or kept for another engine."""
        del self._running[job.id]
        if job.decoding:
            self._batch.remove(job)
        else:
            self._prefilling.remove(job)
        held = job.shared, job.blocks - len(job.shared)
        if keep:
            self._kept[job.id] = held
        else:
            self._pool.release(*held)


def _visible_s(job: SequenceJob) -> float:
    return job.visible_s
