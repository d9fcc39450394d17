"""Whether refusals were justified: by what could have been held and spent at that time at most.

A caller knows when it asked and when it was told. Between the two its hold may have stood, after
that its cost. A refusal is unjustified if even so there was room for one more bound all the while.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate

from account import Books
from crowd import CallerRecord

LEAVING_S = 3.0  # from a caller's leaving to its settle, at most
TOLD_S = 0.5  # from an answer's last byte to a release that every worker feels


def unjustified(said: list[CallerRecord], books: Books, limit_pusd: int, bound_pusd: int) -> int:
    """Refusals (429) for a budget while `bound_pusd` had room under the limit."""
    costs = {row["request_id"]: (row["bound_pusd"], row["cost_pusd"] or 0)
             for row in books.attempts}  # fmt: skip
    moves: list[tuple[float, int]] = []
    for line in said:
        if line.status == 429:
            continue
        bound, cost = costs.get(line.request_id, (0 if line.request_id else bound_pusd, 0))
        moves.append((line.begun_s, bound))
        moves.append((line.ended_s + (LEAVING_S if line.left else TOLD_S), cost - bound))
    moves.sort(key=lambda move: (move[0], -move[1]))
    times = [at for at, _ in moves]
    totals = [0, *accumulate(change for _, change in moves)]  # totals[n]: after n moves
    wrong = 0
    for line in said:
        if line.status != 429 or line.code != "budget_exceeded":
            continue
        first, last = bisect_left(times, line.begun_s), bisect_right(times, line.ended_s)
        wrong += max(totals[first : last + 1]) + bound_pusd <= limit_pusd
    return wrong
