"""Each filter refuses what it is for, with its word, and lets the unremarkable pass."""

import math
from dataclasses import replace

import pytest

from router.decide import decide
from router.filters import FILTERS, FORECAST_FILTERS, context
from router.forecast import forecast_engine, work_of
from router.objective import forecast_api
from router.prompts import RequestUnits
from router.reasons import PERMANENT, Reason
from router.request_kinds import RequestKind
from router.types import Feature, OutputMoments, Residency, Slo, TargetHealth

FEW = OutputMoments(count=29, mean=100.0, mean_square=15_000.0, p95=300.0)


def answer(request, policy, candidate):
    """The first rejection, as the decision applies them."""
    verdict = decide(request, policy, [candidate]).verdicts[0]
    return None if verdict.feasible else verdict.reason


def test_the_unremarkable_pass_every_filter(ask, rule, own, api):
    for candidate in (own(), api()):
        assert [check(ask(), rule(), candidate) for check in FILTERS] == [None] * len(FILTERS)
        work = work_of(ask(), rule())
        forecast = (
            forecast_engine(work, candidate, candidate.engine)
            if candidate.engine
            else forecast_api(work, candidate)
        )
        assert [test(rule(), candidate, forecast) for test in FORECAST_FILTERS] == [None] * 3


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"max_tokens": 3000}, "1531 prompt + 3000 answer tokens, context 4096"),
        ({"prompt_tokens_bound": 4100, "max_tokens": 3000, "kind": RequestKind.EMBEDDING}, None),
        (  # read one by one: the longest is half of it
            {
                "prompt_tokens": 8000,
                "prompt_tokens_bound": 8000,
                "kind": RequestKind.RERANK,
                "extent": RequestUnits(longest=0.5),
            },
            None,
        ),
        (
            {
                "prompt_tokens": 8000,
                "prompt_tokens_bound": 8000,
                "kind": RequestKind.RERANK,
                "extent": RequestUnits(longest=0.6),
                "max_tokens": 0,
            },
            "4800 prompt + 0 answer tokens, context 4096",
        ),
        (  # an estimate that may fall short needs room for that
            {"prompt_tokens": 4000, "prompt_tokens_bound": 16_000, "max_tokens": 16},
            "4400 prompt + 16 answer tokens, context 4096",
        ),
        (  # and one that does not needs none
            {
                "prompt_tokens": 4000,
                "prompt_tokens_bound": 16_000,
                "max_tokens": 16,
                "context_margin": 1.01,
            },
            None,
        ),
        (  # its engine cuts sound itself
            {
                "prompt_tokens": 99_999,
                "prompt_tokens_bound": 99_999,
                "kind": RequestKind.TRANSCRIPTION,
                "extent": RequestUnits(longest=0.0),
            },
            None,
        ),
        (
            {"prompt_tokens": 4097, "prompt_tokens_bound": 4097, "max_tokens": None},
            "4097 prompt + 1 answer tokens, context 4096",
        ),
    ],
)
def test_a_context_that_is_too_small_names_both_parts(ask, rule, own, changes, told):
    """A short prompt with a long answer is not called a long prompt."""
    asked = replace(ask(), **{"prompt_tokens": 1531, "prompt_tokens_bound": 1531, **changes})
    rejection = context(asked, rule(), replace(own(), context_tokens=4096))
    assert rejection == (None if told is None else (Reason.CONTEXT, told))


