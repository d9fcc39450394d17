"""Who is chosen, in which order the others follow, and with which reasons."""

import math
from dataclasses import replace

import pytest

from router.decide import decide
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import InfeasibleAction, Policy, Preference, Residency, Slo, TargetHealth

FULL = {"kv_used_tokens": 98_000.0}
LONG = {"prompt_tokens": 7_000, "prompt_tokens_bound": 7_700}  # 0.2 s of reading
DEAR = 1e15  # a bid price no request reaches


def names(decision):
    return [verdict.candidate.name for verdict in decision.order]


def reasons(decision):
    return {verdict.candidate.name: verdict.reason.value for verdict in decision.verdicts}


def test_an_own_engine_with_room_is_free_at_the_margin(ask, rule, own, api):
    decision = decide(ask(), rule(), [api(), own()])
    assert names(decision) == ["pool:llama/0", "openai/small"]
    assert decision.reason is Reason.CHEAPEST
    assert decision.first_choice.objective_pusd == 0.0
    assert reasons(decision) == {"pool:llama/0": "cheapest", "openai/small": "costlier"}


def test_a_full_engine_spills_to_the_api(ask, rule, own, api):
    decision = decide(ask(), rule(), [own(FULL), api()])
    assert names(decision) == ["openai/small"]
    assert decision.reason is Reason.ONLY
    assert reasons(decision)["pool:llama/0"] == "kv_headroom"


def test_least_load_within_a_pool(ask, rule, own):
    engines = [
        own({"running": running, "context_tokens": 1000.0 * running}, name=f"pool:llama/{place}")
        for place, running in enumerate((30, 5, 60))
    ]
    decision = decide(ask(), rule(), engines)
    assert names(decision) == ["pool:llama/1", "pool:llama/0", "pool:llama/2"]
    assert reasons(decision)["pool:llama/2"] == "busier"
    loads = [verdict.load for verdict in decision.order]
    assert loads == sorted(loads)


def test_a_cached_beginning_outweighs_as_much_load_as_reading_it_would_take(ask, rule, own):
    """500 tokens at 27.8 us are 14 ms: 2.8 % of a TTFT of 500 ms."""
    idle = own({"running": 4, "context_tokens": 4000.0}, name="pool:llama/0")

    def first(running: int, hit: int) -> str:
        state = {"running": running, "context_tokens": 1000.0 * running, "prefix_hit_tokens": hit}
        return names(decide(ask(), rule(), [idle, own(state, name="pool:llama/1")]))[0]

    assert first(5, 500) == "pool:llama/1"
    assert first(5, 0) == "pool:llama/0"
    assert first(30, 500) == "pool:llama/0"


@pytest.mark.parametrize("ttft_ms", [500.0, 5000.0, None])
def test_a_cached_beginning_weighs_no_less_where_a_promise_is_long(ask, rule, own, ttft_ms):
    """Red before: 5 s made a tenth of it."""
    asked = ask(prompt_tokens=2000, prompt_tokens_bound=2000)
    policy = rule(slo=Slo(ttft_ms=ttft_ms))
    idle = own({"running": 0, "context_tokens": 0.0}, name="pool:llama/0")
    warm = {"running": 20, "context_tokens": 9000.0, "prefix_hit_tokens": 1900}
    found = decide(asked, policy, [idle, own(warm, name="pool:llama/1")])
    assert names(found)[0] == "pool:llama/1"
    cold = {**warm, "prefix_hit_tokens": 0}
    assert names(decide(asked, policy, [idle, own(cold, name="pool:llama/1")]))[0] == "pool:llama/0"


def test_the_bid_price_goes_by_the_least_load_whatever_is_cached(ask, rule, own):
    """The first in order is not the least loaded here; its pool's price is all the same."""
    price = {"bid_price_pusd_per_s": 1e6, "name": "pool:llama/0"}
    idle = own({"running": 60, "kv_used_tokens": 40_000.0}, **price)
    busy = {"running": 61, "kv_used_tokens": 40_500.0, "prefix_hit_tokens": 499}
    both = decide(ask(), rule(), [idle, own(busy, **{**price, "name": "pool:llama/1"})])
    alone = decide(ask(), rule(), [idle])
    per_second = [
        item.first_choice.objective_pusd / item.first_choice.engine_seconds
        for item in (both, alone)
    ]
    assert names(both)[0] == "pool:llama/1"
    assert per_second[0] == pytest.approx(per_second[1])
    assert per_second[0] > 0.0


