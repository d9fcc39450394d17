"""Sessions in a what-if: the last target of each, and the cost of session affinity.

A sticky session stays on its target while that is feasible. If another target was better, the
difference is the cost of stickiness: the higher API charge, or the charge that an own engine would
have avoided.
"""

from collections.abc import Sequence
from typing import Any

from gateway.request.session_affinity import SessionAffinity
from gateway.whatif.traffic import Arrival
from ledger.money import PUSD_PER_USD
from router.reasons import Reason
from router.types import Candidate, Verdict


class StickinessCost:
    """Stickiness cost of one policy set."""

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
        """Record that a request goes to `order[place]`, the first target that can take it."""
        if not arrival.session:
            return
        self._requests += 1
        self._last.remember(_key(model, arrival), order[place].candidate.name)
        # A target passed over for a sticky one carries that reason, too.
        if place == 0 and len(order) > 1 and order[1].reason is Reason.STICKY:
            self._held += 1
            self._pusd += _charged_pusd(order[0].candidate) - _charged_pusd(order[1].candidate)

    def document(self) -> dict[str, Any]:
        """Return totals. `held` counts requests with a better target; dollars may be negative."""
        dollars = self._pusd / PUSD_PER_USD
        return {"requests": self._requests, "held": self._held, "api_usd_more": dollars}


def _key(model: str, arrival: Arrival) -> str:
    return f"{arrival.tenant}\x00{model}\x00{arrival.session}"


def _charged_pusd(candidate: Candidate) -> int:
    """Return the charge expected at the decision; 0 for an own engine, which is paid anyway."""
    return 0 if candidate.engine is not None else candidate.expected_pusd or 0
