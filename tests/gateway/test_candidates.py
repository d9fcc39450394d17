"""Freezing: dead reckoning plus foreign load, stale state unknown, bounds that bound."""

from pathlib import Path

import pytest

from gateway.candidates import (
    HEARD_LIMIT_S,
    OUTPUT_BOUND_TOKENS,
    Candidates,
    engine_state,
    own_bound_pusd,
)
from gateway.clock import Clock
from gateway.fleet import Target
from gateway.slots import HEALTHS, Board, Layout, Load, Published, Resident
from ledger.prices import PriceBook
from router.types import Health, Kind, OutputMoments, Request

NOW_S = 50.0
PUBLISHED = {
    Published.HEALTH: float(HEALTHS.index("healthy")),
    Published.KV_CAPACITY_TOKENS: 2944.0,
    Published.KV_BLOCK_TOKENS: 128.0,
    Published.A_S: 0.01,
    Published.B_S: 0.001,
    Published.C_S: 1e-6,
    Published.D_S: 1e-4,
    Published.CONTEXT_TOKENS: 2048.0,
    Published.UPDATED_S: NOW_S - 1.0,
}


@pytest.fixture
def board(tmp_path: Path):
    board = Board(tmp_path / "board", Layout(workers=2, engines=("pool:a/0",), apis=("x/m",)))
    board.publish(0, PUBLISHED)
    yield board
    board.close()


def target(*, own: bool, rate: int | None = 3600 * 10**9) -> Target:
    return Target(
        name="pool:a/0" if own else "x/m",
        own=own,
        pool="a" if own else None,
        provider=None if own else "x",
        upstream_model="m",
        simulated=False,
        backend=None,  # type: ignore[arg-type]  # freezing never calls it
        row=0,
        features=frozenset(),
        kinds=frozenset(Kind),
        context_tokens=None,
        accepts_salt=True,
        rate_pusd_per_hour=rate,
    )


def request(max_tokens: int | None = 100) -> Request:
    return Request(
        kind=Kind.CHAT,
        model="chat",
        prompt_tokens=200,
        prompt_tokens_bound=300,
        max_tokens=max_tokens,
        output=OutputMoments(count=50, mean=80.0, mean_square=7000.0, p95=150.0),
    )


def state(board: Board, now_s: float = NOW_S):
    return engine_state(board.published(0), board.loads(0), now_s, 10.0, life=board.life(0))


def test_own_events_and_foreign_load_add_up(board: Board) -> None:
    for worker, sequences in ((0, 2.0), (1, 1.0)):
        row = board.load_row(worker, 0)
        board.cells[row + Load.SEQUENCES] = sequences
        board.cells[row + Load.CONTEXT_TOKENS] = 300.0 * sequences
        board.cells[row + Load.QUEUED_PREFILL_TOKENS] = 50.0
        board.cells[row + Load.PROMISED_TOKENS] = 512.0 * sequences
    board.publish(0, {Published.FOREIGN_SEQUENCES: 4.0, Published.FOREIGN_KV_TOKENS: 640.0})
    engine = state(board)
    assert engine.health is Health.HEALTHY
    assert engine.running == 7
    assert engine.context_tokens == 900 + 640
    assert engine.queued_prefill_tokens == 100
    assert engine.kv_used_tokens + engine.kv_promised_tokens == 3 * 512 + 640


def test_metrics_of_another_life_than_serves_are_the_past(board: Board) -> None:
    """As soon as the parent says so, and until telemetry has met the next one."""
    board.own(0, "serving", life=1)
    assert state(board).health is Health.LOADING
    board.publish(0, {**PUBLISHED, Published.LIFE: 1.0})
    assert state(board).health is Health.HEALTHY
    board.own(0, "backing_off")
    assert state(board).health is Health.LOADING
    board.own(0, "serving", life=2)
    assert state(board).health is Health.LOADING
    board.publish(0, {Published.HEALTH: float(HEALTHS.index("down"))})
    assert state(board).health is Health.DOWN


def test_residents_are_looked_at_when_it_is_crowded(board: Board) -> None:
    candidates = Candidates(board, PriceBook([]), stale_s=10.0)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    row, place = board.load_row(0, 0), board.resident_row(0, 0, 0)
    board.cells[place + Resident.HELD_TOKENS] = 200.0
    board.cells[place + Resident.FINAL_TOKENS] = 1400.0
    board.cells[place + Resident.HEARD_S] = NOW_S

    def residents(promised: float):
        board.cells[row + Load.PROMISED_TOKENS] = promised
        (own,) = candidates.freeze(
            [target(own=True)], request(), [], room=lambda _: None, clock=clock
        )
        return own.candidate.engine.residents

    assert residents(1472.0) == ()
    assert residents(1480.0) == ((200.0, 1400.0, 0.0),)  # more than half of 2944
    board.cells[place + Resident.HEARD_S] = NOW_S - HEARD_LIMIT_S - 0.01
    assert residents(1480.0) == ()  # not heard of lately: all of its promise counts


def test_stale_or_missing_metrics_are_unknown(board: Board) -> None:
    assert state(board, NOW_S + 8.9).health is Health.HEALTHY
    assert state(board, NOW_S + 9.1).health is Health.UNKNOWN
    board.publish(0, {Published.UPDATED_S: 0.0})
    assert state(board).health is Health.UNKNOWN


def test_an_engine_without_a_fit_has_no_step_model(board: Board) -> None:
    board.publish(0, {Published.A_S: 0.0})
    assert state(board).step is None


def test_the_bound_of_an_own_request_grows_with_its_output(board: Board) -> None:
    engine = state(board)
    small = own_bound_pusd(target(own=True), engine, request(10))
    large = own_bound_pusd(target(own=True), engine, request(1000))
    assert 0 < small < large
    open_ended = own_bound_pusd(target(own=True), engine, request(None))
    assert open_ended == own_bound_pusd(target(own=True), engine, request(OUTPUT_BOUND_TOKENS))
    assert own_bound_pusd(target(own=True, rate=None), engine, request()) == 0


def test_an_unpriced_api_stays_unpriced(board: Board) -> None:
    candidates = Candidates(board, PriceBook([]), stale_s=10.0)
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: 10**15)
    own, api = candidates.freeze(
        [target(own=True), target(own=False)],
        request(),
        ["x/m"],
        room=lambda one: 7 if one.own else None,
        clock=clock,
    )
    assert (api.candidate.expected_pusd, api.candidate.bound_pusd) == (None, None)
    assert (own.candidate.expected_pusd, own.candidate.avoided_pusd) == (0, 0)
    assert (own.candidate.budget_room_pusd, api.candidate.budget_room_pusd) == (7, None)
    assert own.candidate.context_tokens == 2048
    assert own.candidate.internal
    assert not api.candidate.internal
