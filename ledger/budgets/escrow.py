"""Hard budgets without a shared counter: limits are split into grants, grants into holds.

A granter (the ledger for a host, a host for its workers) owns a `GrantPool` per scope and window; a
holder owns a `Slice` of it. The invariants are `sum of grants <= limit` and, per slice,
`granted = spent + held + free`, so no interleaving of holders can overspend. If little is left, the
owner lends exactly one hold at a time: otherwise small idle slices would cause refusals that the
budget could still pay. A slice belongs to one window, and a hold settles in its own window.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger.budgets.scopes import BY_PREFIX

# If fewer holds per holder are left, slices would leave too much money idle.
SLICING_HOLDS_PER_HOLDER = 8
# One loan takes at most this share of a holder's even part, so that late holders find room.
LOAN_DIVISOR = 4
NEGATIVE = "amounts are never negative"


class EscrowError(ValueError):
    """A step that would break an invariant: a bug in the caller, never a refusal."""


class Slice(NamedTuple):
    """The money of one holder in a window of a scope. Built twice per attempt."""

    granted_pusd: int = 0
    held_pusd: int = 0
    spent_pusd: int = 0

    @property
    def free_pusd(self) -> int:
        """Return the amount left to hold; negative if a settle cost more than its hold."""
        return self.granted_pusd - self.held_pusd - self.spent_pusd

    @property
    def overdrawn_pusd(self) -> int:
        return max(0, -self.free_pusd)


NOTHING = Slice()
_new = tuple.__new__  # builds a named tuple in half the time of its constructor


@dataclass(frozen=True, slots=True)
class GrantPool:
    """The limit of one scope in one window, and the grants of its holders."""

    limit_pusd: int
    granted: Mapping[str, int] = field(default_factory=dict)

    @property
    def granted_pusd(self) -> int:
        return sum(self.granted.values())

    @property
    def remaining_pusd(self) -> int:
        """Return the amount left to grant; negative if the limit was lowered below the grants."""
        return self.limit_pusd - self.granted_pusd


def scope_order(scope: str) -> tuple[int, str]:
    """Return the sort key of a scope, from the widest to the narrowest."""
    kind = scope.partition("@")[0].partition(":")[0]
    if kind not in BY_PREFIX:
        raise EscrowError(f"`{scope}` is not a budget scope: {', '.join(BY_PREFIX)}")
    return BY_PREFIX[kind].width, scope


def account_order(budget_id: str, window: int) -> tuple[int, str, int]:
    """Return the sort key of a window. All code locks windows in this order.

    One order prevents deadlocks. It goes from the widest scope to the narrowest; scopes of a later
    release come last.
    """
    kind = BY_PREFIX.get(budget_id.partition("@")[0].partition(":")[0])
    return (len(BY_PREFIX) if kind is None else kind.width), budget_id, window


def budget_key(scope: str, period: str) -> str:
    """Return the budget's id: `team:search@month`. Day and month of a scope are two accounts."""
    return f"{scope}@{period}"


def hold(piece: Slice, amount_pusd: int) -> Slice | None:
    """Hold the amount in the slice, or return `None` if it does not fit."""
    if amount_pusd < 0:
        raise EscrowError(NEGATIVE)
    granted, held, spent = piece
    if amount_pusd > granted - held - spent:
        return None
    return _new(Slice, (granted, held + amount_pusd, spent))


def settle(piece: Slice, held_pusd: int, actual_pusd: int) -> Slice:
    """End a hold at its actual cost (0: void). A cost above the hold overdraws the slice."""
    if held_pusd < 0 or actual_pusd < 0:
        raise EscrowError(NEGATIVE)
    granted, held, spent = piece
    if held_pusd > held:
        raise EscrowError("a hold that this slice does not carry was settled")
    return _new(Slice, (granted, held - held_pusd, spent + actual_pusd))


def is_sliced(remaining_pusd: int, hold_pusd: int, holders: int) -> bool:
    """Return whether enough is left that idle slices cannot starve a holder."""
    if holders < 1:
        raise EscrowError("at least one holder is needed")
    return hold_pusd > 0 and remaining_pusd >= SLICING_HOLDS_PER_HOLDER * hold_pusd * holders


def loan_pusd(room: int, missing_pusd: int, hold_pusd: int, holders: int) -> int:
    """Return the loan for a holder that lacks `missing_pusd` for one hold, 0 without room."""
    if missing_pusd > room:
        return 0
    if not is_sliced(room, hold_pusd, holders):
        return missing_pusd
    return max(missing_pusd, room // (LOAN_DIVISOR * holders))