def test_apis_by_price_plus_likely_miss(ask, rule, api):
    slow = api({"ttft_median_ms": 5000.0}, name="slow/cheap", expected_pusd=400_000)
    fast = api(name="fast/dear", expected_pusd=1_200_000)
    assert names(decide(ask(), rule(), [slow, fast])) == ["fast/dear", "slow/cheap"]
    assert names(decide(ask(), rule(penalty_pusd=0), [slow, fast])) == ["slow/cheap", "fast/dear"]


def test_an_api_without_a_price_comes_last(ask, rule, own, api):
    free = api(name="local/unknown", expected_pusd=None, bound_pusd=None)
    busy = own({"running": 100}, bid_price_pusd_per_s=DEAR)
    decision = decide(ask(), rule(), [free, busy, api()])
    assert names(decision) == ["openai/small", "pool:llama/0", "local/unknown"]
    assert reasons(decision)["local/unknown"] == "unpriced"
    assert names(decide(ask(), rule(), [free])) == ["local/unknown"]


def test_the_bid_price_only_bites_when_the_engine_is_loaded(ask, rule, own, api):
    idle = own({"running": 0, "context_tokens": 0.0, "kv_used_tokens": 0.0},
               bid_price_pusd_per_s=DEAR)  # fmt: skip
    assert decide(ask(), rule(), [idle, api()]).first_choice.candidate is idle
    busy = own({"running": 100}, bid_price_pusd_per_s=DEAR)
    decision = decide(ask(), rule(), [busy, api()])
    assert names(decision) == ["openai/small", "pool:llama/0"]
    assert reasons(decision) == {"openai/small": "cheapest", "pool:llama/0": "bid_price"}


def test_the_price_of_a_pool_is_that_of_its_least_loaded_engine(ask, rule, own, api):
    engines = [
        own({"running": running}, name=f"pool:llama/{place}", bid_price_pusd_per_s=DEAR)
        for place, running in enumerate((100, 0))
    ]
    decision = decide(ask(), rule(), [*engines, api()])
    assert names(decision) == ["pool:llama/1", "pool:llama/0", "openai/small"]


def test_value_is_what_the_best_api_would_cost(ask, rule, own, api):
    busy = own({"running": 100}, bid_price_pusd_per_s=1.0)
    alone = decide(ask(), rule(), [busy]).first_choice
    beside = decide(ask(), rule(), [busy, api()]).first_choice
    unpriced = decide(ask(), rule(), [busy, api(expected_pusd=None)]).first_choice
    seconds = alone.engine_seconds
    # no API: the comparator and the penalty of a rejection
    assert alone.density_pusd_per_s == pytest.approx((2_000_000 + 1_000_000) / seconds)
    missed = decide(ask(), rule(), [api()]).first_choice.miss_probability
    assert beside.density_pusd_per_s == pytest.approx((1_000_000 + 1_000_000 * missed) / seconds)
    assert unpriced.density_pusd_per_s == pytest.approx((2_000_000 + 1_000_000 * missed) / seconds)


def test_internal_requests_do_not_starve_when_the_price_rises(ask, rule, own, api):
    busy = own({"running": 100}, bid_price_pusd_per_s=DEAR)
    decision = decide(ask(residency=Residency.INTERNAL_ONLY), rule(), [busy, api()])
    assert names(decision) == ["pool:llama/0"]
    assert decision.reason is Reason.ONLY
    assert reasons(decision)["openai/small"] == "residency"


