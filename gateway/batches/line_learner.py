"""Lines of providers' batches teach what the host's next requests are held for."""

from collections.abc import Callable
from functools import partial

from gateway.clock import Clock
from gateway.fleet.estimate_table import EstimateTable
from gateway.http.body import decode_members
from gateway.kinds.thinking import asks_to_think
from gateway.request.limit_overruns import LimitOverrun
from ledger.batches.outgoing import OutLine


class LineLearner:
    """One per runner: it writes the table that the host's workers read, where there is one."""

    def __init__(self, estimates: EstimateTable | None = None, clock: Clock | None = None) -> None:
        self._output = None if estimates is None else estimates.target_output
        self._clock = clock or Clock()

    def learn_of(self, target: str) -> Callable[[OutLine, str, LimitOverrun], None]:
        """Return what takes each line that was billed beyond its limit, and its team."""
        return partial(self._learn, target)

    def _learn(self, target: str, line: OutLine, team: str, overrun: LimitOverrun) -> None:
        if self._output is not None:
            thinks, now_s = asks_to_think(decode_members(line.body)), self._clock.wall_us() / 1e6
            self._output.observe_overrun(target, overrun.tokens, now_s, team=team, thinks=thinks)
