"""Concurrency of a runner: number of open lines per model, and turns of batches.

No I/O; times are seconds of the caller's clock.
"""

from collections.abc import Sequence

from ledger.batches.store import FINALIZING, VALIDATING, BatchRecord

STEP_S = 0.1  # after this time, sent lines count as admitted
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
BEGIN = 2


class LineConcurrency:
    """Limit of open lines of a model: grows by a quarter until a refusal, then pauses.

    The idle rule decides on each line, and a refusal costs a worker a few milliseconds. This limit
    only reduces the number of refused tries.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = min(BEGIN, most)
        self._grown_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._until_s = 0.0

    def additional_lines(self, out: int, now_s: float) -> int:
        """Return how many more lines may be sent while `out` are open."""
        if now_s < self._until_s:
            return 0
        if out >= self._allowed and now_s >= self._grown_s + STEP_S:
            self._allowed = min(self._most, out + max(1, out // 4))
            self._grown_s = now_s
        return max(0, self._allowed - out)

    def record_refusal(self, out: int, now_s: float) -> None:
        """Record that no engine was idle enough for one of the `out` open lines."""
        if now_s < self._until_s:
            return  # lines sent together count as one refusal
        soon = now_s < self._until_s + STEP_S + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if soon else FIRST_PAUSE_S
        self._allowed = max(1, out - 1)
        self._until_s = self._grown_s = now_s + self._pause_s


LONG = (FINALIZING, VALIDATING)


def select_turns(found: Sequence[BatchRecord]) -> list[BatchRecord]:
    """Return the batches to process in this pass; `found` is ordered by age.

    Reading input and writing output files is slow. So each pass does one of each per team, and no
    team waits for all files of another.
    """
    order = [record for record in found if record.status not in LONG]
    for status in LONG:
        first: dict[str, BatchRecord] = {}
        for record in found:
            if record.status == status:
                first.setdefault(record.team_id, record)
        order += first.values()
    return order
