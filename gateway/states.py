"""The exact inputs of a decision as bytes, so that it can be made again from its record.

A target's state holds for many requests, and is written once for all of them.
"""

from collections.abc import Sequence

import msgspec

from router.frozen import Parts, freeze
from router.types import ApiState, Candidate, EngineState, Policy, Request

INPUTS_LIMIT_BYTES = 4096  # of many candidates, or crowded engines, none are kept
KEPT = 4096  # clients name models of providers, and with them candidates

_encode = msgspec.msgpack.Encoder().encode


class States(Parts):
    """The last state of each target with its bytes; one per planner."""

    __slots__ = ("_states", "_words")

    def __init__(self) -> None:
        self._states: dict[str, tuple[EngineState | ApiState | None, msgspec.Raw]] = {}
        self._words: dict[frozenset[str], msgspec.Raw] = {}

    def inputs(self, request: Request, policy: Policy, candidates: Sequence[Candidate]) -> bytes:
        """Everything that `decide` was given as msgpack; empty where that is too long."""
        whole = _encode(freeze(request, policy, candidates, self))
        return whole if len(whole) <= INPUTS_LIMIT_BYTES else b""

    def state(self, candidate: Candidate) -> msgspec.Raw:
        state = candidate.api if candidate.engine is None else candidate.engine
        known = self._states.get(candidate.name)
        if known is None or known[0] is not state:
            if len(self._states) >= KEPT:
                self._states.clear()
            known = state, msgspec.Raw(_encode(super().state(candidate)))
            self._states[candidate.name] = known
        return known[1]

    def words(self, words: frozenset[str]) -> msgspec.Raw:
        known = self._words.get(words)
        if known is None:  # of a configuration there are few
            known = self._words[words] = msgspec.Raw(_encode(words))
        return known
