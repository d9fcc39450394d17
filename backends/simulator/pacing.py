"""The simulated engine in real time: wakes at the end of each step and updates requests.

The loop's clock is the only clock of the simulator. A callback tells a request that it has more
tokens, without one message per token, so a slow reader finds several at once, as with vLLM. An idle
engine runs no timer.
"""

import asyncio
from collections.abc import Callable, Sequence

from backends.simulator.meters import Meters
from backends.simulator.model import SimulatedEngine
from backends.simulator.shape import EngineShape, KvHandover, SequenceEvent, SequenceEventKind

EARLY_S = 1e-4  # a timer this early is on time: no second wake-up for a rounding error


class PacedSequence:
    """One sequence in the engine: its generated tokens and its times."""

    __slots__ = (
        "admitted_s", "cached_tokens", "done", "first_s", "generated", "id", "last_s",
        "preemptions", "prompt_tokens", "submitted_s", "wake",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the domain
        prompt_tokens: int,
        submitted_s: float,
        wake: Callable[[], None],
    ) -> None:
        self.id = id
        self.prompt_tokens = prompt_tokens
        self.submitted_s = submitted_s
        self.wake = wake
        self.generated = 0
        self.cached_tokens = 0
        self.preemptions = 0
        self.done = False
        self.admitted_s: float | None = None
        self.first_s: float | None = None
        self.last_s: float | None = None


class Pacer:
    """A driver of an engine by the loop's clock.

    `speed` makes simulated time pass faster, for tests that count tokens instead of time.
    """

    def __init__(
        self,
        shape: EngineShape,
        meters: Meters,
        loop: asyncio.AbstractEventLoop,
        *,
        speed: float = 1.0,
    ) -> None:
        self.engine = SimulatedEngine(shape, tokens=True)
        self._meters = meters
        self._loop = loop
        self._speed = speed
        self._origin_s = loop.time()
        self._tickets: dict[str, PacedSequence] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._count = 0

    @property
    def now_s(self) -> float:
        return (self._loop.time() - self._origin_s) * self._speed

    def submit(
        self,
        *,
        prompt_tokens: int,
        output_tokens: int,
        hashes: Sequence[int],
        wake: Callable[[], None],
        kv: KvHandover | None = None,
    ) -> PacedSequence:
        """Start a sequence. Raises `TooLargeError` if the engine can never hold it."""
        self.catch_up()
        self._count += 1
        now_s = self.now_s
        ticket = PacedSequence(f"seq-{self._count}", prompt_tokens, now_s, wake)
        self.engine.submit(
            ticket.id,
            now_s,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            hashes=hashes,
            kv=kv,
        )
        self._tickets[ticket.id] = ticket
        self._schedule()
        return ticket

    def abort(self, ticket: PacedSequence) -> None:
        """Stop a sequence at once; its generated tokens stay on the ticket."""
        if ticket.done:
            return
        self.catch_up()
        if self._tickets.pop(ticket.id, None) is None:
            return  # it finished while catching up
        ticket.generated = self.engine.abort(ticket.id) or 0
        ticket.done = True
        self._meters.record_aborted()
        self._schedule()

    def free_kept(self, sequence_id: str) -> bool:
        """Free the kept KV of a request, and start what waited for it."""
        self.catch_up()
        is_freed = self.engine.free_kept(sequence_id)
        self._schedule()
        return is_freed

    def catch_up(self) -> None:
        """Advance the engine to the present."""
        for event in self.engine.advance(self.now_s + EARLY_S * self._speed):
            ticket = self._tickets.get(event.id)
            if ticket is not None:
                self._apply_event(ticket, event)

    def _apply_event(self, ticket: PacedSequence, event: SequenceEvent) -> None:
        if event.what is SequenceEventKind.ADMITTED:
            if ticket.admitted_s is None:
                ticket.admitted_s = event.at_s
                ticket.cached_tokens = event.cached
            return
        if event.what is SequenceEventKind.PREEMPTED:
            ticket.preemptions += 1
            return
        if event.what is SequenceEventKind.FINISHED:
            ticket.done = True
            del self._tickets[ticket.id]
            self._meters.record_finished(ticket, event.at_s)
        elif event.what is SequenceEventKind.FIRST:
            ticket.first_s = event.at_s
            self._meters.record_first_token(event.at_s - ticket.submitted_s)
        elif ticket.last_s is not None:
            self._meters.record_token_gap(event.at_s - ticket.last_s)
        ticket.generated = event.generated
        ticket.last_s = event.at_s
        ticket.wake()

    def _schedule(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at_s = self.engine.next_s()
        if at_s is not None:
            when_s = self._origin_s + at_s / self._speed
            self._timer = self._loop.call_at(when_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.catch_up()
        self._schedule()
