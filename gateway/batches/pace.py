"""How many lines of one model are out at once: a quarter more while none is refused, then a pause.

Pure; times are seconds by the caller's clock. The idle rule decides about every line alone, and a
refusal costs a few milliseconds of a worker: this only keeps a runner from asking in vain all day.
"""

STEP_S = 0.1  # what went out is taken for admitted after that
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 1.0
BEGIN = 2


class Pace:
    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = min(BEGIN, most)
        self._grown_s = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._until_s = 0.0

    def room(self, out: int, now_s: float) -> int:
        """How many more may go out beside these."""
        if now_s < self._until_s:
            return 0
        if out >= self._allowed and now_s >= self._grown_s + STEP_S:
            self._allowed = min(self._most, out + max(1, out // 4))
            self._grown_s = now_s
        return max(0, self._allowed - out)

    def refused(self, out: int, now_s: float) -> None:
        """No engine was idle enough for one of these `out`."""
        if now_s < self._until_s:
            return  # several went out together: one refusal
        soon = now_s < self._until_s + STEP_S + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S) if soon else FIRST_PAUSE_S
        self._allowed = max(1, out - 1)
        self._until_s = self._grown_s = now_s + self._pause_s
