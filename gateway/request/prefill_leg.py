"""State of a prompt that one engine reads (prefill) and another answers (decode).

The prefill engine keeps the prompt's KV until the other engine has fetched it or its lease ends.
Until then the KV stays reserved in the shared load table, whatever happens to the request.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.fleet.fleet import Target
from gateway.request.load_tracker import LoadReservation
from router.types import EngineState, PrefillForecast

LEAST_TRANSFER_S = 1e-6  # an answer that was faster than forecast leaves no time for the transfer


class LegEnd(StrEnum):
    """The end of an engine's part in an attempt; stored in the ledger."""

    DONE = "done"
    FAILED = "failed"  # the engine failed
    LEFT = "left"  # abandoned after a disconnect or a deadline


@dataclass(slots=True)
class PrefillLeg:
    """The prefill part of an attempt. Times are monotonic seconds.

    `params` is what the answering engine needs to fetch the KV. `sent`: a byte may have been sent
    to the prefill engine. `handed`: one may have been sent to the answering engine, which then sees
    that the KV is freed. `answer_s`: forecast of that engine from the KV to the first token.
    """

    target: Target
    engine: EngineState
    forecast: PrefillForecast
    flight: LoadReservation | None
    began_s: float
    answer_s: float = 0.0
    ended_s: float | None = None
    read_s: float | None = None  # first token of the answering engine: the KV was fetched
    prompt_tokens: int | None = None  # counted by the engine
    params: Mapping[str, Any] | None = None
    sent: bool = False
    handed: bool = False
    end: LegEnd = LegEnd.LEFT
    _later: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def is_read(self) -> bool:
        """Return whether the prompt's KV can be fetched."""
        return self.params is not None

    def finish(self, now_s: float, params: Mapping[str, Any], prompt_tokens: int | None) -> None:
        """Record that the prompt is read and its KV waits to be fetched."""
        self.ended_s, self.params, self.prompt_tokens = now_s, params, prompt_tokens
        self.end = LegEnd.DONE
        if self.flight is not None:
            self.flight.keep(now_s)

    def fail(self, now_s: float) -> None:
        """Record that the engine did not read the prompt, and release its load."""
        self.ended_s, self.end = now_s, LegEnd.FAILED
        self.release()

    def record_fetched(self, now_s: float) -> None:
        """Record the first token of the answering engine: the KV was fetched."""
        if self.read_s is None and self.is_read:
            self.read_s = now_s
            if self.target.transfers is not None and self.ended_s is not None:
                tokens, took_s = self.prompt_tokens or 0, now_s - self.ended_s
                self.target.transfers.observe(tokens, max(LEAST_TRANSFER_S, took_s - self.answer_s))
            self.release()

    def release(self) -> None:
        """Release the load that is reserved for the prompt."""
        if self._later is not None:
            self._later.cancel()
            self._later = None
        if self.flight is not None:
            self.flight.release()
            self.flight = None

    def close(self, *, failed: bool) -> bool:
        """End the attempt's part; return whether its KV is left over and must be freed.

        If the answering engine failed, it is unknown whether that engine fetched the KV, which
        stays reserved until its lease ends.
        """
        if self.flight is None or not self.is_read:
            self.release()
            return False
        if self.handed and not failed:  # the client left, and the answering engine frees the KV
            self.release()
            return False
        self._later = asyncio.get_running_loop().call_later(self.target.lease_s, self.release)
        return True
