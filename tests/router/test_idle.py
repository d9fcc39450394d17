"""A line of a batch goes where nobody notices it, and nowhere else while it has time."""

import pytest

from router.decide import decide
from router.idle import TightestSlo, reason_against, reason_to_preempt, spare_decision
from router.reasons import Reason
from router.types import Feature, InfeasibleAction, Policy

LINE = Policy(name="p")  # promises nothing
TIGHT = {"llama": TightestSlo(200.0, 30.0)}


def names(decision):
    return [verdict.candidate.name for verdict in decision.order]


def reasons(decision):
    return {verdict.candidate.name: verdict.reason.value for verdict in decision.verdicts}


def why(request, candidate, promised=TIGHT["llama"]):
    (verdict,) = decide(request, LINE, [candidate]).order
    return reason_against(verdict, promised)


def test_an_idle_engine_takes_it_and_apis_wait(ask, own, api):
    decision = spare_decision(decide(ask(), LINE, [api(), own()]), TIGHT, spill=False)
    assert names(decision) == ["pool:llama/0"]
    assert decision.reason is Reason.ONLY
    assert reasons(decision) == {"pool:llama/0": "only", "openai/small": "batch"}
    assert not decision.verdicts[1].feasible


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"running": 128}, "of 256 sequences"),
        ({"kv_used_tokens": 49_000.0, "kv_promised_tokens": 1_000.0}, "KV tokens"),
        ({"queued_prefill_tokens": 6_000.0}, "first token"),
        ({"context_tokens": 250_000.0}, "between tokens"),
        ({"step_feedback": 4.0}, "ms"),
    ],
)
def test_live_traffic_keeps_it_away(ask, own, api, state, words):
    """And none of this keeps a live request away: the half is for those."""
    busy = own(state)
    assert words in why(ask(), busy, TightestSlo(300.0, 30.0))
    decision = spare_decision(decide(ask(), LINE, [busy, api()]), TIGHT, spill=False)
    assert names(decision) == []
    assert decision.reason is Reason.BATCH
    assert decision.otherwise is InfeasibleAction.REJECT
    assert names(decide(ask(), LINE, [busy])) == ["pool:llama/0"]


def test_one_of_two_engines_is_enough(ask, own):
    busy = own({"running": 200}, name="pool:llama/1")
    decision = spare_decision(decide(ask(), LINE, [own(), busy]), TIGHT, spill=False)
    assert names(decision) == ["pool:llama/0"]
    assert reasons(decision)["pool:llama/1"] == "batch"


def test_a_long_prompt_waits_where_first_tokens_are_promised_early(ask, own):
    long = ask(prompt_tokens=5_000, prompt_tokens_bound=5_500)
    assert why(long, own()) is not None
    assert why(long, own(), TightestSlo(1_000.0, 60.0)) is None


def test_near_the_end_idle_engines_come_first_and_then_apis(ask, own, api):
    cheap = own(
        {"running": 100}, bid_price_pusd_per_s=1e15
    )  # below its bid price the engine came last
    both = decide(ask(), LINE, [cheap, api()])
    assert names(both) == ["openai/small", "pool:llama/0"]
    decision = spare_decision(both, TIGHT, spill=True)
    assert names(decision) == ["pool:llama/0"]
    assert reasons(decision) == {"pool:llama/0": "only", "openai/small": "costlier"}
    busy = spare_decision(decide(ask(), LINE, [own({"running": 200}), api()]), TIGHT, spill=True)
    assert names(busy) == ["openai/small"]


def test_what_no_own_engine_could_ever_serve_goes_to_apis_at_once(ask, own, api):
    pictures = ask(features=frozenset({Feature.IMAGES}))
    decision = spare_decision(decide(pictures, LINE, [own(), api()]), TIGHT, spill=False)
    assert names(decision) == ["openai/small"]
    assert names(spare_decision(decide(ask(), LINE, [api()]), TIGHT, spill=False)) == [
        "openai/small"
    ]


def test_an_engine_that_loads_will_serve(ask, own, api):
    loading = own({"health": "loading"})
    assert names(spare_decision(decide(ask(), LINE, [loading, api()]), TIGHT, spill=False)) == []


def test_without_a_step_model_only_where_nothing_runs(ask, own):
    assert why(ask(), own({"step": None, "running": 1})) == "1 sequences run"
    assert why(ask(), own({"step": None, "running": 0})) is None


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"running": 230}, "sequences"),
        ({"kv_promised_tokens": 90_000.0}, "promised"),
        ({"context_tokens": 450_000.0, "kv_capacity_tokens": 10**6}, "between tokens"),
        ({"queued_prefill_tokens": 6_000.0}, "first token"),
    ],
)
def test_lines_make_room_before_promises_break(own, state, words):
    assert reason_to_preempt(own().engine, TIGHT["llama"]) is None
    assert words in reason_to_preempt(own(state).engine, TIGHT["llama"])


def test_nothing_is_predicted_without_a_step_model(own):
    assert reason_to_preempt(own({"step": None, "running": 200}).engine, TightestSlo()) is None
