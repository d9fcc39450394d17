"""The decoding sequences of one engine, stored so that k steps cost as much as one.

Sequences of a batch grow together, one token a step. A sequence is therefore stored relative to the
batch's step counter: when it joined, when it will finish, and the residue of the counter at which
it fills a block. The growth in blocks over k steps is a sum over residues, the duration of k steps
a quadratic, and the next finish the top of a heap.
"""

import heapq
import math
from collections.abc import Iterator

from backends.simulator.kv import BlockPool
from backends.simulator.shape import StepTiming


class SequenceJob:
    """One request inside the engine; mutable, owned by the engine."""

    __slots__ = (
        "base", "blocks", "cached", "computed", "decoding", "hashes", "id", "is_kept", "is_moved",
        "joined", "output_tokens", "preemptions", "prompt_tokens", "published", "residue",
        "shared", "target", "ticket", "visible_s",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the domain
        prompt_tokens: int,
        output_tokens: int,
        hashes: tuple[int, ...],
        visible_s: float,
    ) -> None:
        self.id = id
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.hashes = hashes
        self.visible_s = visible_s
        self.target = prompt_tokens  # tokens that prefill computes, more after a preemption
        self.base = 0  # generated before it joined the batch
        self.computed = 0
        self.cached = 0
        self.preemptions = 0
        self.blocks = 0  # held, counted at its last change of state
        self.shared: list[int] = []  # hashes of its blocks that others may share
        self.published = 0  # leading blocks already offered for reuse
        self.is_kept = False  # its KV stays for another engine when it has finished
        self.is_moved = False  # its prompt's KV comes from another engine: one token is computed
        self.decoding = False
        self.joined = 0
        self.residue = 0
        self.ticket = 0

    def restart(self, generated: int) -> None:
        """Reset the job after a preemption: all is computed again, including generated tokens."""
        self.base = generated
        self.target = self.prompt_tokens + generated
        self.computed = 0
        self.blocks = 0
        self.shared = []
        self.published = 0
        self.preemptions += 1
        self.is_moved = False


class DecodingBatch:
    def __init__(self, pace: StepTiming, pool: BlockPool) -> None:
        self._pace = pace
        self._pool = pool
        self._size = pool.block_tokens
        self._fills = [0] * pool.block_tokens  # jobs by the residue at which they need a block
        self._members: dict[str, SequenceJob] = {}
        self._ends: list[tuple[int, int, SequenceJob]] = []
        self._counter = 0  # steps so far
        self._reserved = 0  # steps whose blocks are taken but which have not passed
        self._tickets = 0
        self.context_tokens = 0

    @property
    def size(self) -> int:
        return len(self._members)

    def members(self) -> Iterator[SequenceJob]:
        return iter(self._members.values())

    def add(self, job: SequenceJob) -> None:
        """Decode a job from the next step on; `base` includes the prefill's token already."""
        held = job.target
        job.decoding = True
        job.joined = self._counter
        job.residue = (self._counter - held) % self._size
        self._fills[job.residue] += 1
        self._members[job.id] = job
        self.context_tokens += held
        self._tickets += 1
        job.ticket = self._tickets
        end = self._counter + job.output_tokens - job.base
        heapq.heappush(self._ends, (end, job.ticket, job))

    def remove(self, job: SequenceJob) -> None:
        """Remove a job, and update its `blocks` for the release."""
        del self._members[job.id]
        self._fills[job.residue] -= 1
        steps = self._counter - job.joined
        held = job.target + steps
        self.context_tokens -= held
        job.blocks = -(-(held + self._reserved) // self._size)
        job.decoding = False
        job.ticket = 0

    def generated(self, job: SequenceJob) -> int:
        if not job.decoding:
            return job.base
        return job.base + self._counter - job.joined

    def held_tokens(self) -> list[tuple[str, int]]:
        """Return the tokens that each member attends to, by request."""
        steps = self._counter
        return [
            (job.id, job.prompt_tokens + job.base + steps - job.joined - 1)
            for job in self._members.values()
        ]

    def growth(self, steps: int) -> int:
        """Return the blocks that the batch needs for its next `steps` steps."""
        if steps == 1:
            return self._fills[self._counter % self._size]
        rounds, rest = divmod(steps, self._size)
        start = self._counter % self._size
        fills = self._fills
        extra = sum(fills[(start + i) % self._size] for i in range(rest))
        return rounds * len(self._members) + extra

    def step_s(self, prefill_tokens: int, attended_tokens: float = 0.0) -> float:
        return self._pace.step_s(
            sequences=len(self._members),
            context_tokens=self.context_tokens,
            prefill_tokens=prefill_tokens,
            attended_tokens=attended_tokens,
        )

    def reserve(self, steps: int) -> None:
        """Reserve the blocks of the next `steps` steps before they run."""
        if not self._members:
            return
        self._pool.grow(self.growth(steps))
        self._reserved = steps

    def advance(self, steps: int) -> None:
        self._counter += steps
        self._reserved = 0
        self.context_tokens += steps * len(self._members)

    def pop_finished(self) -> Iterator[SequenceJob]:
        """Yield sequences that have generated all their tokens; the caller removes each."""
        while self._ends and self._ends[0][0] <= self._counter:
            _, ticket, job = heapq.heappop(self._ends)
            if job.ticket == ticket:
                yield job

    def steps(
        self, start_s: float, until_s: float, horizon_s: float | None, limit: int | None
    ) -> tuple[int, float]:
        """Return how many decode-only steps can pass unchanged, and when the last one ends.

        All end by `until_s`, none starts at or after `horizon_s`, no sequence finishes before the
        last one, and their blocks are free.
        """
        while self._ends and self._ends[0][2].ticket != self._ends[0][1]:
            heapq.heappop(self._ends)
        count = self._fitting_steps(until_s - start_s, most=self._ends[0][0] - self._counter)
        if horizon_s is not None:
            count = min(count, self._fitting_steps(horizon_s - start_s, most=count) + 1)
        if limit is not None:
            count = min(count, limit)
        count = max(1, count)
        free = self._pool.free
        if len(self._members) * (count // self._size + 1) > free:
            low, high = 1, count
            while low < high:
                middle = (low + high + 1) // 2
                if self.growth(middle) <= free:
                    low = middle
                else:
                    high = middle - 1
            count = low
        return count, start_s + self._duration_of(count)

    def _duration_of(self, steps: int) -> float:
        slope = self._pace.step.c_s * len(self._members)
        return steps * self.step_s(0) + slope * steps * (steps - 1) / 2

    def _fitting_steps(self, span_s: float, *, most: int) -> int:
        """Return the highest number of steps, up to `most`, that last at most `span_s`."""
        if span_s <= 0:
            return 0
        if self._duration_of(most) <= span_s:
            return most
        first, slope = self.step_s(0), self._pace.step.c_s * len(self._members)
        if slope <= 0:
            return int(span_s / first)
        half = first - slope / 2
        steps = int((math.sqrt(half * half + 2 * slope * span_s) - half) / slope)
        while steps and self._duration_of(steps) > span_s:
            steps -= 1
        return steps
