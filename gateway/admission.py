"""Budgets at the door: which scopes a request falls under, what room they have, and the holds.

The desk (ledger writer process) owns the money; this worker borrows slices of it. A hold is taken
per attempt before dispatch, on every hard scope or on none, and resolves exactly once.
"""

from collections.abc import Callable, Iterable, Sequence

from gateway.errors import RequestError
from gateway.fleet import Target
from ledger.desk import DeskAway, DeskClient, Refusal
from ledger.identity import Identity
from ledger.records import Hold


class Admission:
    def __init__(self, desk: DeskClient) -> None:
        self._desk = desk

    def rooms(self, identity: Identity, model: str) -> Callable[[Target], int | None]:
        """The least room over the scopes of this request at a target; `None`: no hard budget.

        What every target shares is looked up once.
        """
        shared = self._desk.room(_anywhere(identity, model))
        known: dict[tuple[str, ...], int | None] = {(): shared}

        def room_pusd(target: Target) -> int | None:
            there = _there(target)
            if there not in known:
                rooms = [room for room in (shared, self._desk.room(there)) if room is not None]
                known[there] = min(rooms, default=None)
            return known[there]

        return room_pusd

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
    return (*_anywhere(identity, model), *_there(target))


def _anywhere(identity: Identity, model: str) -> tuple[str, ...]:
    found = (
        "global",
        f"org:{identity.org_id}",
        f"team:{identity.team_id}",
        f"key:{identity.key_id}",
        f"model:{model}",
    )
    return found if identity.user_id is None else (*found, f"user:{identity.user_id}")


def _there(target: Target) -> tuple[str, ...]:
    if target.provider is None:
        return ()
    provider = f"provider:{target.provider}"
    return (provider,) if target.simulated else (provider, "external")
