"""What holds for every decision, and for a long run of them on a toy engine."""

import math
from collections import deque
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.decide import decide
from router.filters import FILTERS, FORECAST_FILTERS, first_rejection, forecast_rejection
from router.forecast import forecast_engine, work_of
from router.objective import forecast_api
from router.reasons import PERMANENT, Reason
from router.request_kinds import RequestKind
from router.types import (
    Feature,
    InfeasibleAction,
    OutputMoments,
    Policy,
    Preference,
    Residency,
    Slo,
    TargetHealth,
)

BROKEN = {
    Reason.UNKNOWN_STATE, Reason.UNHEALTHY, Reason.LOADING, Reason.DRAINING,
    Reason.DISABLED,  # one that was stopped on purpose
}  # fmt: skip
SLOS = st.sampled_from([Slo(), Slo(ttft_ms=200.0), Slo(ttft_ms=500.0, tpot_ms=20.0, strict=True)])
REQUESTS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(RequestKind),
        "prompt_tokens": st.integers(1, 6000),
        "max_tokens": st.none() | st.integers(1, 4000),
        "n": st.integers(1, 4),
        "residency": st.sampled_from(Residency),
        "sticky_target": st.none() | st.sampled_from(["own-1", "api-2"]),
        "salted": st.booleans(),
        "preferred": st.none()
        | st.builds(
            Preference,
            st.frozensets(st.sampled_from(["own-0", "own-2", "api-0", "api-1"])),
            st.sampled_from([Reason.WEIGHT, Reason.CANARY]),
        ),
        "barred": st.none()
        | st.dictionaries(
            st.sampled_from(["own-0", "own-1", "api-0"]), st.just((Reason.CANDIDATES, "others"))
        ),
    }
)
# By field of a policy; its name decides nothing, and what `content` does happened before.
POLICY_FIELDS = {
    "slo": SLOS,
    "kv_headroom_floor": st.none() | st.floats(0, 1),
    "penalty_pusd": st.integers(0, 10**10),
    "max_cost_pusd": st.none() | st.integers(0, 10**7),
    "otherwise": st.sampled_from(InfeasibleAction),
    "residency": st.sampled_from(Residency),
}
POLICIES = st.fixed_dictionaries(POLICY_FIELDS)
ENGINES = st.fixed_dictionaries(
    {
        "running": st.integers(0, 256),
        "context_tokens": st.floats(0, 1e5),
        "queued_prefill_tokens": st.floats(0, 2e4),
        "kv_used_tokens": st.floats(0, 1.2e5),
        "prefix_hit_tokens": st.integers(0, 8000),
        "tightest_tpot_ms": st.none() | st.floats(5, 100),
    }
)
OWN_CHANGES = st.fixed_dictionaries(
    {
        "pool": st.sampled_from([None, "a", "b"]),
        "accepts_salt": st.booleans(),
        "bid_price_pusd_per_s": st.sampled_from([0.0, 1e6, 1e12]),
    }
)
APIS = st.fixed_dictionaries(
    {
        "ttft_median_ms": st.none() | st.floats(10, 1e4),
        "circuit_open": st.booleans(),
        "requests_left": st.none() | st.integers(0, 2),
    }
)
API_CHANGES = st.fixed_dictionaries({"expected_pusd": st.none() | st.integers(0, 10**7)})
FLEETS = st.tuples(
    st.lists(st.tuples(ENGINES, OWN_CHANGES), max_size=4),
    st.lists(st.tuples(APIS, API_CHANGES), max_size=3),
)


@pytest.fixture(scope="session")
def fleet_of(own, api):
    def build(fleet):
        engines, apis = fleet
        return [
            *(own(s, name=f"own-{i}", **c) for i, (s, c) in enumerate(engines)),
            *(api(s, name=f"api-{i}", **c) for i, (s, c) in enumerate(apis)),
        ]

    return build


def test_policies_are_drawn_with_every_field() -> None:
    undrawn = {field.name for field in fields(Policy)} - {"name", "content"} - POLICY_FIELDS.keys()
    assert not undrawn, f"add {undrawn} to POLICY_FIELDS"


@given(asked=REQUESTS, policy=POLICIES, fleet=FLEETS, data=st.data())
def test_the_order_of_the_candidates_does_not_matter(
    ask, rule, fleet_of, asked, policy, fleet, data
):
    candidates = fleet_of(fleet)
    shuffled = data.draw(st.permutations(candidates))
    request, terms = ask(**asked), rule(**policy)
    assert decide(request, terms, candidates) == decide(request, terms, shuffled)


