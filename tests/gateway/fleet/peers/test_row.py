"""What other hosts have in flight counts like one more worker's, until it is cleared."""

from pathlib import Path

import pytest

from gateway.fleet.peers.peer_load import NOTHING, PeerEngineLoad
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import LoadCell, TableLayout

ENGINES = ("pool:a/0", "pool:a/1")
SHARE = PeerEngineLoad(3, 900, 80, 1536, 1, 30, 1.5)


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=ENGINES, apis=(), peers=True)
    )
    yield board
    board.close()


def test_it_is_added_to_the_workers_and_is_no_part_of_their_own(board: SharedLoadTable) -> None:
    board.cells[board.load_row(1, 1) + LoadCell.SEQUENCES] = 2.0
    PeerLoadRow(board).write(1, SHARE, 100.0)
    loads, own = board.loads(1), board.own_loads(1)
    assert (loads[LoadCell.SEQUENCES], own[LoadCell.SEQUENCES]) == (5.0, 2.0)
    assert (loads[LoadCell.CONTEXT_TOKENS], loads[LoadCell.PROMISED_TOKENS]) == (900.0, 1536.0)
    assert (loads[LoadCell.QUEUED_PREFILL_TOKENS], loads[LoadCell.QUEUED_SEQUENCES]) == (80.0, 1.0)
    assert (loads[LoadCell.TIGHTEST_TPOT_MS], loads[LoadCell.QUEUE_MOVED_S]) == (30.0, 98.5)
    assert board.loads(0) == [0.0] * len(LoadCell)
    PeerLoadRow(board).write(1, NOTHING, 110.0)
    held_s = slice(LoadCell.SEQUENCE_S_LESS, LoadCell.CONTEXT_S_LESS + 1)
    loads, own = board.loads(1), board.own_loads(1)
    assert loads[held_s] == [30.0, 9000.0]  # three sequences and 900 tokens for ten seconds
    assert own[held_s] == [0.0, 0.0]
    loads[held_s] = own[held_s]
    assert loads == own


def test_it_says_whether_it_lives_and_is_cleared_as_a_whole(board: SharedLoadTable) -> None:
    row = PeerLoadRow(board)
    assert (row.silent_s(5.0), row.hosts) == (0.0, 0)
    row.record_alive(100.0, 2)
    row.write(0, SHARE, 100.0)
    assert (row.silent_s(100.5), row.hosts) == (0.5, 2)
    row.clear()
    assert (row.silent_s(200.0), row.hosts) == (0.0, 0)
    assert board.loads(0) == [0.0] * len(LoadCell)


def test_clearing_takes_nothing_of_anybody_else(board: SharedLoadTable, tmp_path: Path) -> None:
    board.cells[2:] = memoryview(bytes(b"\x01" * (8 * (len(board.cells) - 2)))).cast("d")
    before = sum(cell != 0.0 for cell in board.cells)
    PeerLoadRow(board).clear()
    assert sum(cell != 0.0 for cell in board.cells) == before - board.layout.peers_cells
    alone = SharedLoadTable(tmp_path / "alone", TableLayout(workers=1, engines=ENGINES, apis=()))
    alone.cells[len(alone.cells) - 1] = 7.0
    PeerLoadRow(alone).clear()
    assert alone.cells[len(alone.cells) - 1] == 7.0
    alone.close()
