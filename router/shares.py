"""Traffic shares of requests by a stable hash, so that the assignment never flickers.

A key has the same position in [0, 1) in every process and after every restart, and keys spread
evenly, so each share receives its configured fraction in the long run. A share that grows keeps its
earlier keys: positions below 0.05 are also below 0.10.
"""

from collections.abc import Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import NamedTuple

from router.reasons import Reason, Rejection
from router.types import Preference

_WHOLE = 2.0**64
NOBODY: Mapping[str, Rejection] = MappingProxyType({})


def position_of(salt: str, key: str) -> float:
    """Return a position in [0, 1); `salt` makes shares of different rules independent."""
    digest = blake2b(f"{salt}\x00{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    # The upper 53 bits: all 64 could round up to 1.
    return (int.from_bytes(digest, "big") >> 11 << 11) / _WHOLE


class SplitPart(NamedTuple):
    """The candidates of one target, and its weight in the split (any positive unit)."""

    names: frozenset[str]
    weight: float


class Canary(NamedTuple):
    """Candidates that get `share` (0 to 1) of the requests, and none of the others."""

    names: frozenset[str]
    share: float


class TrafficSplit(NamedTuple):
    """Shares of a rule's requests: first the canary, then the other parts by weight."""

    salt: str
    canary: Canary | None = None
    parts: tuple[SplitPart, ...] = ()

    def of(self, key: str) -> tuple[Preference | None, Mapping[str, Rejection]]:
        """Return the targets that this request prefers, and the targets that are barred for it."""
        kept = NOBODY
        canary = self.canary
        if canary is not None:
            if position_of(f"{self.salt}\x00canary", key) < canary.share:
                return Preference(canary.names, Reason.CANARY), NOBODY
            detail = f"serves {100.0 * canary.share:g} % of the requests"
            kept = dict.fromkeys(canary.names, (Reason.CANARY, detail))
        if not self.parts:
            return None, kept
        left = position_of(self.salt, key) * sum(part.weight for part in self.parts)
        for part in self.parts:
            left -= part.weight
            if left < 0.0:
                break
        return Preference(part.names, Reason.WEIGHT), kept