@pytest.mark.parametrize(
    ("request_changes", "policy_changes", "state", "candidate_changes", "reason"),
    [
        ({}, {}, {}, {"kinds": frozenset({RequestKind.EMBEDDING})}, Reason.MODEL),
        ({"features": frozenset({Feature.IMAGES})}, {}, {}, {}, Reason.FEATURE),
        ({}, {}, {"health": TargetHealth.UNKNOWN}, {}, Reason.UNKNOWN_STATE),
        ({}, {}, {"health": TargetHealth.LOADING}, {}, Reason.LOADING),
        ({}, {}, {"health": TargetHealth.DRAINING}, {}, Reason.DRAINING),
        ({}, {}, {"health": TargetHealth.DOWN}, {}, Reason.UNHEALTHY),
        ({}, {}, {"step": None}, {}, Reason.UNKNOWN_STATE),
        ({}, {"slo": Slo()}, {"step": None}, {}, None),
        ({}, {"slo": Slo()}, {"step": None, "tightest_tpot_ms": 40.0}, {}, Reason.UNKNOWN_STATE),
        ({}, {}, {"kv_capacity_tokens": 0}, {}, Reason.UNKNOWN_STATE),
        ({"kind": RequestKind.EMBEDDING}, {}, {"kv_capacity_tokens": 0}, {}, None),
        ({"prompt_tokens": 7792, "prompt_tokens_bound": 7792}, {}, {}, {}, None),
        ({"prompt_tokens": 7793, "prompt_tokens_bound": 7793}, {}, {}, {}, Reason.CONTEXT),
        ({"prompt_tokens": 7000, "prompt_tokens_bound": 90_000}, {}, {}, {}, None),
        ({"prompt_tokens": 7100, "prompt_tokens_bound": 90_000}, {}, {}, {}, Reason.CONTEXT),
        (
            {"prompt_tokens": 8191, "prompt_tokens_bound": 8191, "max_tokens": None},
            {},
            {},
            {},
            None,
        ),
        (
            {"prompt_tokens": 8192, "prompt_tokens_bound": 8192, "max_tokens": None},
            {},
            {},
            {},
            Reason.CONTEXT,
        ),
        ({"prompt_tokens_bound": 8192, "kind": RequestKind.EMBEDDING}, {}, {}, {}, None),
        ({"residency": Residency.INTERNAL_ONLY}, {}, {}, {"internal": False}, Reason.RESIDENCY),
        ({}, {"residency": Residency.INTERNAL_ONLY}, {}, {"internal": False}, Reason.RESIDENCY),
        ({}, {"residency": Residency.INTERNAL_ONLY}, {}, {}, None),
        ({"kept_for": "card, email"}, {}, {}, {"internal": False}, Reason.CONTENT),
        ({"kept_for": "card, email"}, {}, {}, {}, None),
        ({}, {}, {}, {"bound_pusd": None}, None),
        ({}, {}, {}, {"bound_pusd": None, "budget_room_pusd": 10**15}, Reason.UNPRICED),
        ({}, {"max_cost_pusd": 10**15}, {}, {"expected_pusd": None}, Reason.UNPRICED),
        ({}, {"max_cost_pusd": 1000}, {}, {}, None),
        ({}, {"max_cost_pusd": 999}, {}, {}, Reason.PRICE_CAP),
        ({}, {}, {}, {"budget_room_pusd": 1000}, None),
        ({}, {}, {}, {"budget_room_pusd": 999}, Reason.BUDGET),
        ({"salted": True}, {}, {}, {}, None),
        ({"salted": True}, {}, {}, {"accepts_salt": False}, Reason.SALT),
        ({}, {}, {"kv_used_tokens": 95_000.0}, {}, Reason.KV_HEADROOM),
        ({}, {"kv_headroom_floor": None, "slo": Slo()}, {"kv_used_tokens": 1e5}, {}, None),
        ({}, {}, {"queued_prefill_tokens": 40_000.0}, {}, Reason.TTFT),
        ({}, {}, {"prefill_budget_tokens": 0}, {}, Reason.TTFT),
        ({}, {}, {"running": 240, "context_tokens": 7e5}, {}, Reason.TPOT),
        ({}, {"slo": Slo()}, {"running": 240, "tightest_tpot_ms": 10.0}, {}, Reason.TPOT),
        ({}, {}, {"prefill_rate_tokens_per_s": 40_000.0}, {}, Reason.TPOT),
    ],
)
def test_an_own_engine_is_filtered(
    ask, rule, own, request_changes, policy_changes, state, candidate_changes, reason
):
    candidate = own(state, **candidate_changes)
    assert answer(ask(**request_changes), rule(**policy_changes), candidate) is reason


