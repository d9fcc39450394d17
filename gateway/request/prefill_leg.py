"""One prompt that is read on another engine than the one that answers: its state, until it is over.

The engine that reads keeps the prompt's KV until the other one has fetched it, or its lease ends.
So the promise of its KV stays on the board until then, whatever became of the request.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.fleet.fleet import Target
from gateway.request.load_tracker import LoadReservation
from router.types import EngineState, PrefillForecast


class LegEnd(StrEnum):
    """The end of an engine's part in an attempt; kept in the ledger."""

    DONE = "done"
    FAILED = "failed"  # the engine did not do it
    LEFT = "left"  # it was given up: a hang-up, a deadline


@dataclass(slots=True)
class PrefillLeg:
    """Times are monotonic seconds. `params`: what the other engine needs to fetch the KV.

    `sent`: whether a byte may have left for the engine that reads. `handed`: whether one may have
    left for the engine that answers, which then sees to it that the KV is freed.
    """

    target: Target
    engine: EngineState
    forecast: PrefillForecast
    flight: LoadReservation | None
    began_s: float
    ended_s: float | None = None
    read_s: float | None = None  # when the first word came from elsewhere: the KV was fetched
    prompt_tokens: int | None = None  # as the engine counted
    params: Mapping[str, Any] | None = None
    sent: bool = False
    handed: bool = False
    end: LegEnd = LegEnd.LEFT
    _later: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def is_read(self) -> bool:
        """Whether the prompt's KV is there to be fetched."""
        return self.params is not None

    def finish(self, now_s: float, params: Mapping[str, Any], prompt_tokens: int | None) -> None:
        """The prompt is read, and its KV waits for who fetches it."""
        self.ended_s, self.params, self.prompt_tokens = now_s, params, prompt_tokens
        self.end = LegEnd.DONE
        if self.flight is not None:
            self.flight.keep(now_s)

    def fail(self, now_s: float) -> None:
        """The engine did not read it: nothing is kept there, as far as anybody knows."""
        self.ended_s, self.end = now_s, LegEnd.FAILED
        self.release()

    def record_fetched(self, now_s: float) -> None:
        """The first word came from the other engine: nothing is kept for it any more."""
        if self.read_s is None and self.is_read:
            self.read_s = now_s
            if self.target.transfers is not None and self.ended_s is not None:
                tokens = self.prompt_tokens or 0
                self.target.transfers.observe(tokens, now_s - self.ended_s)
            self.release()

    def release(self) -> None:
        """Nothing of it is held on the board any more."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self.flight is not None:
            self.flight.release()
            self.flight = None

    def close(self, *, failed: bool) -> bool:
        """The attempt is over. Return whether its KV is kept for nobody, so that someone frees it.

        Where the engine that answers failed nobody knows what it told the other one, and what was
        read is held until its lease ends.
        """
        if self.flight is None or not self.is_read:
            self.release()
            return False
        if self.handed and not failed:  # it was hung up on, and frees what it was to fetch
            self.release()
            return False
        self._later = asyncio.get_running_loop().call_later(self.target.lease_s, self.release)
        return True
