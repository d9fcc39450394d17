"""Which open batches a runner takes a step further in one pass, and in which order. Pure.

Reading an input file and writing output files take long: one of each per team and pass, so that no
team waits behind all that another has. What is quick comes first, and what ends before what begins.
"""

from collections.abc import Sequence

from ledger.batches.store import FINALIZING, VALIDATING, BatchRecord

LONG = (FINALIZING, VALIDATING)


def in_turn(found: Sequence[BatchRecord]) -> list[BatchRecord]:
    """`found` is ordered by age; what is left out has its turn in a later pass."""
    order = [one for one in found if one.status not in LONG]
    for status in LONG:
        first: dict[str, BatchRecord] = {}
        for one in found:
            if one.status == status:
                first.setdefault(one.team_id, one)
        order += first.values()
    return order