@pytest.mark.parametrize(
    ("request_changes", "policy_changes", "state", "reason"),
    [
        ({}, {}, {"health": TargetHealth.DOWN}, Reason.UNHEALTHY),
        ({}, {}, {"health": TargetHealth.UNKNOWN}, Reason.UNKNOWN_STATE),
        ({}, {}, {"circuit_open": True}, Reason.CIRCUIT_OPEN),
        ({}, {}, {"requests_left": 1, "tokens_left": 900}, None),
        ({}, {}, {"requests_left": 0}, Reason.RATE_LIMIT),
        ({}, {}, {"tokens_left": 899}, Reason.RATE_LIMIT),
        ({"max_tokens": None}, {}, {"tokens_left": 600}, None),
        ({"n": 2, "max_tokens": None}, {}, {"tokens_left": 699}, Reason.RATE_LIMIT),
        ({"kind": RequestKind.EMBEDDING}, {}, {"tokens_left": 500}, None),
        ({}, {"slo": Slo(ttft_ms=100.0)}, {}, None),
        ({}, {"slo": Slo(ttft_ms=100.0, strict=True)}, {}, Reason.TTFT),
        ({}, {"slo": Slo(ttft_ms=9e9, tpot_ms=10.0, strict=True)}, {}, Reason.TPOT),
        ({}, {"slo": Slo(tpot_ms=10.0, strict=True)}, {}, Reason.TPOT),
        ({}, {"slo": Slo(ttft_ms=9000.0, tpot_ms=900.0, strict=True)}, {}, None),
        ({}, {"slo": Slo(ttft_ms=9000.0, strict=True)}, {"ttft_median_ms": math.nan}, Reason.TTFT),
    ],
)
def test_an_api_is_filtered(ask, rule, api, request_changes, policy_changes, state, reason):
    assert answer(ask(**request_changes), rule(**policy_changes), api(state)) is reason


def test_a_candidate_without_any_state_is_unknown(ask, rule, api):
    candidate = replace(api(), api=None)
    assert answer(ask(), rule(), candidate) is Reason.UNKNOWN_STATE


def test_kv_headroom_is_exact_to_the_block(ask, rule, own):
    # 500 + 300 tokens are 50 blocks of 16: what must stay free is 10 000 tokens
    room = 100_000 - 10_000 - 800
    for used, feasible in ((room, True), (room + 1, False)):
        candidate = own({"kv_used_tokens": float(used), "kv_promised_tokens": 0.0})
        policy = rule(slo=Slo())
        assert (answer(ask(), policy, candidate) is None) is feasible
        spared = own({"kv_used_tokens": float(used - 16), "kv_promised_tokens": 16.0})
        assert (answer(ask(), policy, spared) is None) is feasible


@pytest.mark.parametrize(
    ("changes", "promised"),
    [
        ({}, 800),  # q95 of 100 outputs
        ({"max_tokens": 200}, 704),  # never more than the client allows
        ({"output": FEW}, 912),  # `max_tokens` until 30 were seen
        ({"output": FEW, "max_tokens": None}, 8192),  # the context limit
        ({"max_tokens": None}, 800),
        ({"n": 3}, 2400),
        ({"kind": RequestKind.EMBEDDING}, 512),
    ],
)
def test_the_kv_promise(ask, rule, own, changes, promised):
    candidate = own()
    work = work_of(ask(**changes), rule())
    assert forecast_engine(work, candidate, candidate.engine).kv_promise == promised


def test_what_the_prefix_cache_has_takes_room_all_the_same(ask, rule, own):
    """Its blocks may be free at this moment, and are this request's from then on."""
    work = work_of(ask(), rule())
    crowd = tuple((1000.0, 2000.0, 0.0) for _ in range(3))
    for residents in ((), crowd):
        cold, warm = (
            own({"prefix_hit_tokens": hit, "kv_used_tokens": 4000.0, "residents": residents})
            for hit in (0, 900)
        )
        told = [forecast_engine(work, item, item.engine) for item in (cold, warm)]
        assert told[0].kv_promise == told[1].kv_promise == 800
        assert told[0].kv_free == told[1].kv_free
        assert told[0].kv_ratio == told[1].kv_ratio


