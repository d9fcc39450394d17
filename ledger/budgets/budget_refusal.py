"""The refusal of a hold: the budget without room, as the client gets it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """A budget without room, and its window. Money in pico-USD, times in microseconds.

    `unspent_pusd` is the limit minus spending: holds are not subtracted, including those of
    requests that were open when the budget was declared.
    """

    scope: str
    limit_pusd: int
    room_pusd: int
    since_us: int
    resets_at_us: int
    unspent_pusd: int = 0

    def is_for_holds(self, bound_pusd: int) -> bool:
        """Return whether only holds prevent this bound. Most holds end within seconds."""
        return bound_pusd <= self.unspent_pusd
