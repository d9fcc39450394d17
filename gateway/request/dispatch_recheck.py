"""Second decision for requests sent to an engine that other hosts use as well.

Load news between hosts is delayed (`gateway.fleet.peers`), so in a burst two hosts may give away
the same engine time. A request without a first token is decided once more (`router.recheck`) when
the other hosts' load at its dispatch is known. If it would then have gone to an API, it goes to its
next candidate. Workers of one host share their load in memory and need no second decision.
"""

import asyncio
from collections.abc import Callable

from backends.errors import DispatchSuperseded
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.silent_engine import FirstTokenWait
from gateway.table_layout import LoadCell
from router.recheck import PeerLoad, is_still_first

LOOK_S = 0.05  # usual delay of news: a tick of the sending host, and one of this host


class DispatchRecheck:
    """The recheck of one worker on a host that exchanges load with other hosts."""

    def __init__(self, board: SharedLoadTable) -> None:
        self._board, self._peers = board, PeerLoadRow(board)

    def schedule_recheck(self, wait: FirstTokenWait) -> None:
        """Schedule the second decision of a request that is dispatched now."""
        attempt = wait.attempt
        # Only for the first try: later candidates come from the same decision.
        if attempt.number > 1 or attempt.last or attempt.plan.changed or not self._peers.hosts:
            return
        known = self._peers.hosts, self._others(attempt.step.frozen.target.row)
        asyncio.get_running_loop().call_later(LOOK_S, self._recheck_wait, wait, *known)

    def _recheck_wait(self, wait: FirstTokenWait, hosts: int, known: PeerLoad) -> None:
        attempt = wait.attempt
        # `tries` is None once an answer begins. All load of a newly seen host is no news.
        if not (wait.waits and wait.counts) or attempt.tries is None or self._peers.hosts != hosts:
            return
        missed = self._others(attempt.step.frozen.target.row).beyond(known)
        if max(missed) <= 0.0:
            return
        plan = attempt.plan
        candidates = [entry.candidate for entry in plan.frozen]
        chosen = attempt.step.verdict.candidate.name
        if not is_still_first(plan.request, plan.policy, candidates, chosen, missed):
            wait.move(DispatchSuperseded("another host had given the engine's time away"))

    def _others(self, engine: int) -> PeerLoad:
        row, cells = self._board.peers_row(engine), self._board.cells
        return PeerLoad(
            cells[row + LoadCell.SEQUENCES],
            cells[row + LoadCell.CONTEXT_TOKENS],
            cells[row + LoadCell.QUEUED_PREFILL_TOKENS],
            cells[row + LoadCell.PROMISED_TOKENS],
        )


def recheck_of(board: SharedLoadTable, *, peers: bool) -> Callable[[FirstTokenWait], None] | None:
    """Return the callback for each dispatch to an engine; `None` without other hosts."""
    return DispatchRecheck(board).schedule_recheck if peers else None
