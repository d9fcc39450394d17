"""The ledger's lag and the engines on `/metrics`: what is known, and never what is not."""

from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from gateway.batches.wake import RunnerProgress, write_progress
from gateway.clock import Clock
from gateway.fleet.peers.row import PeerLoadRow
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import HEALTHS, EngineCell, LoadCell, TableLayout
from gateway.telemetry.metrics.host import HostMetrics
from ledger.fleet.driftnotes import DriftNote, write_drift
from ledger.writing.lag import WriterLag, write_lag

NOW_S, NOW_US = 50.0, 1_780_000_000_000_000
SERVING = {
    EngineCell.HEALTH: float(HEALTHS.index("healthy")),
    EngineCell.UPDATED_S: NOW_S - 1.0,
    EngineCell.KV_CAPACITY_TOKENS: 1000.0,
    EngineCell.FOREIGN_SEQUENCES: 2.0,
    EngineCell.FOREIGN_KV_TOKENS: 100.0,
}


@pytest.fixture
def board(tmp_path: Path):
    board = SharedLoadTable(
        tmp_path / "board", TableLayout(workers=2, engines=("pool:a/0",), apis=())
    )
    yield board
    board.close()


@pytest.fixture
def sample(tmp_path: Path, board: SharedLoadTable):
    registry = CollectorRegistry()
    clock = Clock(now_s=lambda: NOW_S, wall_us=lambda: NOW_US)
    registry.register(HostMetrics(tmp_path, board, stale_s=10.0, clock=clock))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"breakeven_{name}", labels)

    return value


def test_the_writers_lag_grows_by_itself(tmp_path: Path, sample) -> None:
    names = ("lag_seconds", "backlog_bytes", "away", "quarantined_total")
    assert [sample(f"ledger_{name}") for name in names] == [None] * 4  # it never ran
    said = WriterLag(backlog_bytes=4096, applied_us=NOW_US - 2_500_000, away=True, quarantined=3)
    write_lag(tmp_path, said)
    assert [sample(f"ledger_{name}") for name in names] == [2.5, 4096.0, 1.0, 3.0]


def test_findings_in_journals_are_told_with_what_they_lack_at_most(tmp_path: Path, sample) -> None:
    names = ("findings", "lacking_usd", "findings_unbounded", "stalled")
    for lag, expected in (
        (WriterLag(0, NOW_US, False, 0), [0.0, 0.0, 0.0, 0.0]),
        (WriterLag(0, NOW_US, False, 0, 3, 5 * 10**11, 1, "journal x"), [3.0, 0.5, 1.0, 1.0]),
    ):
        write_lag(tmp_path, lag)
        assert [sample(f"journal_{name}") for name in names] == expected


def test_an_engine_is_shown_as_routing_sees_it(board: SharedLoadTable, sample) -> None:
    where = {"engine": "pool:a/0"}
    board.publish(0, SERVING)
    board.cells[board.load_row(1, 0) + LoadCell.SEQUENCES] = 3.0
    board.cells[board.load_row(1, 0) + LoadCell.CONTEXT_TOKENS] = 150.0
    names = ("healthy", "running", "kv_usage_ratio")
    assert [sample(f"engine_{name}", **where) for name in names] == [1.0, 5.0, 0.25]
    board.publish(0, {EngineCell.KV_CAPACITY_TOKENS: 0.0})
    assert [sample(f"engine_{name}", **where) for name in names] == [1.0, 5.0, None]
    board.publish(0, {EngineCell.UPDATED_S: NOW_S - 11.0})
    assert [sample(f"engine_{name}", **where) for name in names] == [0.0, None, None]


def test_what_an_engine_s_hour_is_worth_is_told_in_dollars(board: SharedLoadTable, sample) -> None:
    name, where = "engine_bid_price_usd_per_hour", {"engine": "pool:a/0"}
    board.publish(0, SERVING)
    assert sample(name, **where) == 0.0
    board.publish(0, {EngineCell.BID_PRICE_PUSD_PER_S: 1e9})
    assert sample(name, **where) == pytest.approx(3.6)
    board.publish(0, {EngineCell.UPDATED_S: NOW_S - 11.0})
    assert sample(name, **where) is None


def test_an_engine_that_is_off_on_purpose_is_not_shown_so_that_no_alert_comes(
    board: SharedLoadTable, sample
) -> None:
    for word, shown in (("down", 0.0), ("off", None)):
        board.publish(0, {EngineCell.HEALTH: float(HEALTHS.index(word))})
        assert sample("engine_healthy", engine="pool:a/0") == shown


def test_batches_are_those_that_the_runner_told_of(tmp_path: Path, sample) -> None:
    assert sample("batches_open") is None
    write_progress(tmp_path, RunnerProgress(batches=2, lines=40, out=8, ok=5, failed=1, again=3))
    assert sample("batches_open") == 2
    assert (sample("batch_lines", where="open"), sample("batch_lines", where="here")) == (40, 8)
    tries = [sample("batch_tries_total", outcome=word) for word in ("ok", "failed", "again")]
    assert tries == [5, 1, 3]


def test_drift_is_what_sampling_told_of(tmp_path: Path, sample) -> None:
    assert sample("drift", pool="chat") is None
    told = DriftNote("chat", "bf16", 1, 0.05, 30, 30, 2, 1, 0.08, 0.06, 0.1, 0.2, drifts=True)
    young = DriftNote("new", "bf16", 1, 0.01, 3, 3, 0, 0)
    write_drift(tmp_path, [told, young])
    assert [sample("drift", pool=name) for name in ("chat", "new")] == [1.0, 0.0]
    assert [sample("drift_limit_ratio", pool=name) for name in ("chat", "new")] == [0.05, 0.01]
    assert [sample("drift_differ_ratio", pool=name) for name in ("chat", "new")] == [0.08, None]
    words = ("compared", "let_go", "failed")
    counts = [sample("drift_questions_total", pool="chat", outcome=word) for word in words]
    assert counts == [30, 2, 1]


def test_how_many_other_hosts_are_heard_is_told_where_any_are_named(tmp_path: Path) -> None:
    for peers, shown in ((False, []), (True, [2.0])):
        layout = TableLayout(workers=1, engines=(), apis=(), peers=peers)
        with closing(SharedLoadTable(tmp_path / f"board-{peers}", layout)) as board:
            if peers:
                PeerLoadRow(board).record_alive(1.0, 2)
            metrics = HostMetrics(tmp_path, board, stale_s=10.0, clock=Clock()).collect()
            found = [metric for metric in metrics if metric.name == "breakeven_peers_heard"]
            assert [finding.samples[0].value for finding in found] == shown
