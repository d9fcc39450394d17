"""Learning from lines of providers' batches: output beyond the limit raises later holds."""

from collections.abc import Callable
from functools import partial

from gateway.clock import Clock
from gateway.fleet.estimate_table import EstimateTable
from gateway.http.body import decode_members
from gateway.kinds.inference_request import NEWER_LIMIT
from gateway.kinds.thinking import asks_to_think
from gateway.request.limit_overruns import LimitOverrun, has_newer_alone
from gateway.request.request_parser import CAP_NAMES
from ledger.batches.outgoing import OutLine


class LineLearner:
    """Learner of one runner; writes the estimates that the host's workers read, if any."""

    def __init__(self, estimates: EstimateTable | None = None, clock: Clock | None = None) -> None:
        self._output = None if estimates is None else estimates.target_output
        self._clock = clock or Clock()

    def learn_of(self, target: str) -> Callable[[OutLine, str, LimitOverrun], None]:
        """Return a function that records an overrun of a line, with its team, for this target."""
        return partial(self._learn, target)

    def _learn(self, target: str, line: OutLine, team: str, overrun: LimitOverrun) -> None:
        if self._output is None:
            return
        members, now_s = decode_members(line.body), self._clock.wall_us() / 1e6
        knows_newer = CAP_NAMES.get(target.partition("/")[0]) == NEWER_LIMIT
        if overrun.is_text and has_newer_alone(members) and not knows_newer:
            self._output.observe_unknown_limit(target, now_s)
        else:
            thinks = asks_to_think(members)
            self._output.observe_overrun(target, overrun.tokens, now_s, team=team, thinks=thinks)
