"""Demand on the board: counted once by a worker, priced by telemetry for all engines of a pool."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.fleet.demand_counter import BidPricePublisher, DemandCounter
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import HEALTHS, EngineCell, TableLayout
from router.bid_price import BINS, bin_of
from router.types import Policy, Slo, StepModel

HEALTHY = float(HEALTHS.index("healthy"))
ENGINE = SimpleNamespace(step=StepModel(0.01, 0.0, 0.0, 1e-4, 0.02), step_feedback=1.0)
ASKED, RULE = SimpleNamespace(prompt_tokens=100), Policy("p", Slo())
LAYOUT = TableLayout(workers=2, engines=("pool:a/0", "pool:a/1", "pool:b/0"), apis=())


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(tmp_path / "board", LAYOUT)
    for row in range(3):
        board.publish(row, {EngineCell.HEALTH: HEALTHY})
    yield board
    board.close()


def decision(pool: str, seconds: float, density: float) -> SimpleNamespace:
    candidate = SimpleNamespace(pool=pool, engine=ENGINE)
    verdict = SimpleNamespace(
        candidate=candidate, feasible=True, engine_seconds=seconds, density_pusd_per_s=density
    )
    return SimpleNamespace(verdicts=(verdict, verdict))


def prices(board: SharedLoadTable) -> list[float]:
    return [board.published(row)[EngineCell.BID_PRICE_PUSD_PER_S] for row in range(3)]


def test_a_request_is_one_entry_of_its_pool(board: SharedLoadTable) -> None:
    DemandCounter(board, 0).note(decision("b", 0.5, 1e9), ASKED, RULE)
    DemandCounter(board, 1).note(decision("b", 0.25, 1e9), ASKED, RULE)
    DemandCounter(board, 0).note(
        decision("gone", 0.5, 1e9), ASKED, RULE
    )  # of a pool that the board does not know
    sums, place = board.demand(1), bin_of(1e9)
    assert (sums[place], sums[BINS + place], sum(sums)) == (0.75, 2.0, 2.75)
    assert sum(board.demand(0)) == 0.0


def test_the_price_is_the_pools_and_follows_its_engines(board: SharedLoadTable) -> None:
    markets, worker = BidPricePublisher(board), DemandCounter(board, 0)
    markets.tick(0.0, HEALTHY)
    for second in range(1, 6):  # one and a half engine-seconds a second: two engines carry it
        worker.note(decision("a", 1.5, 2e9), ASKED, RULE)
        markets.tick(float(second), HEALTHY)
    assert prices(board) == [0.0, 0.0, 0.0]
    board.publish(1, {EngineCell.HEALTH: 0.0})
    markets.tick(5.5, HEALTHY)
    first, second, other = prices(board)
    assert first == second == pytest.approx(2e9, rel=0.05)
    assert other == 0.0
    assert board.published(0)[EngineCell.TOP_DENSITY_PUSD_PER_S] == pytest.approx(2e9, rel=0.05)
    assert board.published(0)[EngineCell.DENSITY_SPREAD] == pytest.approx(1.0, rel=0.05)
    board.publish(0, {EngineCell.HEALTH: 0.0})
    markets.tick(6.0, HEALTHY)
    assert prices(board) == [0.0, 0.0, 0.0]


def test_what_died_takes_its_demand_along_for_a_window_only(board: SharedLoadTable) -> None:
    markets, worker = BidPricePublisher(board), DemandCounter(board, 0)
    worker.note(decision("b", 100.0, 1e9), ASKED, RULE)
    markets.tick(0.0, HEALTHY)
    board.clear(0)
    markets.tick(1.0, HEALTHY)
    for second in range(2, 40):
        worker.note(decision("b", 3.0, 1e9), ASKED, RULE)
        markets.tick(float(second), HEALTHY)
    assert prices(board)[2] > 0.0


def tightest(board: SharedLoadTable) -> list[float]:
    return [board.published(row)[EngineCell.TIGHTEST_TTFT_MS] for row in range(3)]


def test_a_pool_is_measured_by_the_tightest_class_that_asks_for_it(board: SharedLoadTable) -> None:
    """Half a minute after the last of that class it is over."""
    markets, worker = BidPricePublisher(board), DemandCounter(board, 0)
    loose, tight = (Policy("p", Slo(ttft_ms=limit)) for limit in (500.0, 200.0))
    markets.tick(0.0, HEALTHY)
    for number in range(20):
        worker.note(decision("a", 0.1, 1e9), ASKED, tight if number < 2 else loose)
    worker.note(decision("b", 0.1, 1e9), ASKED, RULE)
    markets.tick(1.0, HEALTHY)
    assert tightest(board) == [pytest.approx(200.0, rel=0.05)] * 2 + [0.0]
    for second in range(2, 40):
        worker.note(decision("a", 0.1, 1e9), ASKED, loose)
        markets.tick(float(second), HEALTHY)
    assert tightest(board) == [pytest.approx(500.0, rel=0.05)] * 2 + [0.0]


def test_sums_that_nobody_added_to_are_not_added_up_again(board, monkeypatch) -> None:
    markets, worker = BidPricePublisher(board), DemandCounter(board, 1)
    added: list[int] = []
    demand = board.demand

    def counted(pool: int) -> list[float]:
        added.append(pool)
        return demand(pool)

    monkeypatch.setattr(board, "demand", counted)
    for second in range(5):
        markets.tick(float(second), HEALTHY)
    assert added == [0, 1]
    worker.note(decision("b", 3.0, 2e9), ASKED, RULE)
    for second in range(5, 10):
        markets.tick(float(second), HEALTHY)
    assert added == [0, 1, 1]
