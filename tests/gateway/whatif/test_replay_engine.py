"""Dead reckoning of a simulated engine: what a decision may see, and how late."""

from dataclasses import replace

import pytest

from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine, ReplayRequest
from gateway.whatif.traffic import Arrival
from router.feedback import SAFETY_TPOT, SAFETY_TTFT
from router.types import Slo

SLO = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)


def seated(shape, knowledge: EngineKnowledge | None = None) -> ReplayEngine:
    return ReplayEngine("pool:own/0", shape, knowledge or EngineKnowledge())


def send(
    seat: ReplayEngine,
    name: str,
    at_s: float,
    worker: int = 0,
    output: int = 50,
    prompt: int = 1000,
    slo: Slo = SLO,
    *,
    best_effort: bool = False,
) -> ReplayRequest:
    arrival = Arrival(at_s, prompt, output, "chat")
    flight = ReplayRequest(arrival, slo, at_s, 1600, 1600, best_effort=best_effort)
    seat.submit(name, flight, worker)
    return flight


def test_a_request_is_queued_then_context_then_nothing(shape) -> None:
    seat = seated(shape)
    send(seat, "0", 0.0)
    state = seat.state(0.0)
    assert (state.running, state.queued_prefill_tokens, state.context_tokens) == (1, 1000, 0)
    assert (state.kv_used_tokens, state.kv_promised_tokens) == (1000, 600)
    seat.advance(0.1)
    state = seat.state(0.1)
    assert state.queued_prefill_tokens == 0
    assert state.context_tokens >= 1000
    ((name, flight),) = seat.advance(5.0)
    ttft_s, tpot_s = flight.latencies_s
    assert name == "0"
    # t0, one prefill step, then steps of one sequence each
    assert ttft_s == pytest.approx(0.0138 + 0.00479 + 1000 * 27.8e-6, rel=0.01)
    assert tpot_s == pytest.approx(0.00479 + 28e-6 + 1025 * 46.8e-9, rel=0.01)
    state = seat.state(5.0)
    assert (state.running, state.kv_used_tokens, state.kv_promised_tokens) == (0, 0, 0)


def test_the_head_of_the_queue_is_read_by_the_clock(shape) -> None:
    seat = seated(shape)
    send(seat, "0", 0.0)
    send(seat, "1", 0.01)
    state = seat.state(0.02)
    assert (state.head_tokens, state.head_since_s) == (1000.0, 0.02)
    seat.advance(0.06)  # the first is read
    state = seat.state(0.06)
    assert (state.head_tokens, state.queued_prefill_tokens) == (1000.0, 1000)
    assert state.head_since_s == pytest.approx(0.06 - 0.0138 - 0.00479 - 1000 * 27.8e-6)
    seat.advance(0.2)
    assert seat.state(0.2).head_tokens == 0.0


def test_the_head_of_the_queue_is_more_likely_a_long_prompt(shape) -> None:
    seat = seated(shape)
    send(seat, "0", 0.0, prompt=3000)
    send(seat, "1", 0.0)
    assert seat.state(0.01).head_tokens == pytest.approx((3000**2 + 1000**2) / 4000)
    seat.abort("0")
    assert seat.state(0.01).head_tokens == 1000.0


def test_what_is_aborted_leaves_nothing_and_teaches_nothing(shape) -> None:
    seat = seated(shape)
    send(seat, "0", 0.0)
    seat.abort("0")
    state = seat.state(0.0)
    assert (state.running, state.kv_used_tokens, state.kv_promised_tokens) == (0, 0, 0)
    assert seat.advance(5.0) == []


@pytest.mark.parametrize(("best_effort", "is_lowered"), [(False, True), (True, False)])
def test_what_was_forecast_to_break_its_promise_lowers_no_margin(
    shape, best_effort: bool, is_lowered: bool
) -> None:
    seat, never = seated(shape), Slo(ttft_ms=1.0, tpot_ms=0.1, attainment=0.99)
    seat.fold(0.0)
    for second in range(10):
        seat.advance(float(second))
        seat.fold(float(second))
        send(seat, str(second), float(second), slo=never, best_effort=best_effort)
    state = seat.state(10.0)
    assert (state.safety_ttft < SAFETY_TTFT, state.safety_tpot < SAFETY_TPOT) == (is_lowered,) * 2


def test_a_best_effort_has_no_pace_that_others_must_respect(shape) -> None:
    seat = seated(shape)
    send(seat, "0", 0.0, best_effort=True)
    assert seat.state(0.0).tightest_tpot_ms is None
    send(seat, "1", 0.0)
    assert seat.state(0.0).tightest_tpot_ms == SLO.tpot_ms
    seat.advance(60.0)
    assert seat.state(60.0).tightest_tpot_ms is None


