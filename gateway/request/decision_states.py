"""The exact inputs of a decision as bytes, so that it can be made again from its record.

A target's state holds for many requests, and is written once for all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from router.snapshot_codec import SnapshotParts, encode
from router.types import ApiState, Candidate, EngineState, Policy, RoutingRequest

INPUTS_LIMIT_BYTES = 4096  # of many candidates, or crowded engines, none are kept
KEPT = 4096  # clients name models of providers, and with them candidates

_encode = msgspec.msgpack.Encoder().encode


class _WrittenParts(NamedTuple):
    """A target's parts as the last candidate of its name had them, and their bytes."""

    features: frozenset[str]
    kinds: frozenset[str]
    state: EngineState | ApiState | None
    parts: tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw]


class SnapshotStates(SnapshotParts):
    """The last parts of each target with their bytes; one per planner."""

    __slots__ = ("_written",)

    def __init__(self) -> None:
        self._written: dict[str, _WrittenParts] = {}

    def inputs(
        self, request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate]
    ) -> bytes:
        """Everything that `decide` was given as msgpack; empty where that is too long."""
        whole = _encode(encode(request, policy, candidates, self))
        return whole if len(whole) <= INPUTS_LIMIT_BYTES else b""

    def of(self, candidate: Candidate) -> tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw]:
        features, kinds = candidate.features, candidate.kinds
        state = candidate.api if candidate.engine is None else candidate.engine
        known = self._written.get(candidate.name)
        if known is not None and known.features is features and known.kinds is kinds:
            if known.state is state:
                return known.parts
            can, does, _ = known.parts
        else:
            can, does = _raw(features), _raw(kinds)
        if known is None and len(self._written) >= KEPT:
            self._written.clear()
        parts = can, does, _raw(self.state(candidate))
        self._written[candidate.name] = _WrittenParts(features, kinds, state, parts)
        return parts


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(value))
