"""Budget admission: the scopes that a request counts on, their headroom, and its holds.

The budget broker in the ledger writer process owns the money; workers borrow slices of it. A hold
is taken per attempt before dispatch, on all hard scopes or on none, and is resolved exactly once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gateway.errors import RequestError
from gateway.fleet.fleet import Target
from ledger.budgets.budget_refusal import BudgetRefusal
from ledger.budgets.client import BrokerUnavailable, BudgetClient
from ledger.budgets.scopes import request_scopes, target_scopes
from ledger.identity.keys import Identity
from ledger.journals.records import Hold


class BudgetHeadroom:
    """Headroom in the budgets of one key's requests for one model, at each of its targets.

    `scopes` lists the budget scopes of an attempt, target by target.
    """

    __slots__ = ("_desk", "_edition", "_pusd", "scopes")

    def __init__(self, desk: BudgetClient, scopes: Sequence[tuple[str, ...]]) -> None:
        self.scopes = tuple(scopes)
        self._desk = desk
        self._edition: object = None
        self._pusd: tuple[int | None, ...] = ()

    def pusd(self) -> tuple[int | None, ...]:
        """Return the smallest headroom over all scopes by target, `None` without a hard budget.

        Computed again only when the budget client has news, and once for targets that share all
        scopes.
        """
        edition = self._desk.edition()
        if edition != self._edition:
            known = {
                scopes: self._desk.remaining_pusd(scopes) for scopes in dict.fromkeys(self.scopes)
            }
            self._pusd = tuple([known[scopes] for scopes in self.scopes])
            self._edition = edition
        return self._pusd


class BudgetAdmission:
    def __init__(self, desk: BudgetClient) -> None:
        self.desk = desk

    @property
    def valued_tags(self) -> frozenset[str]:
        """Return the tags that have a budget for each value; requests may set these themselves.

        Raises `RequestError` 503 while the budgets are not known.
        """
        if not self.desk.is_told:
            raise _unchecked()
        return self.desk.valued_tags

    def rooms(self, identity: Identity, model: str, targets: Iterable[Target]) -> BudgetHeadroom:
        return BudgetHeadroom(self.desk, [scopes(identity, model, target) for target in targets])

    def tightest(self, identity: Identity, model: str, targets: Iterable[Target]) -> BudgetRefusal:
        """Return the budget with the least headroom for this request at any of these targets."""
        every = {scope for target in targets for scope in scopes(identity, model, target)}
        found = self.desk.tightest(tuple(every))
        assert found is not None, "a budget refused, so there is one"
        return found

    async def hold(
        self, attempt_id: str, scopes: Sequence[str], bound_pusd: int
    ) -> tuple[Hold, ...] | BudgetRefusal:
        """Return the holds, or the budget without headroom.

        Raises `RequestError` 503 while the budget broker cannot be reached.
        """
        try:
            held = await self.desk.hold(attempt_id, scopes, bound_pusd)
        except BrokerUnavailable as error:
            raise _unchecked() from error
        if isinstance(held, BudgetRefusal):  # other scopes may have less headroom
            left_pusd = self.desk.remaining_pusd(scopes)
            if left_pusd is not None and left_pusd < held.unspent_pusd:
                return replace(held, unspent_pusd=left_pusd)
        return held

    def release(self, attempt_id: str, actual_pusd: int) -> None:
        """End the attempt's holds at their true cost; a second call changes nothing."""
        self.desk.release(attempt_id, actual_pusd)


def scopes(identity: Identity, model: str, target: Target) -> tuple[str, ...]:
    """Return every scope that the attempt counts on, whether or not a budget exists there."""
    return (*request_scopes(identity, model), *target_scopes(target))


def _unchecked() -> RequestError:
    words = "Budgets cannot be checked now. Retry in 1 s."
    return RequestError("unavailable", words, retry_after_s=1.0)
