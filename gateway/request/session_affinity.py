"""Memory of the target that each session used last: bounded, per worker, oldest dropped.

Sticky routing is a preference: the router uses the target only while it is feasible.
"""

from collections import OrderedDict

LIMIT = 65_536


class SessionAffinity:
    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._targets: OrderedDict[str, str] = OrderedDict()

    def target(self, session: str) -> str | None:
        return self._targets.get(session)

    def remember(self, session: str, target: str) -> None:
        self._targets[session] = target
        self._targets.move_to_end(session)
        if len(self._targets) > self._limit:
            self._targets.popitem(last=False)