def test_pools_by_what_their_time_costs_then_by_load(ask, rule, own):
    def engine(pool, place, running, price):
        return own({"running": running, "context_tokens": 0.0}, name=f"pool:{pool}/{place}",
                   pool=pool, bid_price_pusd_per_s=price, avoided_pusd=10**12)  # fmt: skip

    fleet = [engine("a", 0, 120, 1e6), engine("a", 1, 150, 1e6), engine("b", 0, 140, 0.0)]
    decision = decide(ask(), rule(), fleet)
    assert names(decision) == ["pool:b/0", "pool:a/0", "pool:a/1"]
    assert reasons(decision) == {
        "pool:b/0": "cheapest", "pool:a/0": "costlier", "pool:a/1": "costlier",
    }  # fmt: skip
    free = [engine("a", 0, 50, 0.0), engine("b", 0, 40, 0.0)]
    assert reasons(decide(ask(), rule(), free)) == {"pool:b/0": "cheapest", "pool:a/0": "busier"}


def test_an_engine_without_a_pool_is_its_own(ask, rule, own):
    lone = [own({"running": 40}, name="a", pool=None), own({"running": 10}, name="b", pool=None)]
    assert names(decide(ask(), rule(), lone)) == ["b", "a"]


def test_a_feasible_sticky_target_goes_first(ask, rule, own, api):
    fleet = [own(), own({"running": 40}, name="pool:llama/1"), api()]
    decision = decide(ask(sticky_target="pool:llama/1"), rule(), fleet)
    assert names(decision) == ["pool:llama/1", "pool:llama/0", "openai/small"]
    assert decision.reason is Reason.STICKY
    assert reasons(decision)["pool:llama/0"] == "sticky"
    assert reasons(decision)["openai/small"] == "costlier"
    gone = decide(ask(sticky_target="pool:gone/0"), rule(), fleet)
    assert gone.reason is Reason.CHEAPEST
    full = [own(), own(FULL, name="pool:llama/1"), api()]
    broken = decide(ask(sticky_target="pool:llama/1"), rule(), full)
    assert names(broken) == ["pool:llama/0", "openai/small"]


def test_a_missing_step_model_does_not_beat_a_bid_price(ask, rule, own, api):
    policy = rule(slo=Slo())
    blind = own({"step": None, "running": 200}, bid_price_pusd_per_s=1.0)
    assert names(decide(ask(), policy, [blind, api()])) == ["openai/small", "pool:llama/0"]
    free = own({"step": None, "running": 200})
    chosen = decide(ask(), policy, [free, api()]).first_choice
    assert (chosen.candidate, chosen.density_pusd_per_s) == (free, None)


def test_embeddings(ask, rule, own, api):
    small = own({"kv_capacity_tokens": 0, "step": None}, name="pool:embed/0")
    policy = rule(slo=Slo(tpot_ms=1.0))
    loaded = own({"kv_capacity_tokens": 0}, name="pool:embed/1")
    decision = decide(ask(kind=RequestKind.EMBEDDING), policy, [small, loaded, api()])
    assert names(decision) == ["pool:embed/1", "openai/small"]
    assert decision.first_choice.tpot_ms is None


@pytest.mark.parametrize("otherwise", [InfeasibleAction.QUEUE, InfeasibleAction.REJECT])
def test_nothing_feasible(ask, rule, own, api, otherwise):
    fleet = [own(FULL), own(FULL, name="pool:llama/1"), api({"circuit_open": True})]
    decision = decide(ask(), rule(otherwise=otherwise), fleet)
    assert (decision.order, decision.first_choice) == ((), None)
    assert (decision.reason, decision.otherwise) == (Reason.KV_HEADROOM, otherwise)


@pytest.mark.parametrize(
    ("asked", "state", "waits"),
    [
        ({}, {"queued_prefill_tokens": 90_000.0, "kv_promised_tokens": 90_000.0}, True),
        (LONG, {}, False),
        (LONG, FULL, False),
        ({}, {**FULL, "step_feedback": 4.0}, True),  # slow now: that may pass
    ],
)
def test_nobody_waits_for_what_an_empty_engine_cannot_keep(
    ask, rule, own, api, asked, state, waits
):
    """Red before: such a request stood in line for all of its time, and was refused then."""
    policy = rule(slo=Slo(ttft_ms=200.0), otherwise=InfeasibleAction.QUEUE)
    request = ask(**asked, residency=Residency.INTERNAL_ONLY)
    decision = decide(request, policy, [own(state), api()])
    expected = InfeasibleAction.QUEUE if waits else InfeasibleAction.REJECT
    assert (decision.order, decision.otherwise) == ((), expected)
    closed = api({"circuit_open": True}, name="later/api")
    both = decide(ask(**asked), policy, [own(state), closed])
    assert both.otherwise is InfeasibleAction.QUEUE, "an API may be back"