@given(asked=REQUESTS, policy=POLICIES, fleet=FLEETS)
def test_every_candidate_has_one_verdict_and_every_feasible_one_is_tried(
    ask, rule, fleet_of, asked, policy, fleet
):
    candidates = fleet_of(fleet)
    decision = decide(ask(**asked), rule(**policy), candidates)
    named = [verdict.candidate.name for verdict in decision.verdicts]
    assert sorted(named) == sorted(candidate.name for candidate in candidates)
    assert decision.verdicts[: len(decision.order)] == decision.order
    feasible = {verdict.candidate.name for verdict in decision.verdicts if verdict.feasible}
    tried = {verdict.candidate.name for verdict in decision.order}
    assert tried == feasible or (not feasible and decision.reason is Reason.BEST_EFFORT)


@given(
    asked=REQUESTS,
    policy=POLICIES,
    fleet=FLEETS,
    broken=st.sampled_from(
        [
            {"kv_used_tokens": math.nan},
            {"queued_prefill_tokens": math.inf},
            {"context_tokens": -1.0},
            {"kv_capacity_tokens": 0},
            {"step": None, "tightest_ttft_ms": 100.0},
            *({"health": health} for health in TargetHealth if health is not TargetHealth.HEALTHY),
        ]
    ),
)
def test_a_broken_engine_is_never_chosen_and_never_changes_the_choice(
    ask, rule, own, fleet_of, asked, policy, fleet, broken
):
    asked["kind"] = RequestKind.CHAT
    candidates = fleet_of(fleet)
    request, terms = ask(**asked), rule(**policy)
    alone = decide(request, terms, candidates)
    idle = {"running": 0, "context_tokens": 0.0, "kv_used_tokens": 0.0}
    lure = own({**idle, **broken}, name="lure", pool="a", avoided_pusd=10**12)
    joined = decide(request, terms, [lure, *candidates])
    assert joined.order == alone.order
    verdict = next(v for v in joined.verdicts if v.candidate is lure)
    assert verdict.reason in BROKEN | PERMANENT


@given(asked=REQUESTS, policy=POLICIES, fleet=FLEETS, price=st.floats(0, 1e15))
def test_who_may_not_leave_is_served_at_any_price(ask, rule, fleet_of, asked, policy, fleet, price):
    asked["residency"] = Residency.INTERNAL_ONLY
    candidates = fleet_of(fleet)
    request, terms = ask(**asked), rule(**policy)
    cheap = decide(request, terms, [replace(c, bid_price_pusd_per_s=0.0) for c in candidates])
    dear = decide(request, terms, [replace(c, bid_price_pusd_per_s=price) for c in candidates])
    assert bool(cheap.order) is bool(dear.order)
    assert all(verdict.candidate.internal for verdict in dear.order)


@given(asked=REQUESTS, policy=POLICIES, fleet=FLEETS)
def test_the_chains_are_the_tuples(ask, rule, fleet_of, asked, policy, fleet):
    request, terms = ask(**asked), rule(**policy)
    work = work_of(request, terms)
    for candidate in fleet_of(fleet):
        answers = [check(request, terms, candidate) for check in FILTERS]
        assert first_rejection(request, terms, candidate) == next(filter(None, answers), None)
        if any(answers):
            continue
        forecast = (
            forecast_engine(work, candidate, candidate.engine)
            if candidate.engine
            else forecast_api(work, candidate)
        )
        later = [check(terms, candidate, forecast) for check in FORECAST_FILTERS]
        assert forecast_rejection(terms, candidate, forecast) == next(filter(None, later), None)


# By filter: changes of the request, the policy and the candidate that it alone objects to.
OBJECTIONS = {
    "kind": ({}, {}, {"kinds": frozenset({RequestKind.EMBEDDING})}),
    "features": ({"features": frozenset({Feature.IMAGES})}, {}, {"features": frozenset()}),
    "health": ({}, {}, {"state": {"health": TargetHealth.DOWN}}),
    "context": ({}, {}, {"context_tokens": 800}),
    "residency": ({"residency": Residency.INTERNAL_ONLY}, {}, {"internal": False}),
    "priced": ({}, {}, {"bound_pusd": None, "budget_room_pusd": 10}),
    "price_cap": ({}, {"max_cost_pusd": 1}, {"bound_pusd": 2}),
    "budget": ({}, {}, {"bound_pusd": 2, "budget_room_pusd": 1}),
    "circuit": ({}, {}, {"state": {"circuit_open": True}}),
    "rate_limit": ({}, {}, {"state": {"tokens_left": 1}}),
    "salt": ({"salted": True}, {}, {"accepts_salt": False}),
    "kv_headroom": ({}, {"slo": Slo()}, {"state": {"kv_used_tokens": 99_000.0}}),
    "ttft": ({}, {"slo": Slo(ttft_ms=1.0)}, {}),
    "tpot": ({}, {"slo": Slo(tpot_ms=1.0)}, {}),
    "barred": ({"barred": {"pool:llama/0": (Reason.CANDIDATES, "others")}}, {}, {}),
}


