"""Exact inputs of decisions, encoded so that a decision can be repeated from its record.

A target's state holds for many requests, and is encoded once for all of them.
"""

from collections.abc import Sequence

import msgspec

from router.snapshot_codec import SnapshotParts, encode
from router.types import ApiState, Candidate, EngineState, Policy, RoutingRequest

INPUTS_LIMIT_BYTES = 4096  # above it, as for many candidates, inputs are not stored
KEPT = 4096  # clients name models of providers, and so create candidates

_encode = msgspec.msgpack.Encoder().encode


_Parts = tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw]
# A target's features, kinds and state at the last use of its name, with their encoded bytes.
_Written = tuple[frozenset[str], frozenset[str], EngineState | ApiState | None, _Parts]


class SnapshotStates(SnapshotParts):
    """The last encoded state of each target; one per planner."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: dict[str, _Written] = {}

    def inputs(
        self, request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate]
    ) -> bytes:
        """Return all inputs of `decide` as msgpack, empty above `INPUTS_LIMIT_BYTES`."""
        whole = _encode(encode(request, policy, candidates, self))
        return whole if len(whole) <= INPUTS_LIMIT_BYTES else b""

    def of(self, candidate: Candidate) -> _Parts:
        features, kinds = candidate.features, candidate.kinds
        state = candidate.api if candidate.engine is None else candidate.engine
        known = self._written.get(candidate.name)
        if known is None:
            if len(self._written) >= KEPT:
                self._written.clear()
            can, does = _raw(features), _raw(kinds)
        else:
            could, did, was, parts = known
            alike = could is features and did is kinds
            if alike and was is state:
                return parts
            can, does = parts[:2] if alike else (_raw(features), _raw(kinds))
        parts = can, does, _raw(self.state(candidate))
        self._written[candidate.name] = features, kinds, state, parts
        return parts


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))
