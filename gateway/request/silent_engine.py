"""Detector of own engines that accept requests and send nothing, within two seconds.

Causes are a hung engine core, a proxy without a way back, or a cut cable. Timeouts (`head_s`) would
show it minutes later. Evidence is a request whose first token is later than its forecast justifies,
while the engine sent no token to any other request. All workers then avoid the engine, and waiting
requests with another candidate move there. A request without another candidate goes on waiting and
is no evidence, so never all engines of a pool are avoided. After a pause one request at a time
tries the engine; any first token restores it.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from backends.errors import BackendError, FirstTokenTimeout
from gateway.clock import Clock
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.attempt import Attempt
from gateway.table_layout import LoadCell
from router.stages import StageCause

PATIENCE_S = 1.0  # added to a multiple of the forecast
FORECASTS = 3.0
UNFORECAST_S = 10.0  # without a step model
LONGEST_TOKENS = 4096  # of an answer in one piece without a client's limit
LOOK_S = 0.1
IDLE_LOOKS = 20  # checks without a waiting request, before checking pauses
LATE_S = 0.5  # a check this late means that the process was stopped: sockets are read first
ASK_AGAIN_S, ASK_AGAIN_LIMIT_S = 1.0, 8.0

# Plain integers: enum members are slow as indices.
_HEARD, _SILENT, _ASK_AT = int(LoadCell.HEARD_S), int(LoadCell.SILENT_S), int(LoadCell.ASK_AT_S)


class FirstTokenWait:
    """The wait of one request for its first token: a context around all awaits of its target.

    Every request has one, so it only does what `asyncio.timeout` does: 0.8 us against 3.8.
    """

    __slots__ = ("_cancelling", "_engine", "_task", "_why", "attempt")

    def __init__(self, attempt: Attempt, engine: "_Engine", task: asyncio.Task[Any]) -> None:
        self.attempt = attempt
        self._engine, self._task = engine, task
        self._why: BackendError | None = None
        self._cancelling = task.cancelling()

    @property
    def counts(self) -> bool:
        """Return whether the request has no token yet and could go to another target."""
        return self.attempt.first_token_s is None and self.attempt.leads_on(StageCause.FAILURE)

    @property
    def waits(self) -> bool:
        """Return whether the wait goes on."""
        return self in self._engine.waits

    def move(self, why: BackendError) -> None:
        """End the wait with this error; the request is tried elsewhere."""
        if self._why is None:
            self._why = why
            self._task.cancel()

    def __enter__(self) -> None:
        self._engine.waits.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        """Raise the error of `move`, unless something else cancelled the task, too."""
        self._engine.waits.discard(self)
        why = self._why
        if why is None:
            return
        if self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise why from None


@dataclass(slots=True)
class _Engine:
    """The waits at one engine; `times` counts findings without a token in between."""

    waits: set[FirstTokenWait] = field(default_factory=set)
    found_s: float = 0.0
    times: int = 0


_UNWATCHED = nullcontext()


class SilentEngineDetector:
    """The detector of one worker; its `watch` runs as a task."""

    def __init__(
        self,
        board: SharedLoadTable,
        worker: int,
        clock: Clock,
        sent: Callable[[FirstTokenWait], None] | None = None,
    ) -> None:
        """Create the detector; `sent` is called for each wait, if other hosts use the engines."""
        self._board, self._worker, self._clock, self._sent = board, worker, clock, sent
        self._engines: dict[int, _Engine] = {}
        self._looked_s = clock.now_s()
        self._begun: asyncio.Event | None = None  # set while checking is paused

    def watch_attempt(
        self, attempt: Attempt, task: asyncio.Task[Any]
    ) -> AbstractContextManager[None]:
        """Return the context of all awaits of a target; it raises if the request is moved."""
        if not attempt.own:
            return _UNWATCHED
        row = attempt.step.frozen.target.row
        engine = self._engines.get(row)
        if engine is None:
            engine = self._engines[row] = _Engine()
        wait = FirstTokenWait(attempt, engine, task)
        if self._begun is not None:
            self._begun.set()
        if self._sent is not None:
            self._sent(wait)
        return wait

    async def watch(self) -> None:
        """Run until cancelled; sleep while no request waits for a first token."""
        idle = 0
        while True:
            await asyncio.sleep(LOOK_S)
            self.check_engines()
            idle = 0 if any(engine.waits for engine in self._engines.values()) else idle + 1
            if idle >= IDLE_LOOKS:
                await self._sleep_until_asked()
                idle = 0

    async def _sleep_until_asked(self) -> None:
        self._begun = asyncio.Event()
        try:
            await self._begun.wait()
        finally:
            self._begun = None
            self._looked_s = self._clock.now_s()  # it was paused, not stopped

    def check_engines(self) -> None:
        now_s = self._clock.now_s()
        late_s, self._looked_s = now_s - self._looked_s - LOOK_S, now_s
        if late_s > LATE_S:
            return
        for row, engine in self._engines.items():
            if engine.waits:
                self._judge(row, engine, now_s)

    def _judge(self, row: int, engine: _Engine, now_s: float) -> None:
        loads = self._board.loads(row)
        heard_s, known = loads[_HEARD], loads[_SILENT] > loads[_HEARD]
        overdue = [
            wait
            for wait in engine.waits
            if wait.counts
            and now_s - max(wait.attempt.asked_s, heard_s)
            > (PATIENCE_S if known else silence_timeout_s(wait.attempt))
        ]
        if not overdue:
            return
        if heard_s > engine.found_s:
            engine.times = 0
        if not engine.times or any(
            each_wait.attempt.asked_s > engine.found_s for each_wait in overdue
        ):
            pause_s = min(ASK_AGAIN_S * 2**engine.times, ASK_AGAIN_LIMIT_S)
            engine.times, engine.found_s = engine.times + 1, now_s
            cells, base = self._board.cells, self._board.load_row(self._worker, row)
            cells[base + _ASK_AT] = now_s + pause_s
            cells[base + _SILENT] = now_s
        for wait in overdue:
            wait.move(FirstTokenTimeout("the engine takes requests and says nothing"))


def silence_timeout_s(attempt: Attempt) -> float:
    """Return the seconds of silence after which an engine is suspected."""
    request, verdict = attempt.plan.request, attempt.step.verdict
    if verdict.ttft_ms is None:
        return UNFORECAST_S
    forecast_ms = verdict.ttft_ms
    if not attempt.plan.asked.stream and verdict.tpot_ms is not None:
        most = request.max_tokens or verdict.candidate.output_cap or LONGEST_TOKENS
        forecast_ms += most * verdict.tpot_ms
    return PATIENCE_S + FORECASTS * forecast_ms / 1e3