def test_a_refusal_is_named_after_the_most_hopeful(ask, rule, own, api):
    """Two that may never serve it do not outvote one that soon may, nor a budget that resets."""
    request = ask(residency=Residency.INTERNAL_ONLY)
    never = [api(), api(name="openai/large")]
    spent = own(name="pool:llama/1", budget_room_pusd=0)
    assert decide(request, rule(), never).reason is Reason.RESIDENCY
    assert decide(request, rule(), [*never, spent]).reason is Reason.BUDGET
    assert decide(request, rule(), [*never, spent, own(FULL)]).reason is Reason.KV_HEADROOM
    down = own({"health": TargetHealth.DOWN}, name="pool:llama/2")
    more = [*never, spent, own(FULL), down, replace(down, name="pool:llama/3")]
    assert decide(request, rule(), more).reason is Reason.UNHEALTHY


def test_no_candidates_at_all(ask, rule):
    for otherwise in InfeasibleAction:
        decision = decide(ask(), rule(otherwise=otherwise), [])
        assert (decision.reason, decision.verdicts) == (Reason.MODEL, ())


def test_best_effort_takes_the_least_bad(ask, rule, own, api):
    fleet = [
        api({"circuit_open": True}, name="broken/api", expected_pusd=1),
        api({"ttft_median_ms": 9000.0}, name="late/api"),
        api({"ttft_median_ms": 9000.0}, name="unpriced/api", expected_pusd=None),
        own({"queued_prefill_tokens": 90_000.0}, name="pool:llama/0"),
        own({"queued_prefill_tokens": 60_000.0}, name="pool:llama/1"),
    ]
    policy = rule(slo=Slo(ttft_ms=500.0, strict=True), otherwise=InfeasibleAction.BEST_EFFORT)
    decision = decide(ask(), policy, fleet)
    assert names(decision) == [
        "pool:llama/1", "pool:llama/0", "late/api", "unpriced/api", "broken/api",
    ]  # fmt: skip
    assert decision.reason is decision.first_choice.reason is Reason.BEST_EFFORT
    assert decision.first_choice.detail.startswith("ttft: ")
    assert not decision.first_choice.feasible


def test_best_effort_first_keeps_what_margins_alone_refuse(ask, rule, own):
    """An answer that breaks another's pace is no remedy, however early its first token comes."""
    policy = rule(slo=Slo(ttft_ms=5000.0, tpot_ms=30.0), otherwise=InfeasibleAction.BEST_EFFORT)
    rate = {"prefill_rate_tokens_per_s": 20_000.0, "safety_tpot": 0.4}
    early = own({**rate, "tightest_tpot_ms": 6.0, "running": 4}, name="pool:llama/0")
    later = own({**rate, "queued_prefill_tokens": 9000.0, "running": 4}, name="pool:llama/1")
    decision = decide(ask(), policy, [early, later])
    assert decision.reason is Reason.BEST_EFFORT
    told = {verdict.candidate.name: verdict for verdict in decision.verdicts}
    assert told["pool:llama/0"].ttft_ms < told["pool:llama/1"].ttft_ms
    assert names(decision) == ["pool:llama/1", "pool:llama/0"]
    # The control: where neither can be kept the earlier first token goes first, as ever.
    broken = own({**rate, "queued_prefill_tokens": 9000.0, "tightest_tpot_ms": 6.0},
                 name="pool:llama/1")  # fmt: skip
    assert names(decide(ask(), policy, [early, broken])) == ["pool:llama/0", "pool:llama/1"]


