"""The arithmetic of the forecast, against figures worked out by hand."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.filters import kv_headroom
from router.forecast import (
    engine_seconds,
    forecast_engine,
    kv_free_tokens,
    kv_promise_tokens,
    work_of,
)
from router.prompts import RequestUnits
from router.reasons import Reason
from router.request_kinds import RequestKind
from router.types import OutputMoments, Slo, StepModel

SIMPLE = StepModel(a_s=0.010, b_s=0.001, c_s=1e-6, d_s=1e-5, t0_s=0.02)


def forecast(request, policy, candidate):
    return forecast_engine(work_of(request, policy), candidate, candidate.engine)


def test_an_idle_engine(ask, rule, own):
    idle = {"step": SIMPLE, "running": 0, "context_tokens": 0.0, "kv_used_tokens": 0.0,
            "kv_promised_tokens": 0.0}  # fmt: skip
    numbers = forecast(ask(), rule(), own(idle))
    assert numbers.ttft_ms == pytest.approx(20 + 10 + 5)  # t0, one step, 500 tokens of prefill
    assert numbers.tpot_ms == pytest.approx(10 + 1 + 0.55)  # context 500 + 100 / 2
    assert numbers.kv_ratio == pytest.approx(600 / 100_000)
    held = 100 * 500 + 15_000 / 2
    seconds = 1e-5 * 500 + 0.001 * 100 + (1e-6 + 0.010 / 100_000) * held
    assert numbers.engine_seconds == pytest.approx(seconds)
    assert numbers.load == pytest.approx(11.55 / 40)  # TPOT is its worst ratio to a limit


def test_a_busy_engine_with_feedback(ask, rule, own):
    busy = {"step": SIMPLE, "running": 10, "context_tokens": 5000.0, "step_feedback": 2.0,
            "queued_prefill_tokens": 3000.0, "prefill_rate_tokens_per_s": 10_000.0}  # fmt: skip
    numbers = forecast(ask(), rule(), own(busy))
    step_ms = 10 + 10 + 5
    # 3500 tokens in chunks of 2038 take two steps, after half of the one under way
    assert numbers.ttft_ms == pytest.approx(20 + 2 * (2 * step_ms + 35 + step_ms / 2))
    assert numbers.tpot_ms == pytest.approx(2 * (10 + 11 + 5 + 3 + 0.55) / (1 - 2 * 0.1))


BRIEF = OutputMoments(count=10, mean=2.0, mean_square=5.0, p95=3.0)
FULL = StepModel(a_s=0.005, b_s=0.0, c_s=0.0, d_s=2.78e-5, t0_s=0.0)


@pytest.mark.parametrize(
    ("state", "tpot_ms", "longest", "is_counted"),
    [
        ({}, 50.0, 3, True),
        ({}, 50.0, 9, False),  # long enough for a mean
        ({}, 50.0, 1, False),  # it has no gap
        ({"prefill_budget_tokens": 960}, 50.0, 3, False),  # no step is longer than is promised
        ({"queued_prefill_tokens": 0.0, "running": 0}, 50.0, 3, False),  # nobody comes behind it
        ({}, 80.0, 3, False),
    ],
)
def test_a_short_answer_meets_the_step_that_others_fill(
    ask, rule, own, state, tpot_ms, longest, is_counted
):
    """Of a long one it is part of a mean; one of two tokens has a single gap."""
    busy = own({"step": FULL, "running": 1, "prefill_rate_tokens_per_s": 5000.0,
                "queued_prefill_tokens": 2000.0, **state})  # fmt: skip
    policy = rule(slo=Slo(ttft_ms=5000.0, tpot_ms=tpot_ms))
    numbers = forecast(ask(output=BRIEF, max_tokens=longest), policy, busy)
    unpromised = forecast(ask(output=BRIEF, max_tokens=longest), rule(slo=Slo(ttft_ms=5e3)), busy)
    if is_counted:
        assert numbers.tpot_ms > tpot_ms > unpromised.tpot_ms
        assert numbers.load > 1.0
    else:
        assert numbers.tpot_ms == unpromised.tpot_ms


@pytest.mark.parametrize(
    ("state", "prompt", "is_held_back"),
    [
        ({}, 1500, True),
        ({}, 300, False),  # read beside those ahead, and the step is short enough
        ({"spare_brief_misses": 0.0}, 1500, False),  # no more of them than the SLO leaves
        ({"safety_tpot": 0.65}, 1500, False),  # a lower mean may still help
        ({"safety_tpot": 0.51}, 1500, False),  # more may wait ahead: 1,176 tokens
        ({"safety_tpot": 0.43}, 1500, True),  # 388 tokens
        ({"queued_prefill_tokens": 400.0}, 1500, False),
        ({"prefill_budget_tokens": 960}, 1500, False),  # no step is longer than is promised
        ({"step": SIMPLE}, 1500, False),
    ],
)  # fmt: skip
def test_few_wait_ahead_where_long_steps_break_brief_answers(
    ask, rule, own, state, prompt, is_held_back
):
    """The means promise all of these their time per token; a step of 2,000 tokens takes 61 ms."""
    busy = own({"step": FULL, "running": 1, "queued_prefill_tokens": 900.0, "safety_tpot": 0.45,
                "spare_brief_misses": -0.1, **state})  # fmt: skip
    numbers = forecast(ask(prompt_tokens=prompt), rule(slo=Slo(ttft_ms=5e3, tpot_ms=50.0)), busy)
    assert (numbers.tpot_ms > numbers.tpot_limit_ms) == is_held_back
    if is_held_back:
        assert numbers.tpot_limit_ms == pytest.approx(50.0)


def _odds(odds):
    return OutputMoments(count=100, mean=200.0, mean_square=60_000.0, p95=500.0, brief_odds=odds)


@pytest.mark.parametrize(
    ("state", "odds", "limit_ms"),
    [
        ({}, 2.0, 50.0),  # the step that reads what is queued is short: a full one counts
        ({"spare_brief_misses": 0.0}, 2.0, None),  # the SLO leaves a few
        ({"prefill_budget_tokens": 960}, 2.0, None),  # no step is longer than is promised
        ({}, 1.0, None),
        ({"queued_prefill_tokens": 3000.0}, 1.0, 50.0),  # nothing tells them: prompts wait
        ({"queued_prefill_tokens": 3000.0}, 0.3, None),  # told, and no brief one: it need not
    ],
)
def test_likely_brief_answers_leave_before_others_wait(ask, rule, own, state, odds, limit_ms):
    busy = own({"step": FULL, "running": 1, "queued_prefill_tokens": 100.0, "safety_tpot": 0.45,
                "spare_brief_misses": -0.1, **state})  # fmt: skip
    policy = rule(slo=Slo(ttft_ms=5e3, tpot_ms=50.0))
    numbers = forecast(ask(prompt_tokens=600, output=_odds(odds)), policy, busy)
    assert (numbers.tpot_ms > numbers.tpot_limit_ms) == (limit_ms is not None)
    if limit_ms is not None:
        assert numbers.tpot_limit_ms == pytest.approx(limit_ms)


def test_what_the_engine_has_read_of_its_queue_waits_no_more(ask, rule, own):
    """By the clock since the queue moved, and never more than one prompt of it."""
    busy = {"step": SIMPLE, "running": 10, "context_tokens": 5000.0, "step_feedback": 2.0,
            "queued_prefill_tokens": 3000.0, "head_tokens": 1500.0}  # fmt: skip
    token_s = 2.0 * (1e-5 + 0.025 / 2038)
    for since_s, read in ((0.0, 0.0), (0.01, 0.01 / token_s), (9.0, 1500.0), (math.inf, 1500.0)):
        engine = own({**busy, "head_since_s": since_s})
        assert engine.engine.read_tokens == pytest.approx(read)
        steps = 1 if 3500 - read <= 2038 else 2
        prefill_ms = 1e-2 * (3500 - read)
        assert forecast(ask(), rule(), engine).ttft_ms == pytest.approx(
            20 + 2 * (steps * 25 + prefill_ms + 12.5)
        )
    assert own({**busy, "head_since_s": 9.0, "step": None}).engine.read_tokens == 0.0


def test_a_full_batch_waits_for_others_to_end(ask, rule, own):
    full = {"step": SIMPLE, "running": 8, "max_num_seqs": 8, "context_tokens": 0.0}
    free = {**full, "max_num_seqs": 9}
    late, soon = (forecast(ask(), rule(), own(state)).ttft_ms for state in (full, free))
    assert late - soon == pytest.approx(100 * 18 / 8)  # one ends every 100 steps / 8 sequences
    assert forecast(ask(), rule(slo=Slo()), own(full)).load == pytest.approx(9 / 8)


def test_prefill_that_takes_all_the_time_leaves_no_decoding(ask, rule, own):
    state = {"step": SIMPLE, "prefill_rate_tokens_per_s": 1e5, "prefill_budget_tokens": 9999}
    assert forecast(ask(), rule(), own(state)).tpot_ms == math.inf


def test_no_step_is_longer_than_one_full_of_prompts(ask, rule, own):
    """Where that one keeps the promise it is kept, unless answers have shown otherwise."""
    state = {"step": SIMPLE, "prefill_rate_tokens_per_s": 1e5, "prefill_budget_tokens": 1000}
    found = forecast(ask(), rule(), own(state))
    room = 1000 - own(state).engine.sequences
    assert found.tpot_limit_ms == pytest.approx(50.0)
    assert found.tpot_limit_ms > found.tpot_ms > 1000.0 * SIMPLE.d_s * room
    few = forecast(ask(), rule(), own({**state, "prefill_budget_tokens": 900}))
    assert found.tpot_ms - few.tpot_ms == pytest.approx(1000.0 * SIMPLE.d_s * 100)
    broken = own({**state, "safety_tpot": 0.4})
    assert forecast(ask(), rule(), broken).tpot_ms == math.inf
    short = rule(slo=Slo(500.0, 20.0))
    assert forecast(ask(), short, own(state)).tpot_ms == math.inf


def test_no_room_in_the_chunk_is_one_step_a_token(ask, rule, own):
    state = {"step": SIMPLE, "running": 0, "context_tokens": 0.0, "prefill_budget_tokens": 0}
    assert forecast(ask(), rule(), own(state)).ttft_ms == pytest.approx(20 + 5 + 500 * 10)


def test_a_prefix_hit_saves_prefill_but_not_context(ask, rule, own):
    cold = forecast(ask(), rule(), own({"step": SIMPLE}))
    warm = forecast(ask(), rule(), own({"step": SIMPLE, "prefix_hit_tokens": 400}))
    assert cold.ttft_ms - warm.ttft_ms == pytest.approx(4.0)
    assert cold.engine_seconds - warm.engine_seconds == pytest.approx(0.004)
    whole = forecast(ask(), rule(), own({"step": SIMPLE, "prefix_hit_tokens": 9999}))
    assert cold.ttft_ms - whole.ttft_ms == pytest.approx(4.99)  # one token is always computed


def test_what_others_have_in_the_cache_is_read_along_and_not_waited_for(ask, rule, own):
    alone = forecast(ask(), rule(), own({"step": SIMPLE}))
    behind = forecast(ask(), rule(), own({"step": SIMPLE, "queued_hit_tokens": 5000.0}))
    assert behind.ttft_ms == alone.ttft_ms
    assert behind.tpot_ms - alone.tpot_ms == pytest.approx(1000 * SIMPLE.c_s * 5000)


@pytest.mark.parametrize("safety", [0.4, 0.85, 1.0])
def test_reading_a_long_prompt_itself_needs_a_third_of_the_margin(ask, rule, own, safety):
    """The margin is for what others do; of short prompts, and behind a tighter class, all stays."""
    policy = rule(slo=Slo(ttft_ms=1000.0))
    state = {"step": SIMPLE, "safety_ttft": safety}

    def limit(fresh, **more):
        asked = ask(prompt_tokens=fresh)
        return forecast(asked, policy, own({**state, **more})).ttft_limit_ms

    whole = 1000.0 * safety
    assert limit(50_000) == limit(500) == whole
    assert limit(80_000, prefix_hit_tokens=40_000) == whole  # what is cached is not read
    assert limit(80_000, tightest_ttft_ms=500.0) == whole
    most = 1.0 - (1.0 - safety) / 3.0
    for fresh, sure in ((80_000, 800.0), (60_000, 400.0)):  # at 10 us a token
        assert limit(fresh) == pytest.approx(whole + sure * (1.0 - safety / most))
    limits = [limit(fresh) for fresh in range(40_000, 90_000, 1000)]
    assert limits == sorted(limits)
    assert limits[-1] <= 1000.0
    long = forecast(ask(prompt_tokens=80_000), policy, own(state))
    assert long.load >= long.ttft_ms / long.ttft_limit_ms - 1e-9


@pytest.mark.parametrize("safety", [0.4, 0.85, 1.0])
def test_a_long_prompt_needs_no_margin_while_a_miss_is_to_spare(ask, rule, own, safety):
    """It reads for half of the promise or longer, at an engine that reads little else."""
    policy = rule(slo=Slo(ttft_ms=1000.0))

    def limit(fresh, spare, **more):
        state = {"step": SIMPLE, "safety_ttft": safety, "spare_misses": spare, **more}
        return forecast(ask(prompt_tokens=fresh), policy, own(state)).ttft_limit_ms

    whole = 1000.0 * safety
    assert limit(51_000, 1.0) == limit(90_000, 2.0) == pytest.approx(1000.0)
    assert limit(51_000, 0.99) < 1000.0 or safety == 1.0
    assert limit(49_000, 1.0) == whole
    assert limit(80_000, 1.0, prefix_hit_tokens=40_000) == whole
    assert limit(80_000, 1.0, tightest_ttft_ms=500.0) == whole
    assert limit(80_000, math.nan) == limit(80_000, 0.0)
    reading = {"prefill_rate_tokens_per_s": 25_000.0}  # a quarter of the time, at 10 us a token
    assert limit(80_000, 1.0, **reading) == limit(80_000, 0.0, **reading)
    assert limit(80_000, 1.0, prefill_rate_tokens_per_s=24_000.0) == pytest.approx(1000.0)


def test_the_tightest_resident_sets_limits_and_load(ask, rule, own):
    slack = forecast(ask(), rule(), own({"step": SIMPLE}))
    tight = forecast(
        ask(), rule(), own({"step": SIMPLE, "tightest_ttft_ms": 60.0, "tightest_tpot_ms": 30.0})
    )
    assert (slack.ttft_limit_ms, slack.tpot_limit_ms) == (0.85 * 500, 0.8 * 50)
    assert (tight.ttft_limit_ms, tight.tpot_limit_ms) == (0.85 * 500, 0.8 * 30)
    behind_ms = tight.ttft_ms + 500 * 0.01  # whoever of the tight class comes next waits for both
    assert tight.load == pytest.approx(behind_ms / (0.85 * 60))
    assert tight.load > slack.load
    same = forecast(
        ask(), rule(slo=Slo(ttft_ms=60.0)), own({"step": SIMPLE, "tightest_ttft_ms": 62.0})
    )
    assert same.load == pytest.approx(same.ttft_ms / (0.85 * 60))


def test_embeddings_neither_decode_nor_promise(ask, rule, own):
    state = {"step": SIMPLE, "kv_capacity_tokens": 0, "tightest_tpot_ms": 1.0}
    numbers = forecast(ask(kind=RequestKind.EMBEDDING), rule(), own(state))
    assert (numbers.tpot_ms, numbers.tpot_limit_ms, numbers.kv_ratio) == (None, None, None)
    assert numbers.engine_seconds == pytest.approx(1e-5 * 500)


def test_many_inputs_come_and_go_in_the_cache(ask, rule, own):
    """Together they are more than it holds, and a chat of that size would be kept away."""
    state = {"step": SIMPLE, "kv_capacity_tokens": 400, "kv_used_tokens": 390.0}
    listed = forecast(
        ask(kind=RequestKind.RERANK, extent=RequestUnits(longest=0.1)), rule(), own(state)
    )
    assert (listed.kv_promise, kv_headroom(rule(), own(state), listed)) == (0, None)
    assert listed.engine_seconds == pytest.approx(1e-5 * 500)
    chat = forecast(ask(), rule(), own(state))
    assert kv_headroom(rule(), own(state), chat)[0] is Reason.KV_HEADROOM  # the control


def test_a_floor_of_everything_leaves_no_kv(ask, rule, own):
    assert forecast(ask(), rule(kv_headroom_floor=1.0), own()).load == math.inf


def test_without_a_step_model_only_kv_and_sequences_are_known(ask, rule, own):
    numbers = forecast(ask(), rule(), own({"step": None}))
    assert (numbers.ttft_ms, numbers.tpot_ms, numbers.engine_seconds) == (None, None, None)
    assert numbers.load == pytest.approx(numbers.kv_ratio / 0.9)


@given(prompt=st.integers(1, 30_000), output=st.floats(1, 4000), capacity=st.integers(0, 10**6))
def test_known_usage_costs_what_was_forecast(ask, rule, own, prompt, output, capacity):
    moments = replace(ask().output, mean=output, mean_square=2 * output**2)
    request = ask(prompt_tokens=prompt, max_tokens=None, output=moments)
    candidate = own({"kv_capacity_tokens": capacity, "step_feedback": 1.5})
    seconds = engine_seconds(
        candidate.engine.step, kv_capacity_tokens=capacity, prompt_tokens=prompt,
        output_mean=output, output_mean_square=2 * output**2,
    )  # fmt: skip
    assert forecast(request, rule(), candidate).engine_seconds == pytest.approx(1.5 * seconds)


def test_long_prompts_attend_to_what_lies_before_them(ask, rule, own):
    """Worked out for 20,000 tokens, 4,000 of them cached, behind one prompt of 10,000."""
    quadratic = replace(SIMPLE, q_s=1e-9)
    state = {"running": 0, "queued_prefill_tokens": 10_000.0, "head_tokens": 10_000.0,
             "prefix_hit_tokens": 4000, "prefill_budget_tokens": 50_000}  # fmt: skip
    request = ask(prompt_tokens=20_000)
    plain, bent = (
        forecast(request, rule(), own({**state, "step": step})) for step in (SIMPLE, quadratic)
    )
    own_ms = 1e-6 * 16_000 * (4000 + 8000)
    ahead_ms = 1e-6 * 10_000 * 5000
    assert bent.ttft_ms - plain.ttft_ms == pytest.approx(own_ms + ahead_ms)
    assert bent.engine_seconds - plain.engine_seconds == pytest.approx(own_ms / 1000)
    half_read = own({**state, "step": quadratic, "head_since_s": 0.05})
    read = half_read.engine.read_tokens
    assert 1000 < read < 10_000
    less = own({**state, "step": SIMPLE, "head_since_s": 0.05})
    later_ms = (
        forecast(request, rule(), half_read).ttft_ms - forecast(request, rule(), less).ttft_ms
    )
    assert later_ms == pytest.approx(own_ms + ahead_ms - 1e-6 * read * read / 2)


def test_expected_output_stays_below_what_the_client_allows(ask, rule):
    work = work_of(ask(max_tokens=40), rule())
    assert (work.output, work.held) == (40, 40 * 500 + 40 * 40 / 2)


@pytest.mark.parametrize(("most", "promise"), [(800, 900), (None, None)])
def test_answers_of_unknown_length_are_promised_all_that_they_may_hold(ask, rule, most, promise):
    unknown = OutputMoments(count=1000, mean=8.0, mean_square=64.0, p95=math.inf)
    known = OutputMoments(count=1000, mean=8.0, mean_square=64.0, p95=8.0)
    request = ask(prompt_tokens=100, max_tokens=most, output=unknown)
    assert work_of(request, rule()).promise == promise
    request = ask(prompt_tokens=100, max_tokens=most, output=known)
    assert work_of(request, rule()).promise == 108  # the control


def test_who_ends_soon_makes_room_for_who_begins(own, ask, rule) -> None:
    """Two residents near their ends: their promises and the newcomer's never meet."""
    unseen = OutputMoments(count=0, mean=150.0, mean_square=45_000.0, p95=0.0)
    request = ask(prompt_tokens=100, max_tokens=800, output=unseen)
    work = work_of(request, rule())
    residents = ((780.0, 800.0, 0.0), (790.0, 800.0, 0.0), (100.0, 800.0, 0.0))
    held = sum(held for held, _, _ in residents)
    state = {"kv_capacity_tokens": 23 * 128, "kv_block_tokens": 128, "kv_used_tokens": held,
             "kv_promised_tokens": 3 * 896 - held}  # fmt: skip
    summed, followed = own(state), own({**state, "residents": residents})
    promise = kv_promise_tokens(work, summed, summed.engine)
    assert promise == 8 * 128
    assert kv_free_tokens(work, summed, summed.engine, promise) == (23 - 3 * 7 - 8) * 128
    # In ten steps the first two hold 7 blocks each and the others one; after that it is less.
    assert kv_free_tokens(work, followed, followed.engine, promise) == (23 - 16) * 128
    assert kv_headroom(rule(), summed, forecast(request, rule(), summed))[0] is Reason.KV_HEADROOM
    assert kv_headroom(rule(), followed, forecast(request, rule(), followed)) is None
    # Load that is not followed counts in full, and several choices are not followed at all.
    foreign = own({**state, "residents": residents, "kv_used_tokens": held + 640.0})
    assert kv_free_tokens(work, foreign, foreign.engine, promise) == (23 - 16 - 5) * 128
    twice = work_of(ask(prompt_tokens=100, max_tokens=800, output=unseen, n=2), rule())
    assert kv_free_tokens(twice, followed, followed.engine, 2 * promise) == (23 - 37) * 128
