"""Shared memory: rows apart, sums right, a dead worker's promises gone."""

from pathlib import Path

import pytest

from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import (
    RESIDENTS,
    ApiStatsCell,
    EngineCell,
    LoadCell,
    SequenceCell,
    SupervisionCell,
    TableLayout,
)
from router.bid_price import CELLS

LAYOUT = TableLayout(workers=2, engines=("pool:a/0", "pool:a/1"), apis=("x/m", "x/*"))


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(tmp_path / "board", LAYOUT)
    yield board
    board.close()


def test_every_cell_belongs_to_one_row(board: SharedLoadTable) -> None:
    rows = [
        *(
            board.load_row(worker, engine) + field
            for worker in range(2)
            for engine in range(2)
            for field in LoadCell
        ),
        *(board.api_stats_row(worker, api) + field for worker in range(2) for api in range(2)
          for field in ApiStatsCell),
        *(board.published_row(engine) + field for engine in range(2) for field in EngineCell),
        *(board.owned_row(engine) + field for engine in range(2) for field in SupervisionCell),
        *(board.resident_row(worker, engine, place) + field for worker in range(2)
          for engine in range(2) for place in range(RESIDENTS) for field in SequenceCell),
        *(board.market_row(worker, 0) + cell for worker in range(2) for cell in range(CELLS)),
    ]  # fmt: skip
    assert len(rows) == len(set(rows))
    assert max(rows) < LAYOUT.cells


def test_loads_are_summed_over_workers_and_seen_by_others(
    board: SharedLoadTable, tmp_path: Path
) -> None:
    other = SharedLoadTable(tmp_path / "board", LAYOUT)
    board.cells[board.load_row(0, 1) + LoadCell.SEQUENCES] = 2.0
    other.cells[other.load_row(1, 1) + LoadCell.SEQUENCES] = 3.0
    assert board.loads(1)[LoadCell.SEQUENCES] == other.loads(1)[LoadCell.SEQUENCES] == 5.0
    assert board.loads(0)[LoadCell.SEQUENCES] == 0.0
    other.close()


def test_pools_are_those_of_the_engines_and_their_demand_adds_up(board: SharedLoadTable) -> None:
    names = ("pool:a/0", "pool:b/c/0", "pool:a/1", "pool:b/c/1")
    assert TableLayout(workers=1, engines=names, apis=()).pools == ("a", "b/c")
    board.cells[board.market_row(0, 0) + 7] = 1.0
    board.cells[board.market_row(1, 0) + 7] = 2.0
    assert (board.demand(0)[7], len(board.demand(0))) == (3.0, CELLS)
    board.clear(0)
    assert board.demand(0)[7] == 2.0


def test_of_moments_the_latest_counts(board: SharedLoadTable) -> None:
    for worker, moved_s in ((0, 7.0), (1, 5.0)):
        board.cells[board.load_row(worker, 0) + LoadCell.QUEUE_MOVED_S] = moved_s
    assert board.loads(0)[LoadCell.QUEUE_MOVED_S] == 7.0


def test_a_cleared_worker_leaves_no_promise(board: SharedLoadTable) -> None:
    board.enter_worker(0, 123, 1.0)
    board.cells[board.load_row(0, 0) + LoadCell.PROMISED_TOKENS] = 640.0
    board.cells[board.load_row(1, 0) + LoadCell.PROMISED_TOKENS] = 64.0
    board.clear(0)
    assert board.loads(0)[LoadCell.PROMISED_TOKENS] == 64.0


def test_residents_of_all_workers_are_listed(board: SharedLoadTable) -> None:
    def residents(engine: int):
        return board.residents(engine, now_s=12.0, limit_s=2.0)

    for worker, place, values in (
        (0, 5, (100.0, 300.0, 11.0, 50.0)),
        (1, RESIDENTS - 1, (7.0, 9.0, 12.0, 3.0)),
        (1, 0, (7.0, 9.0, 9.0, 3.0)),  # heard of too long ago
    ):
        row = board.resident_row(worker, 1, place)
        for field, value in zip(SequenceCell, values, strict=True):
            board.cells[row + field] = value
    assert residents(0) == ()
    assert residents(1) == ((100.0, 300.0, 50.0), (7.0, 9.0, 0.0))
    board.clear(0)
    assert residents(1) == ((7.0, 9.0, 0.0),)