def test_best_effort_without_a_step_model_or_a_detail(ask, rule, own, api):
    policy = rule(slo=Slo(), otherwise=InfeasibleAction.BEST_EFFORT)
    blind = {**FULL, "step": None}
    fleet = [own(blind), own(FULL, name="pool:llama/1"), api({"circuit_open": True})]
    decision = decide(ask(), policy, fleet)
    assert names(decision) == ["pool:llama/1", "pool:llama/0", "openai/small"]
    alone = decide(ask(), policy, [api({"circuit_open": True})])
    assert alone.first_choice.detail == "circuit_open"


@pytest.mark.parametrize(
    ("request_changes", "changes"),
    [
        ({"salted": True}, {"accepts_salt": False}),
        ({"residency": Residency.INTERNAL_ONLY}, {}),
        ({}, {"budget_room_pusd": 0}),
        ({}, {"context_tokens": 10}),
    ],
)
def test_best_effort_breaks_no_rule(ask, rule, api, request_changes, changes):
    policy = rule(otherwise=InfeasibleAction.BEST_EFFORT)
    broken = api({"circuit_open": True}, **changes)
    decision = decide(ask(**request_changes), policy, [broken])
    assert decision.order == ()
    assert len(decision.verdicts) == 1


def test_best_effort_does_not_try_the_unknown(ask, rule, own):
    policy = rule(otherwise=InfeasibleAction.BEST_EFFORT)
    unknown = own({"kv_used_tokens": math.nan})
    decision = decide(ask(), policy, [unknown, own(FULL, name="pool:llama/1")])
    assert names(decision) == ["pool:llama/1"]
    assert [verdict.reason for verdict in decision.verdicts] == [
        Reason.BEST_EFFORT, Reason.UNKNOWN_STATE,
    ]  # fmt: skip


def test_the_default_policy_decides(ask, own):
    assert decide(ask(), Policy("default"), [own()]).policy == "default"


def test_what_is_full_still_tells_what_its_time_was_worth(ask, rule, own, api):
    """Demand that is turned away counts in the pool's price."""
    full = own({"running": 100, "queued_prefill_tokens": 10**6})
    decision = decide(ask(), rule(slo=Slo(ttft_ms=500.0)), [full, api()])
    verdict = next(
        each_verdict for each_verdict in decision.verdicts if each_verdict.candidate is full
    )
    assert (verdict.feasible, verdict.reason) == (False, Reason.TTFT)
    assert verdict.density_pusd_per_s == pytest.approx(
        (decision.order[0].objective_pusd or 0) / (verdict.engine_seconds or 1)
    )
    alone = decide(ask(), rule(slo=Slo(ttft_ms=500.0)), [full])
    assert alone.verdicts[0].density_pusd_per_s == pytest.approx(
        (full.avoided_pusd + rule().penalty_pusd) / (verdict.engine_seconds or 1)
    )


def test_wide_demand_keeps_the_last_capacity_for_the_dearest(ask, rule, own, api):
    """The same load and price: the gate lets in what the curve leaves to denser requests."""
    load = {"running": 240}
    narrow = own(load, bid_price_pusd_per_s=1e6, top_density_pusd_per_s=1e15)
    wide = replace(narrow, density_spread=9.0)
    reasons_of = [
        decide(ask(), rule(), [engine, api()]).order[0].candidate.engine is not None
        for engine in (narrow, wide)
    ]
    assert reasons_of == [True, False]


def test_a_share_goes_first_while_it_is_feasible_and_loses_by_its_own_word(ask, rule, own, api):
    dear = api(name="openai/dear", expected_pusd=9_000_000)
    preferred = Preference(frozenset({"openai/dear"}), Reason.CANARY)
    fleet = [own(), api(), dear]
    decision = decide(ask(preferred=preferred), rule(), fleet)
    assert decision.first_choice.candidate is dear
    assert decision.reason is Reason.CANARY
    assert [v.reason for v in decision.order[1:]] == [Reason.CANARY, Reason.CANARY]
    assert [v.candidate.name for v in decision.order[1:]] == ["pool:llama/0", "openai/small"]
    # a session stays where it is, and who cannot serve is preferred in vain
    held = decide(ask(preferred=preferred, sticky_target="openai/small"), rule(), fleet)
    assert (held.first_choice.candidate.name, held.reason) == ("openai/small", Reason.STICKY)
    broken = api({"circuit_open": True}, name="openai/dear")
    without = decide(ask(preferred=preferred), rule(), [own(), api(), broken])
    assert without.order == decide(ask(), rule(), [own(), api(), broken]).order