@pytest.mark.parametrize(
    "field",
    [
        "context_tokens",
        "queued_prefill_tokens",
        "kv_used_tokens",
        "kv_promised_tokens",
        "step_feedback",
        "safety_ttft",
        "safety_tpot",
        "prefill_rate_tokens_per_s",
    ],
)
@pytest.mark.parametrize("number", [math.nan, -1.0])
def test_absurd_metrics_are_unknown_not_good_news(ask, rule, own, field, number):
    for policy in (rule(), rule(slo=Slo(), kv_headroom_floor=None)):
        assert answer(ask(), policy, own({field: number})) is Reason.UNKNOWN_STATE


@pytest.mark.parametrize("field", ["context_tokens", "queued_prefill_tokens", "kv_used_tokens"])
def test_infinite_metrics_are_unknown(ask, rule, own, field):
    assert answer(ask(), rule(), own({field: math.inf})) is Reason.UNKNOWN_STATE


def test_details_carry_the_numbers(ask, rule, own):
    verdict = decide(ask(), rule(), [own({"kv_used_tokens": 95_000.0})]).verdicts[0]
    assert verdict.detail == "needs 800 tokens, would leave 3200 of 100000, floor 0.1"
    assert verdict.kv_ratio == pytest.approx(0.957)
    assert not verdict.feasible


@pytest.mark.parametrize(
    ("age_s", "said"),
    [(math.inf, "never seen"), (3.04, "last seen 3.0 s ago"), (4_000.0, "last seen 4000 s ago")],
)
def test_the_age_of_a_state_is_said_in_words(ask, rule, own, age_s, said):
    candidate = own({"health": TargetHealth.LOADING, "age_s": age_s})
    assert decide(ask(), rule(), [candidate]).verdicts[0].detail == said


def test_a_long_wait_is_said_in_whole_seconds(ask, rule, api):
    candidate = api({"requests_left": 0, "retry_after_s": 3_600.0})
    assert decide(ask(), rule(), [candidate]).verdicts[0].detail == "no requests left for 3600 s"


DOWN = {"health": TargetHealth.DOWN, "circuit_open": True, "requests_left": 0}


@pytest.mark.parametrize(
    ("request_changes", "policy_changes", "candidate_changes", "reason"),
    [
        ({}, {}, {"kinds": frozenset({RequestKind.EMBEDDING})}, Reason.MODEL),
        ({"features": frozenset({Feature.IMAGES})}, {}, {"features": frozenset()}, Reason.FEATURE),
        ({"max_tokens": 300_000}, {}, {}, Reason.CONTEXT),
        ({"residency": Residency.INTERNAL_ONLY}, {}, {}, Reason.RESIDENCY),
        ({"kept_for": "card"}, {}, {}, Reason.CONTENT),
        ({"salted": True}, {}, {"accepts_salt": False}, Reason.SALT),
        *(
            ({"barred": {"openai/small": (word, "")}}, {}, {}, word)
            for word in (
                Reason.CANARY,
                Reason.CANDIDATES,
                Reason.QUALITY,
                Reason.PARTLY_PRICED,
            )
        ),
        ({}, {"max_cost_pusd": 10**15}, {"expected_pusd": None}, Reason.UNPRICED),
        ({}, {"max_cost_pusd": 1}, {}, Reason.PRICE_CAP),
    ],
)
def test_who_may_never_serve_is_not_called_down(
    ask, rule, api, request_changes, policy_changes, candidate_changes, reason
):
    candidate = api(DOWN, budget_room_pusd=0, **candidate_changes)
    assert reason in PERMANENT
    assert answer(ask(**request_changes), rule(**policy_changes), candidate) is reason


def test_a_spent_budget_outlasts_an_outage(ask, rule, api):
    assert answer(ask(), rule(), api(DOWN, budget_room_pusd=0)) is Reason.BUDGET
    assert answer(ask(), rule(), api(DOWN)) is Reason.UNHEALTHY


def test_every_permanent_reason_is_judged_above():
    (cases,) = [
        mark.args[1]
        for mark in test_who_may_never_serve_is_not_called_down.pytestmark
        if mark.name == "parametrize"
    ]
    assert {case[-1] for case in cases} == PERMANENT
