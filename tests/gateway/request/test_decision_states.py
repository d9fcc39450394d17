"""What a decision was given is written the same, whether or not a state was written before."""

from dataclasses import replace

import msgspec

from gateway.request.decision_states import INPUTS_LIMIT_BYTES, KEPT, SnapshotStates
from router.request_kinds import RequestKind
from router.snapshot_codec import decode, encode
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    Feature,
    OutputMoments,
    Policy,
    RoutingRequest,
    StepModel,
    TargetHealth,
)

REQUEST = RoutingRequest(
    RequestKind.CHAT, "m", 500, 900, 128, OutputMoments(40, 100.0, 12_000.0, 300.0)
)
POLICY = Policy("p")
ENGINE = EngineState(
    TargetHealth.HEALTHY,
    StepModel(5e-3, 3e-5, 5e-8, 3e-5, 0.01),
    3,
    0,
    4000.0,
    0.0,
    400_000,
    4000.0,
    900.0,
    16,
    256,
    2048,
)
OWN = Candidate(
    "pool:a/0", "a", frozenset((Feature.N,)), frozenset((RequestKind.CHAT,)), 32_768, True, 0, 7,
    engine=ENGINE,
)  # fmt: skip
API = Candidate("x/m", None, frozenset(), OWN.kinds, 10**6, False, 5, 9, api=ApiState())


def plainly(*candidates: Candidate) -> object:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(encode(REQUEST, POLICY, candidates)))


def test_a_state_that_was_written_before_reads_the_same() -> None:
    states = SnapshotStates()
    for bound in (7, 8, 9):  # the candidate is another one for each request, its state is not
        asked = replace(OWN, bound_pusd=bound), API, replace(API, name="y/m", api=None)
        found = msgspec.msgpack.decode(states.inputs(REQUEST, POLICY, asked))
        assert found == plainly(*asked)
        assert decode(found) == (REQUEST, POLICY, asked)


def test_a_new_state_is_written_anew() -> None:
    states = SnapshotStates()
    states.inputs(REQUEST, POLICY, (OWN,))
    fuller = replace(OWN, engine=replace(ENGINE, running=4))
    found = msgspec.msgpack.decode(states.inputs(REQUEST, POLICY, (fuller,)))
    assert found == plainly(fuller) != plainly(OWN)


def test_names_that_clients_make_up_are_not_kept_for_ever() -> None:
    states = SnapshotStates()
    for number in range(KEPT + 1):
        states.of(replace(API, name=f"x/{number}"))
    assert len(states._written) <= KEPT


def test_other_words_are_written_anew() -> None:
    states = SnapshotStates()
    states.inputs(REQUEST, POLICY, (OWN,))
    asked = (
        replace(OWN, features=frozenset()),
        replace(OWN, kinds=frozenset((RequestKind.EMBEDDING,))),
    )
    for other in asked:
        found = msgspec.msgpack.decode(states.inputs(REQUEST, POLICY, (other,)))
        assert found == plainly(other) != plainly(OWN)


def test_what_is_too_long_is_not_kept() -> None:
    many = [replace(OWN, name=f"pool:a/{number}") for number in range(40)]
    assert len(SnapshotStates().inputs(REQUEST, POLICY, many[:5])) <= INPUTS_LIMIT_BYTES
    assert SnapshotStates().inputs(REQUEST, POLICY, many) == b""
