"""Loads are packed the same whichever way they came about; money's limbs know no order."""

from ledger.orm.tables import (
    RollupCellRow,
    RollupComparisonRow,
    RollupDayRow,
    RollupHourRow,
    RollupKeyRow,
    RollupTagRow,
)
from ledger.spans import DAY_US, HOUR_US
from ledger.sums.rollup import ATTEMPTS, COMPARED, CUBES, KEYED, LATER, TAGGED, pack, unpack


def test_an_hour_of_minutes_is_packed_in_their_order() -> None:
    early, late = (1, 2, 3, 4, 5), (10**15, 0, 0, 0, 1)
    assert pack({59: late, 0: early}) == pack({0: early, 59: late})
    assert list(unpack(pack({59: late, 0: early}))) == [(0, early), (59, late)]
    assert list(unpack(pack({}))) == []


def test_every_dimension_and_every_sum_has_its_column() -> None:
    for cube, cells in (
        (ATTEMPTS, RollupCellRow), (COMPARED, RollupComparisonRow), (TAGGED, RollupTagRow),
        (KEYED, RollupKeyRow),
    ):  # fmt: skip
        assert {"id", "key", *cube.dimensions} == set(cells.__table__.columns.keys())
        for table, _ in cube.tiers:
            assert {"start_us", "cell_id", *cube.measures} == set(table.__table__.columns.keys())
    assert ATTEMPTS.tiers == ((RollupHourRow, HOUR_US), (RollupDayRow, DAY_US))
    assert CUBES == (ATTEMPTS, COMPARED)
    assert LATER == (TAGGED, KEYED)