def test_every_workers_experience_is_seen(board: SharedLoadTable) -> None:
    for worker in range(2):
        row = board.api_stats_row(worker, 0)
        board.cells[row + ApiStatsCell.OBSERVATIONS] = 1.0 + worker
        board.cells[row + ApiStatsCell.ANSWERED_S] = 10.0 + worker
    assert [(cells[0], cells[-1], len(cells)) for cells in board.api_stats(0)] == [
        (1.0, 10.0, len(ApiStatsCell)),
        (2.0, 11.0, len(ApiStatsCell)),
    ]
    assert board.api_stats(1) == [[0.0] * len(ApiStatsCell)] * 2
    assert board.api_cells(0, ApiStatsCell.ANSWERED_S) == [10.0, 11.0]
    assert board.api_cells(1, ApiStatsCell.ANSWERED_S) == [0.0, 0.0]


def test_news_of_an_api_are_all_of_its_cells_but_what_is_out(board: SharedLoadTable) -> None:
    views = board.api_news_views(1)
    for worker in range(2):
        row = board.api_stats_row(worker, 1)
        for cell in ApiStatsCell:
            before = b"".join(views)
            board.cells[row + cell] = 7.0
            is_out = cell in (ApiStatsCell.REQUESTS_OUT, ApiStatsCell.TOKENS_OUT)
            assert (b"".join(views) == before) is is_out, cell


def test_published_values_come_back(board: SharedLoadTable) -> None:
    board.publish(1, {EngineCell.A_S: 0.5, EngineCell.UPDATED_S: 9.0})
    assert board.published(1)[EngineCell.A_S] == 0.5
    assert board.published(1)[EngineCell.UPDATED_S] == 9.0
    assert board.published(0)[EngineCell.UPDATED_S] == 0.0


def test_the_parents_word_on_its_engines_is_read_by_all(
    board: SharedLoadTable, tmp_path: Path
) -> None:
    other = SharedLoadTable(tmp_path / "board", LAYOUT)
    assert (other.life(1), other.stage(1)) == (0, "waiting")
    board.publish_stage(1, "serving", life=3)
    assert (other.life(1), other.stage(1)) == (3, "serving")
    assert (other.life(0), other.stage(0)) == (0, "waiting")
    board.publish_stage(1, "backing_off")
    assert (other.life(1), other.stage(1)) == (0, "backing_off")
    other.close()


def test_a_file_of_another_layout_is_started_over(board: SharedLoadTable, tmp_path: Path) -> None:
    board.publish(0, {EngineCell.A_S: 0.5})
    wider = SharedLoadTable(tmp_path / "board", TableLayout(workers=3, engines=("e",), apis=()))
    assert wider.published(0)[EngineCell.A_S] == 0.0
    wider.close()


def test_other_hosts_have_a_row_of_their_own_beside_the_workers(tmp_path: Path) -> None:
    layout = TableLayout(workers=2, engines=LAYOUT.engines, apis=LAYOUT.apis, peers=True)
    shared = SharedLoadTable(tmp_path / "board", layout)
    for cell in range(layout.cells - layout.peers_cells, layout.cells):
        shared.cells[cell] = 1.0
    assert [shared.loads(row) for row in range(2)] == [[1.0] * len(LoadCell)] * 2
    assert [shared.own_loads(row) for row in range(2)] == [[0.0] * len(LoadCell)] * 2
    assert shared.published(1) == [0.0] * len(EngineCell)
    assert shared.engine_views(1)[-1].tolist() == [1.0] * len(LoadCell)
    shared.clear(0)
    assert shared.loads(1)[LoadCell.SEQUENCES] == 1.0  # no worker's end takes them away
    shared.close()


def test_without_peers_there_is_no_such_row(board: SharedLoadTable) -> None:
    assert LAYOUT.peers_cells == 0
    assert len(board.engine_views(0)) == 2 + LAYOUT.workers
