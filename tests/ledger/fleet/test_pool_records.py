"""Pool records: what is measured of an engine is known whole or not at all."""

from dataclasses import replace

import pytest

from ledger.fleet.capacity import EngineLimits
from ledger.fleet.pool_records import CapacityRow

ROW = CapacityRow(
    pool="chat", engine="pool:chat/0", at_us=1, kv_capacity_tokens=1000, slo_tpot_ms=50.0,
    step_a_s=0.01, step_b_s=0.001, step_c_s=1e-7, step_d_s=1e-5, step_t0_s=0.02,
    source="fit", max_num_seqs=64,
)  # fmt: skip


def test_measured_is_in_seconds() -> None:
    assert ROW.measured == EngineLimits(0.01, 0.001, 1e-7, 1e-5, 0.02, 0.05, 1000, 64)


@pytest.mark.parametrize(
    "name", ["slo_tpot_ms", "step_a_s", "step_b_s", "step_c_s", "step_d_s", "step_t0_s"]
)
def test_one_missing_figure_leaves_nothing_measured(name: str) -> None:
    assert replace(ROW, **{name: None}).measured is None
