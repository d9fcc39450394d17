"""A recorded decision is shown in words and figures, and the reading is the router's own."""

from dataclasses import replace

import msgspec
import pytest

from dashboard.sections.decision_table import (
    CandidateView,
    candidates,
    decision_rows,
    omitted,
)
from router.decide import decide
from router.packed import pack, unpack
from router.reasons import REASONS as ROUTER_REASONS
from router.request_kinds import RequestKind
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    Feature,
    OutputMoments,
    Policy,
    RoutingRequest,
    Slo,
    StepModel,
    TargetHealth,
)

STATE = EngineState(
    health=TargetHealth.HEALTHY,
    step=StepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3),
    running=4, waiting=0, context_tokens=4000.0, queued_prefill_tokens=0.0,
    kv_capacity_tokens=100_000, kv_used_tokens=4000.0, kv_promised_tokens=1000.0,
    kv_block_tokens=16, max_num_seqs=256, prefill_budget_tokens=2048,
)  # fmt: skip
OWN = Candidate(
    name="pool:llama/0", pool="llama", features=frozenset(), kinds=frozenset({RequestKind.CHAT}),
    context_tokens=8192, internal=True, expected_pusd=0, bound_pusd=1000, avoided_pusd=2_000_000,
    engine=STATE,
)  # fmt: skip
API = Candidate(
    name="openai/small", pool=None, features=frozenset(Feature), kinds=frozenset(RequestKind),
    context_tokens=128_000, internal=False, expected_pusd=1_000_000, bound_pusd=4_000_000,
    api=ApiState(ttft_median_ms=300.0, tpot_median_ms=15.0, observations=100),
)  # fmt: skip
ASKED = RoutingRequest(
    kind=RequestKind.CHAT, model="chat", prompt_tokens=500, prompt_tokens_bound=900,
    max_tokens=400, output=OutputMoments(count=100, mean=100.0, mean_square=15_000.0, p95=300.0),
)  # fmt: skip
RULE = Policy(name="p", slo=Slo(ttft_ms=500.0, tpot_ms=50.0), penalty_pusd=1_000_000)


def packed(*fleet: Candidate):
    return pack(ASKED, RULE, decide(ASKED, RULE, list(fleet)))


@pytest.mark.parametrize(
    "fleet",
    [
        (OWN, API),
        (OWN, replace(API, cached_tokens=300, cache_saves_pusd=20_000)),
        (replace(OWN, engine=replace(STATE, step=None)), API),
        (replace(OWN, context_tokens=100), replace(API, api=ApiState(circuit_open=True))),
    ],
    ids=["forecast", "cached", "state alone", "refused"],
)
def test_it_reads_what_the_router_reads(fleet: tuple[Candidate, ...]) -> None:
    record = packed(*fleet)
    told = unpack(record)["candidates"]
    seen = candidates(msgspec.msgpack.encode(record))
    assert [candidate.name for candidate in seen] == [item["name"] for item in told]
    for candidate, expected in zip(seen, told, strict=True):
        assert (candidate.reason, candidate.feasible) == (expected["reason"], expected["feasible"])
        for name in ("ttft_ms", "tpot_ms", "objective_pusd"):
            assert getattr(candidate, name) == (
                None if expected[name] is None else pytest.approx(expected[name], rel=1e-6)
            ), name


def test_each_place_of_a_reason_is_its_place_in_the_file() -> None:
    places = [traits.place for traits in ROUTER_REASONS.values()]
    assert places == list(range(len(places)))


def test_rows_have_words_and_no_bytes() -> None:
    (row, other) = decision_rows(
        [
            CandidateView("pool:a/0", "kv_headroom", False),
            CandidateView("b/c", "cheapest", True, 450.0, 15.0, 26_800_000_000.0),
        ]
    )
    assert row["why"] == "engine memory (KV cache) full"
    assert row["compared cost"] is None, "not forecast is not $0"
    assert (other["could serve"], other["first token, s"]) == ("yes", 0.45)
    assert other["compared cost"] == "$0.0268"


def test_targets_beyond_the_record_are_counted_and_another_version_is_refused() -> None:
    record = packed(*(replace(API, name=f"openai/{place}") for place in range(11)))
    assert omitted(msgspec.msgpack.encode(record)) == 3
    with pytest.raises(ValueError, match="another version"):
        candidates(msgspec.msgpack.encode((3, *record[1:])))
