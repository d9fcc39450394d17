"""Sums of flagged attempts by flag, over all targets, with the meaning of each flag."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.attempt_flags import FLAGS, UNPRICED
from ledger.queries.attempts import FlaggedAttempts


@dataclass(frozen=True, slots=True)
class FlagSum:
    """Sum of one flag. `cost_pusd` is the booked cost, `None` if no price is known."""

    flag: str
    attempts: int
    cost_pusd: int | None
    means: str


def flag_sums(lines: Iterable[FlaggedAttempts]) -> list[FlagSum]:
    """Return the sum of each flag, most expensive first, flags without a price last."""
    sums: dict[str, list[FlaggedAttempts]] = {}
    for line in lines:
        sums.setdefault(line.flag, []).append(line)
    found = [
        FlagSum(
            flag,
            sum(line.attempts for line in group),
            None if flag == UNPRICED else sum(line.cost_pusd for line in group),
            FLAGS.get(flag, ""),
        )
        for flag, group in sums.items()
    ]
    return sorted(
        found, key=lambda line: (line.cost_pusd is None, -(line.cost_pusd or 0), line.flag)
    )
