"""Frozen inputs come back as they were, and make the same decision; versions are told apart."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router import snapshot_codec
from router.decide import decide
from router.prompts import PromptPrefix, RequestUnits
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.snapshot_codec import decode, encode, names_of
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    Feature,
    InfeasibleAction,
    OutputMoments,
    Policy,
    Preference,
    Residency,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)

# Of version 1. A new field is last and has a default, and is counted here: stored inputs are read
# with the default. A field that leaves or moves makes another version.
FIELDS = {RoutingRequest: 25, Policy: 8, Candidate: 22, EngineState: 26, ApiState: 10, Slo: 4,
          StepModel: 6, OutputMoments: 5, RequestUnits: 11}  # fmt: skip
# One member fewer than the first inputs of this version had.
_SHORT_POLICY = snapshot_codec._POLICY_LEAST - 1
_SHORT_CANDIDATE = snapshot_codec._CANDIDATE_LEAST - 1
STEP = StepModel(4.79e-3, 28e-6, 46.8e-9, 27.8e-6, 13.8e-3)
CHAT = frozenset({RequestKind.CHAT})


def engine(**changes):
    values = {
        "health": TargetHealth.HEALTHY, "step": STEP, "running": 3, "waiting": 1,
        "context_tokens": 4000.5, "queued_prefill_tokens": 100.0, "kv_capacity_tokens": 480_000,
        "kv_used_tokens": 4100.5, "kv_promised_tokens": 900.25, "kv_block_tokens": 16,
        "max_num_seqs": 256, "prefill_budget_tokens": 2048, "residents": ((10.0, 90.0, 0.5),),
    }  # fmt: skip
    return EngineState(**values | changes)


def candidates(**changes):
    own = Candidate("pool:a/0", "a", frozenset({Feature.TOOLS}), CHAT, 8192, True, 0, 10,
                    2_000_000_000, None, 1.5, engine=engine(**changes))  # fmt: skip
    api = Candidate("x/m", None, frozenset(), CHAT, 10**6, False, 3_000_000_000, 9 * 10**9,
                    api=ApiState(observations=4, ttft_median_ms=412.5))  # fmt: skip
    return own, api


def asked(**changes):
    moments = OutputMoments(40, 100.5, 20_000.25, float("inf"))
    return RoutingRequest(RequestKind.CHAT, "chat", 500, 550, 200, moments, **changes)


POLICY = Policy("p", Slo(500.0, 50.0, 0.99), 0.1, 10**9, None, InfeasibleAction.QUEUE)


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_the_version_stands_for_these_fields(kind) -> None:
    assert len(names_of(kind)) == FIELDS[kind]


def test_each_field_of_a_candidate_stands_in_its_place() -> None:
    apart = ("engine", "api", "prefillers")
    names = [name for name in names_of(Candidate) if name not in apart]
    offered = Candidate(**{name: name for name in names}, api=ApiState())
    _, _, _, (frozen,) = encode(asked(), POLICY, [offered])
    named = dict(zip(names_of(Candidate), frozen, strict=True))
    assert {name: named[name] for name in names} == {name: name for name in names}
    assert (named["engine"], len(named["api"])) == (None, FIELDS[ApiState])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"features": frozenset({Feature.TOOLS}), "residency": Residency.INTERNAL_ONLY},
        {"sticky_target": "x/m", "salted": True, "n": 3},
        {"extent": RequestUnits(0.5, 1, 2, 3, 4, True)},
        {"preferred": Preference(frozenset({"x/m"}), Reason.CANARY)},
        {"barred": {"x/m": (Reason.QUALITY, "loses 4 %")}},
        {"has_sound": True, "text_prompt": True},
        {"has_sound": True},
        {"without_pictures": True, "service_tier": "flex"},
    ],
)
def test_what_was_frozen_comes_back(changes) -> None:
    given_values = asked(**changes), POLICY, candidates()
    assert decode(encode(*given_values)) == given_values


def test_what_was_frozen_before_a_request_had_another_member_is_read() -> None:
    version, request, *others = encode(asked(), POLICY, candidates())
    assert decode([version, request[:15], *others])[0] == decode([version, request, *others])[0]


@pytest.mark.parametrize("kind", [Policy, Candidate, EngineState, ApiState])
def test_what_was_frozen_before_a_class_had_another_member_is_read(kind, monkeypatch) -> None:
    """The member is last and has a default, which it then has: `decode` leaves it to the class."""
    given_values = asked(), POLICY, candidates()
    frozen = encode(*given_values)
    name = {Policy: "_POLICY", Candidate: "_CANDIDATE", EngineState: "_ENGINE", ApiState: "_API"}
    monkeypatch.setattr(snapshot_codec, name[kind], (*names_of(kind), "new"))
    assert decode(frozen) == given_values


@pytest.mark.parametrize(
    "short",
    [
        lambda request, policy, both: (request, policy[:_SHORT_POLICY], both),
        lambda request, policy, both: (request, policy, [both[0][:_SHORT_CANDIDATE], both[1]]),
        lambda request, policy, both: (request, [*policy, 1], both),
    ],
)
def test_fewer_or_more_members_than_any_version_wrote_are_told(short) -> None:
    version, *frozen = encode(asked(), POLICY, candidates())
    with pytest.raises(ValueError, match="members of"):
        decode((version, *short(*frozen)))


def test_without_a_step_or_a_state_too() -> None:
    own, api = candidates(step=None, health=TargetHealth.UNKNOWN)
    given_values = asked(), POLICY, (own, replace(api, api=None))
    assert decode(encode(*given_values)) == given_values


@given(
    running=st.integers(0, 300), context=st.floats(0, 1e6), queued=st.floats(0, 1e5),
    used=st.floats(0, 5e5), feedback=st.floats(0.1, 3), prompt=st.integers(1, 8000),
    price=st.floats(0, 1e10),
)  # fmt: skip
def test_the_same_decision_follows(running, context, queued, used, feedback, prompt, price) -> None:
    own, api = candidates(
        running=running, context_tokens=context, queued_prefill_tokens=queued,
        kv_used_tokens=used, step_feedback=feedback,
    )  # fmt: skip
    own = replace(own, bid_price_pusd_per_s=price)
    request = replace(asked(), prompt_tokens=prompt)
    frozen = encode(request, POLICY, (own, api))
    assert decide(*decode(frozen)) == decide(request, POLICY, (own, api))


def test_one_input_changed_is_another_decision() -> None:
    """The negative control: what is frozen is what decides."""
    frozen = encode(asked(), POLICY, candidates())
    request, policy, (own, api) = decode(frozen)
    assert decide(request, policy, (own, api)).first_choice.candidate.name == "pool:a/0"
    late = replace(policy, slo=replace(policy.slo, ttft_ms=1.0))
    assert decide(request, late, (own, api)).first_choice.candidate.name == "x/m"
    away = replace(own, engine=replace(own.engine, health=TargetHealth.DOWN))
    assert decide(request, policy, (away, api)).first_choice.candidate.name == "x/m"


def test_of_a_prompt_nothing_is_kept() -> None:
    begun = asked(beginning=PromptPrefix((123_456_789,), 3, 40))
    assert decode(encode(begun, POLICY, candidates()))[0] == asked()
    assert "123456789" not in str(encode(begun, POLICY, candidates()))


def test_another_version_is_told() -> None:
    with pytest.raises(ValueError, match="version 9"):
        decode((9, [], [], []))
