"""Budgets at the door: which scopes a request falls under, what room they have, and the holds.

The desk (ledger writer process) owns the money; this worker borrows slices of it. A hold is taken
per attempt before dispatch, on every hard scope or on none, and resolves exactly once.
"""

from collections.abc import Iterable, Sequence

from gateway.errors import RequestError
from gateway.fleet import Target
from ledger.desk import DeskAway, DeskClient, Refusal
from ledger.identity import Identity
from ledger.records import Hold


class Admission:
    def __init__(self, desk: DeskClient) -> None:
        self._desk = desk

    def room_pusd(self, identity: Identity, model: str, target: Target) -> int | None:
        """The least room over the scopes of this request at this target; `None`: no hard budget."""
        return self._desk.room(scopes(identity, model, target))

    def tightest(self, identity: Identity, model: str, targets: Iterable[Target]) -> Refusal:
        """The budget that leaves this request the least room at any of these targets."""
        every = {scope for target in targets for scope in scopes(identity, model, target)}
        found = self._desk.tightest(tuple(every))
        assert found is not None, "a budget refused, so there is one"
        return found

    async def hold(
        self, attempt_id: str, identity: Identity, model: str, target: Target, bound_pusd: int
    ) -> tuple[Hold, ...] | Refusal:
        """The holds, or the budget without room; 503 while nobody can tell."""
        try:
            return await self._desk.hold(attempt_id, scopes(identity, model, target), bound_pusd)
        except DeskAway as error:
            raise RequestError(
                "unavailable", "Budgets cannot be checked at the moment.", retry_after_s=1.0
            ) from error

    def release(self, attempt_id: str, actual_pusd: int) -> None:
        """End the attempt's holds at their true cost; a second call changes nothing."""
        self._desk.release(attempt_id, actual_pusd)


def scopes(identity: Identity, model: str, target: Target) -> Sequence[str]:
    """Every scope the attempt is counted on, whether or not a budget exists there."""
    found = [
        "global",
        f"org:{identity.org_id}",
        f"team:{identity.team_id}",
        f"key:{identity.key_id}",
        f"model:{model}",
    ]
    if identity.user_id is not None:
        found.append(f"user:{identity.user_id}")
    if target.provider is not None:
        found.append(f"provider:{target.provider}")
        if not target.simulated:
            found.append("external")
    return found
