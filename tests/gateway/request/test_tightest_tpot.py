from pathlib import Path

from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.load_tracker import LoadReservation, ReservedLoad
from gateway.request.tightest_tpot import TightestTpot
from gateway.table_layout import LoadCell, TableLayout


def test_the_tightest_pace_that_is_promised_stands_while_it_flies(tmp_path: Path) -> None:
    layout = TableLayout(workers=1, engines=("pool:a/0",), apis=())
    board = SharedLoadTable(tmp_path / "one", layout)
    cell = board.load_row(0, 0) + LoadCell.TIGHTEST_TPOT_MS
    tightest = TightestTpot(board.cells, cell)

    def fly(tpot_ms: float | None) -> LoadReservation:
        return LoadReservation(
            board, 0, 0, ReservedLoad(100, 256, 1, tpot_ms=tpot_ms), tightest=tightest
        )

    loose, nothing, tight, same = fly(50.0), fly(None), fly(20.0), fly(20.0)
    assert board.cells[cell] == 20.0
    tight.release()
    tight.release()
    assert board.cells[cell] == 20.0
    same.release()
    assert board.cells[cell] == 50.0
    nothing.release()
    loose.release()
    assert board.cells[cell] == 0.0
