"""Showback: idle time of own engines apart, or shared over teams, and still the bill to the unit.

Apart is what the books have. Shared is a way to read them: nothing is posted. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum

from ledger.money import split_largest_remainder


class IdleShare(StrEnum):
    """The display of idle and unavailable time."""

    APART = "apart"
    BY_USE = "shared by use"
    EQUALLY = "shared equally"


def share_idle(used: Mapping[str, int], idle_pusd: int, how: IdleShare) -> dict[str, int]:
    """Return each team's part of the idle cost; together they are all of it, to the unit.

    Empty where idle time stays apart, or where no team is there to bear it.
    """
    teams = sorted(used)
    if how is IdleShare.APART or not teams or not idle_pusd:
        return {}
    weights = [max(0, used[team]) for team in teams]
    if how is IdleShare.EQUALLY or not any(weights):
        weights = [1] * len(teams)
    return dict(zip(teams, split_largest_remainder(idle_pusd, weights), strict=True))
