"""Sessions in a what-if: which target each used last, and what holding on to it costs.

A sticky session goes on where it was while that is feasible. Where another target was the better
one, the difference is the price of stickiness: what the API charges more, or what an own engine
would have done for nothing.
"""

from collections.abc import Sequence
from typing import Any

from gateway.request.session_affinity import SessionAffinity
from gateway.whatif.traffic import Arrival
from ledger.money import PUSD_PER_USD
from router.reasons import Reason
from router.types import Candidate, Verdict


class StickinessCost:
    """The stickiness cost of one set of policies."""

    def __init__(self) -> None:
        self._last = SessionAffinity()
        self._requests = 0
        self._held = 0
        self._pusd = 0

    def target(self, model: str, arrival: Arrival) -> str | None:
        return self._last.target(_key(model, arrival)) if arrival.session else None

    def record_choice(
        self, model: str, arrival: Arrival, order: Sequence[Verdict], place: int
    ) -> None:
        """It goes to `order[place]`, the first that can take it."""
        if not arrival.session:
            return
        self._requests += 1
        self._last.remember(_key(model, arrival), order[place].candidate.name)
        # What a held session passed by has its reason, too.
        if place == 0 and len(order) > 1 and order[1].reason is Reason.STICKY:
            self._held += 1
            self._pusd += _charged_pusd(order[0].candidate) - _charged_pusd(order[1].candidate)

    def document(self) -> dict[str, Any]:
        """`held`: requests for which another target was better; dollars may be below zero."""
        dollars = self._pusd / PUSD_PER_USD
        return {"requests": self._requests, "held": self._held, "api_usd_more": dollars}


def _key(model: str, arrival: Arrival) -> str:
    return f"{arrival.tenant}\x00{model}\x00{arrival.session}"


def _charged_pusd(candidate: Candidate) -> int:
    """Return the charge expected at the decision; an own engine's hour is paid in any case."""
    return 0 if candidate.engine is not None else candidate.expected_pusd or 0
