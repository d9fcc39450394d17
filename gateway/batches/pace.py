"""The pace of a runner: the number of lines under way, and the batches in turn.

Pure; times are seconds by the caller's clock.
"""

from collections.abc import Sequence

from ledger.batches.store import FINALIZING, VALIDATING, BatchRecord

STEP_S = 0.1  # what went out is taken for admitted after that
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
BEGIN = 2


class LineConcurrency:
    """The number of lines under way for a model: a quarter more until a refusal, then a pause.

    The idle rule decides about every line alone, and a refusal costs a few milliseconds of a
    worker: this only keeps a runner from asking in vain all day.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = min(BEGIN, most)
        self._grown_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._until_s = 0.0

    def additional_lines(self, out: int, now_s: float) -> int:
        """Return how many more lines may be sent beside these."""
        if now_s < self._until_s:
            return 0
        if out >= self._allowed and now_s >= self._grown_s + STEP_S:
            self._allowed = min(self._most, out + max(1, out // 4))
            self._grown_s = now_s
        return max(0, self._allowed - out)

    def record_refusal(self, out: int, now_s: float) -> None:
        """No engine was idle enough for one of these `out`."""
        if now_s < self._until_s:
            return  # several went out together: one refusal
        soon = now_s < self._until_s + STEP_S + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if soon else FIRST_PAUSE_S
        self._allowed = max(1, out - 1)
        self._until_s = self._grown_s = now_s + self._pause_s


LONG = (FINALIZING, VALIDATING)


def select_turns(found: Sequence[BatchRecord]) -> list[BatchRecord]:
    """`found` is ordered by age; what is left out has its turn in a later pass.

    Reading an input file and writing output files take long: one of each per team and pass, so that
    no team waits behind all that another has.
    """
    order = [record for record in found if record.status not in LONG]
    for status in LONG:
        first: dict[str, BatchRecord] = {}
        for record in found:
            if record.status == status:
                first.setdefault(record.team_id, record)
        order += first.values()
    return order
