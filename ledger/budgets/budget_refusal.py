"""A hold that no budget has room for, as it is told to who asked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BudgetRefusal:
    """The budget that has no room, and its window; money is in pico-USD, times in microseconds.

    `unspent_pusd` is what it has not spent: holds are not counted, neither those of requests that
    were under way when it was declared.
    """

    scope: str
    limit_pusd: int
    room_pusd: int
    since_us: int
    resets_at_us: int
    unspent_pusd: int = 0

    def is_for_holds(self, bound_pusd: int) -> bool:
        """Return whether only holds are in the way of such a bound: most end within seconds."""
        return bound_pusd <= self.unspent_pusd