@pytest.mark.parametrize("check", FILTERS + FORECAST_FILTERS, ids=lambda check: check.__name__)
def test_no_filter_is_passed_by(ask, rule, own, api, check):
    """What sees at once who passes all filters must know each of them."""
    name = check.__name__
    assert name in OBJECTIONS, f"add {name} to OBJECTIONS, and its condition beside the filters"
    asked, terms, changes = OBJECTIONS[name]
    build = api if name in ("residency", "circuit", "rate_limit") else own
    request, policy, candidate = ask(**asked), rule(**terms), build(**changes)
    forecast = forecast_engine(
        work_of(request, policy), candidate, candidate.engine or own().engine
    )
    answers = {other.__name__: other(request, policy, candidate) for other in FILTERS}
    answers |= {other.__name__: other(policy, candidate, forecast) for other in FORECAST_FILTERS}
    assert [name for name, answer in answers.items() if answer] == [check.__name__]
    (reason,) = [verdict.reason for verdict in decide(request, policy, [candidate]).verdicts]
    assert reason is answers[check.__name__][0]


class ToyEngine:
    """Block-accurate KV: a sequence holds whole blocks of what it has produced so far."""

    def __init__(self, blocks, block):
        self.capacity, self.block = blocks * block, block
        self.sequences = deque()  # [prompt, output so far, output at the end, promised]
        self.peak = 0

    def held(self):
        return sum(-(-(s[0] + s[1]) // self.block) * self.block for s in self.sequences)

    def state(self):
        promised = sum(s[3] for s in self.sequences)
        held = self.held()
        return {
            "kv_capacity_tokens": self.capacity, "kv_block_tokens": self.block,
            "kv_used_tokens": float(held), "kv_promised_tokens": float(promised - held),
            "running": len(self.sequences),
        }  # fmt: skip

    def admit(self, prompt, output, promised):
        self.sequences.append([prompt, 0, output, promised])

    def step(self):
        for sequence in self.sequences:
            sequence[1] += 1
        self.peak = max(self.peak, self.held())
        self.sequences = deque(s for s in self.sequences if s[1] < s[2])


ARRIVALS = st.lists(
    st.tuples(st.integers(1, 120), st.integers(1, 80), st.integers(0, 3)), min_size=20, max_size=80
)


def replay(ask, policy, own, arrivals, blocks=24):
    """Each arrival: prompt, output (known as `max_tokens`), steps until the next one."""
    engine, served = ToyEngine(blocks, 16), 0
    few = OutputMoments(count=0, mean=40.0, mean_square=2500.0, p95=0.0)
    for prompt, output, steps in arrivals:
        request = ask(
            prompt_tokens=prompt, prompt_tokens_bound=prompt, max_tokens=output, output=few
        )
        decision = decide(request, policy, [own(engine.state())])
        if decision.order:
            promised = -(-(prompt + output) // 16) * 16
            engine.admit(prompt, output, promised)
            served += 1
        for _ in range(steps):
            engine.step()
    while engine.sequences:
        engine.step()
    return engine, served


@given(arrivals=ARRIVALS, floor=st.sampled_from([0.0, 0.1, 0.3]))
def test_promised_blocks_never_exceed_capacity(ask, rule, own, arrivals, floor):
    policy = rule(slo=Slo(), kv_headroom_floor=floor)
    engine, served = replay(ask, policy, own, arrivals)
    assert engine.peak <= engine.capacity * (1 - floor)
    assert served > 0


def test_without_the_kv_filter_the_same_traffic_overflows(ask, rule, own):
    arrivals = [(100, 60, 1)] * 40
    filtered, _ = replay(ask, rule(slo=Slo()), own, arrivals)
    assert filtered.peak <= filtered.capacity
    unfiltered, served = replay(ask, rule(slo=Slo(), kv_headroom_floor=None), own, arrivals)
    assert served == 40
    assert unfiltered.peak > unfiltered.capacity
