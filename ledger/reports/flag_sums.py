"""Sums of marked attempts by mark, over all targets, each with what the mark means."""

from collections.abc import Iterable
from dataclasses import dataclass

from ledger.attempt_flags import FLAGS, UNPRICED
from ledger.queries.attempts import FlaggedAttempts


@dataclass(frozen=True, slots=True)
class FlagSum:
    """`cost_pusd` is what they are booked at; None where no price of them is known."""

    flag: str
    attempts: int
    cost_pusd: int | None
    means: str


def flag_sums(lines: Iterable[FlaggedAttempts]) -> list[FlagSum]:
    """Return the sum of each flag, the dearest first, those without a price last."""
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
