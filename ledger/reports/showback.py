"""Showback: idle time of own engines shown separately, or shared over teams, exactly.

The ledger stores idle time separately. Sharing is only a display: nothing is posted. No I/O.
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
    """Return each team's part of the idle cost; the parts add up to it exactly.

    The result is empty if idle time is shown separately, or if there is no team to bear it.
    """
    teams = sorted(used)
    if how is IdleShare.APART or not teams or not idle_pusd:
        return {}
    weights = [max(0, used[team]) for team in teams]
    if how is IdleShare.EQUALLY or not any(weights):
        weights = [1] * len(teams)
    return dict(zip(teams, split_largest_remainder(idle_pusd, weights), strict=True))
