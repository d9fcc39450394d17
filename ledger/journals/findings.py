"""Findings: damage at one place of a journal, and the highest cost of lost rows. No I/O."""

import msgspec

from ledger.journals.scan import Damage
from ledger.money import format_usd

_PLACES = 4


class LackingBound(msgspec.Struct, frozen=True):
    """The highest cost of rows that may be missing behind a place, in pico-USD.

    `at_most_pusd` is `None` if no hard budget bounds all requests of the worker. `budgets_pusd`
    bounds the part that counts on hard budgets.
    """

    at_most_pusd: int | None = None
    budgets_pusd: int = 0

    @property
    def text(self) -> str:
        if self.at_most_pusd is not None:
            return f"at most {format_usd(self.at_most_pusd, _PLACES)}"
        if self.budgets_pusd:
            within = format_usd(self.budgets_pusd, _PLACES)
            return f"at most {within} within hard budgets, beyond them an unknown amount"
        return "an unknown amount"


UNKNOWN_BOUND = LackingBound()


class JournalFinding(msgspec.Struct, frozen=True):
    """A place in a journal where data is damaged or missing.

    `after` is the last sequence number before it. `missing` is the count of missing numbers, `None`
    if unknown.
    """

    journal: str
    worker: str
    segment: int
    offset: int
    after: int
    missing: int | None
    reason: str
    bound: LackingBound = UNKNOWN_BOUND

    @property
    def text(self) -> str:
        """Return a sentence that describes the damage."""
        if self.missing == 0:
            return f"damaged behind record {self.after}, no record lacks: {self.reason}"
        count = "rows" if self.missing is None else f"{self.missing} records"
        return f"may lack {count} after record {self.after}, {self.bound.text}: {self.reason}"


def finding_of(
    damage: Damage, journal: str, worker: str, segment: int, bound: LackingBound
) -> JournalFinding:
    return JournalFinding(
        journal,
        worker,
        segment,
        damage.start,
        damage.after,
        damage.missing,
        damage.reason,
        bound if damage.missing != 0 else LackingBound(0, 0),
    )
