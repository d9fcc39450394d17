"""Places for uploads in a worker: so many in all, of which one team has a share at most."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from gateway.errors import RequestError

RETRY_AFTER_S = 1.0


class Places:
    def __init__(self, most: int, share: int) -> None:
        self._most = most
        self._share = share
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, team_id: str) -> Iterator[None]:
        """A place for as long as this is open; 503 without waiting where none is left."""
        if self._open[team_id] >= self._share:
            raise _full(f"The team has {self._share} uploads open here, and may have no more.")
        if self._open.total() >= self._most:
            raise _full("Too many uploads are open here.")
        self._open[team_id] += 1
        try:
            yield
        finally:
            self._open[team_id] -= 1
            self._open += Counter()  # teams without one are forgotten


def _full(message: str) -> RequestError:
    return RequestError("overloaded", message, retry_after_s=RETRY_AFTER_S)