def test_the_loops_find_a_wrong_model_out(shape) -> None:
    knowledge = EngineKnowledge(step_factor=0.7)
    seat = seated(shape, knowledge)
    seat.fold(0.0)
    for second in range(60):
        seat.advance(float(second))
        seat.fold(float(second))
        send(seat, str(second), float(second))
    assert seat.state(60.0).step_feedback == pytest.approx(1 / 0.7, rel=0.03)
    assert seat.state(60.0).safety_ttft > SAFETY_TTFT  # every promise was kept
    blind = seated(shape, replace(knowledge, loops=False))
    blind.fold(0.0)
    send(blind, "0", 0.0)
    blind.advance(5.0)
    blind.fold(5.0)
    assert blind.state(5.0).step_feedback == 1.0
    assert blind.state(5.0).prefill_rate_tokens_per_s > 0.0


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_warm_session_looks_as_slow_as_it_is(shape, is_counted: bool) -> None:
    """Where its whole prompt counts as read, every step looks faster than it is."""
    seat = seated(shape)
    seat.fold(0.0)
    for turn in range(20):
        for session in range(4):
            at_s = 4.0 * turn + 0.9 * session
            seat.advance(at_s)
            seat.fold(at_s)
            prompt = 3000 + 50 * turn
            known = prompt - 50 if is_counted and turn else 0
            arrival = Arrival(at_s, prompt, 400, "chat", session=str(session))
            flight = ReplayRequest(arrival, SLO, at_s, prompt + 448, prompt + 448, known)
            seat.submit(f"{turn}-{session}", flight)
            if turn and is_counted:
                assert seat.state(at_s).queued_prefill_tokens <= 100
                assert seat.state(at_s).queued_hit_tokens >= known
    seen = seat.state(80.0)
    assert (seen.step_feedback > 0.97) is is_counted
    assert seen.step_feedback < 1.05
    seat.advance(90.0)
    seen = seat.state(90.0)
    assert (seen.queued_prefill_tokens, seen.queued_hit_tokens, seen.kv_used_tokens) == (0, 0, 0)


def test_bursts_of_long_prompts_look_no_slower_than_they_are(shape) -> None:
    """With the load of a flight's two ends in place of its mean an exact model looked 4 % off."""
    seat = seated(shape)
    for group in range(20):
        for place in range(4):
            at_s = 6.0 * group + 0.01 * place
            seat.advance(at_s)
            send(seat, f"{group}.{place}", at_s, output=60 + 20 * place, prompt=8000)
        for tick in range(1, 12):
            seat.advance(6.0 * group + 0.25 * tick)
            seat.fold(6.0 * group + 0.25 * tick)
    assert seat.loops.step_feedback == pytest.approx(1.0, abs=0.02)


def test_another_workers_news_comes_late(shape) -> None:
    seat = seated(shape, EngineKnowledge(workers=2, skew_s=0.05))
    send(seat, "0", 1.0, worker=0)
    send(seat, "1", 1.02, worker=1)
    assert seat.state(1.03, worker=0).running == 1
    assert seat.state(1.03, worker=1).running == 1
    assert seat.state(1.08, worker=0).running == 2
    assert seat.state(1.08, worker=0).queued_prefill_tokens == 2000


def test_what_others_did_at_the_moment_of_dispatch_is_known_later(shape) -> None:
    seat = seated(shape, EngineKnowledge(workers=2, skew_s=0.05))
    send(seat, "0", 0.94, worker=0)  # known by then
    send(seat, "1", 0.99, worker=0)
    mine = send(seat, "2", 1.0, worker=1)
    send(seat, "3", 1.01, worker=0)  # came after
    send(seat, "4", 1.03, worker=1)
    assert seat.missed_load(mine) == (1.0, 0.0, 1000.0, 1600.0)
    seat.advance(1.05)
    assert seat.is_looked_at_again
    once = EngineKnowledge(workers=2, skew_s=0.05, looks_again=False)
    assert not seated(shape, once).is_looked_at_again
    assert not seated(shape).is_looked_at_again


def test_residents_of_a_crowded_engine_are_followed(shape) -> None:
    seat = seated(replace(shape, blocks=151))
    send(seat, "0", 0.0, output=500)
    assert seat.state(0.0).residents == ()  # decoding nobody
    seat.advance(0.5)
    ((held, final, slack),) = seat.state(0.5).residents
    assert 1000 < held < final == 1600
    assert slack == 0.0
