"""An engine has one sample at a time, and a pool's hour is closed once."""

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from ledger.orm.fleet import EngineSampleRow, GpuHourRow


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (EngineSampleRow, {"at_us": 1, "pool": "chat", "engine": "chat/0", "health": "healthy"}),
        (
            GpuHourRow,
            dict.fromkeys(
                (
                    "hour_us", "contract_id", "replicas", "bill_pusd", "used_pusd", "idle_pusd",
                    "unavailable_pusd", "busy_us", "unavailable_us", "closed_us",
                ),
                0,
            )
            | {"pool": "chat"},
        ),
    ],
)  # fmt: skip
def test_the_same_thing_is_not_recorded_twice(engine, table, row):
    with engine.begin() as connection:
        connection.execute(insert(table), [row])
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(table), [row])
