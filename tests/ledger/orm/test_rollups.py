"""Sums hold more than a row: what a bit of money is in one limb, whole dollars in the other."""

from sqlalchemy import insert, select

from ledger.orm import tables as orm


def test_a_sum_is_one_an_hour_and_cell(engine) -> None:
    sums = dict.fromkeys(orm.RollupHourRow.__table__.columns.keys(), 0)
    with engine.begin() as connection:
        rows = [sums | {"cell_id": 1}, sums | {"cell_id": 2, "cost_high": 2**62}]
        connection.execute(insert(orm.RollupHourRow), rows)
        found = connection.execute(select(orm.RollupHourRow.cost_high)).scalars().all()
    assert sorted(found) == [0, 2**62]
