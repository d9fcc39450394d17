"""Builders of the router's values with unremarkable defaults: a test names what matters to it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

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

STEP = StepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3)
STATE = EngineState(
    health=TargetHealth.HEALTHY,
    step=STEP,
    running=4,
    waiting=0,
    context_tokens=4000.0,
    queued_prefill_tokens=0.0,
    kv_capacity_tokens=100_000,
    kv_used_tokens=4000.0,
    kv_promised_tokens=1000.0,
    kv_block_tokens=16,
    max_num_seqs=256,
    prefill_budget_tokens=2048,
)
OWN = Candidate(
    name="pool:llama/0",
    pool="llama",
    features=frozenset({Feature.TOOLS, Feature.N}),
    kinds=frozenset({RequestKind.CHAT, RequestKind.COMPLETION, RequestKind.EMBEDDING}),
    context_tokens=8192,
    internal=True,
    expected_pusd=0,
    bound_pusd=1000,
    avoided_pusd=2_000_000,
    engine=STATE,
)
API = Candidate(
    name="openai/small",
    pool=None,
    features=frozenset(Feature),
    kinds=frozenset(RequestKind),
    context_tokens=128_000,
    internal=False,
    expected_pusd=1_000_000,
    bound_pusd=4_000_000,
    api=ApiState(ttft_median_ms=300.0, tpot_median_ms=15.0, observations=100),
)


@pytest.fixture(scope="session")
def ask() -> Callable[..., RoutingRequest]:
    def build(**changes: object) -> RoutingRequest:
        return replace(
            RoutingRequest(
                kind=RequestKind.CHAT,
                model="chat-large",
                prompt_tokens=500,
                prompt_tokens_bound=900,
                max_tokens=400,
                output=OutputMoments(count=100, mean=100.0, mean_square=15_000.0, p95=300.0),
            ),
            **changes,
        )

    return build


@pytest.fixture(scope="session")
def rule() -> Callable[..., Policy]:
    def build(**changes: object) -> Policy:
        return replace(
            Policy(name="p", slo=Slo(ttft_ms=500.0, tpot_ms=50.0), penalty_pusd=1_000_000),
            **changes,
        )

    return build


@pytest.fixture(scope="session")
def own() -> Callable[..., Candidate]:
    """An own engine: fields of the candidate, and of its state in `state`."""

    def build(state: dict[str, object] | None = None, **changes: object) -> Candidate:
        return replace(OWN, engine=replace(STATE, **(state or {})), **changes)

    return build


@pytest.fixture(scope="session")
def api() -> Callable[..., Candidate]:
    def build(state: dict[str, object] | None = None, **changes: object) -> Candidate:
        return replace(API, api=replace(API.api, **(state or {})), **changes)

    return build
