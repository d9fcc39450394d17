from pathlib import Path
from types import SimpleNamespace

import pytest

from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.load_tracker import LoadReservation, LoadTracker, ReservedLoad
from gateway.request.tightest_tpot import TightestTpot
from gateway.table_layout import LoadCell, TableLayout
from router.request_kinds import RequestKind
from router.types import Slo

STEP = SimpleNamespace(a_s=0.005, b_s=0.00002)


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


@pytest.mark.parametrize(("feasible", "held_ms"), [(True, 20.0), (False, 0.0)])
def test_a_best_effort_has_no_pace_that_others_must_respect(
    tmp_path: Path, feasible: bool, held_ms: float
) -> None:
    """Its promise is lost, and would keep an engine from reading prompts for others."""
    board = SharedLoadTable(
        tmp_path / "one", TableLayout(workers=1, engines=("pool:a/0",), apis=())
    )
    engine = SimpleNamespace(kv_block_tokens=16, prefix_hit_tokens=0, step=STEP)
    request = SimpleNamespace(
        prompt_tokens=100, n=1, kind=RequestKind.CHAT, beginning=SimpleNamespace(marks=())
    )
    plan = SimpleNamespace(
        request=request, asked=SimpleNamespace(stream=False, n=1),
        policy=SimpleNamespace(slo=Slo(ttft_ms=500.0, tpot_ms=20.0)),
    )  # fmt: skip
    verdict = SimpleNamespace(
        candidate=SimpleNamespace(engine=engine), feasible=feasible, kv_promise_tokens=256,
        prefill=None,
    )  # fmt: skip
    frozen = SimpleNamespace(target=SimpleNamespace(row=0), prefix_tokens=0)
    step = SimpleNamespace(verdict=verdict, frozen=frozen)
    flight = LoadTracker(board, 0).reserve(plan, step, 1.0)
    cell = board.load_row(0, 0) + LoadCell.TIGHTEST_TPOT_MS
    assert board.cells[cell] == held_ms
    flight.release()
    assert board.cells[cell] == 0.0