def test_of_a_preferred_pool_the_least_loaded_engine_is_taken(ask, rule, own, api):
    preferred = Preference(frozenset({"pool:b/0", "pool:b/1"}), Reason.WEIGHT)
    fleet = [
        own({"running": 0}, name="pool:a/0", pool="a"),
        own({"running": 60}, name="pool:b/0", pool="b"),
        own({"running": 20}, name="pool:b/1", pool="b"),
    ]
    decision = decide(ask(preferred=preferred), rule(), fleet)
    assert (decision.first_choice.candidate.name, decision.reason) == ("pool:b/1", Reason.WEIGHT)


def test_nothing_prefers_what_must_not_leave(ask, rule, own, api):
    """Not the canary, not a weight, not a session."""
    preferred = Preference(frozenset({"openai/small"}), Reason.CANARY)
    asked = ask(
        preferred=preferred, sticky_target="openai/small", residency=Residency.INTERNAL_ONLY
    )
    assert [v.candidate.internal for v in decide(asked, rule(), [own(), api()]).order] == [True]
    assert decide(asked, rule(otherwise=InfeasibleAction.BEST_EFFORT), [api()]).order == ()


def test_the_last_of_an_engines_time_is_kept_for_the_tightest_class(ask, rule, own, api):
    """Half a second is kept either way; beside a class of 200 ms the looser pays the top price."""
    state = {"queued_prefill_tokens": 3500.0, "tightest_ttft_ms": 200.0}
    market = {"bid_price_pusd_per_s": 1e7, "top_density_pusd_per_s": 1e12}
    offered = [own(state, **market), api()]
    loose = decide(ask(), rule(), offered)
    assert reasons(loose)["pool:llama/0"] == "bid_price"
    assert names(decide(ask(), rule(slo=Slo(ttft_ms=200.0, tpot_ms=50.0)), offered))[0] == (
        "pool:llama/0"
    )
    alone = [
        own({**state, "tightest_ttft_ms": 510.0}, **market),
        api(),
    ]  # its own class, rounded up
    assert names(decide(ask(), rule(), alone))[0] == "pool:llama/0"


def test_an_engine_whose_requests_spill_to_a_later_stage_is_worth_what_that_costs(ask, rule, own):
    """Without one a full engine means a rejection, whose penalty is part of the value."""
    engine = own(avoided_pusd=1_000_000)
    policy = rule(slo=Slo(ttft_ms=1_000.0), penalty_pusd=5_000_000)
    rejected, spilled = (
        decide(ask(spills=spills), policy, [engine]).order[0].density_pusd_per_s
        for spills in (False, True)
    )
    assert rejected == pytest.approx(6 * spilled)


def test_a_margin_of_one_promise_excuses_no_other(ask, rule, own) -> None:
    """A first token that comes too late is not kept because the pace has a wide margin."""
    policy = rule(slo=Slo(ttft_ms=500.0, tpot_ms=30.0), otherwise=InfeasibleAction.BEST_EFFORT)
    rate = {"prefill_rate_tokens_per_s": 20_000.0, "safety_tpot": 0.4}
    late = own({**rate, "queued_prefill_tokens": 30_000.0}, name="pool:llama/0")
    kept = own({**rate, "tightest_tpot_ms": 13.0, "running": 4}, name="pool:llama/1")
    decision = decide(ask(), policy, [late, kept])
    told = {verdict.candidate.name: verdict for verdict in decision.verdicts}
    assert told["pool:llama/0"].ttft_ms > 500.0
    assert told["pool:llama/1"].tpot_ms < 13.0
    assert decision.reason is Reason.BEST_EFFORT
    assert names(decision) == ["pool:llama/1", "pool:llama/0"]
