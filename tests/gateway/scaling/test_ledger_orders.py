"""An order counts from its intent until its stop was told; what is not known raises."""

import pytest
from sqlalchemy import insert

from gateway.scaling.keda_scaler import OrdersUnknown
from gateway.scaling.ledger_orders import LedgerOrders
from ledger.orm.scaling import FleetInstanceRow, FleetPoolRow

ROW = {
    "pool": "p", "place": 0, "owned": True, "pusd_per_hour": 1, "unit_s": 1, "least_s": 0,
    "asked_us": 1,
}  # fmt: skip


def test_engines_count_until_their_stop_was_told(ledger) -> None:
    orders = LedgerOrders(ledger, {"p": True})
    with pytest.raises(OrdersUnknown, match="no plan yet"):
        orders("p")
    rows = [
        {**ROW, "token": "runs"},
        {**ROW, "token": "told below", "place": 1, "stop_us": 2, "told_us": 3},
        {**ROW, "token": "drains", "place": 2, "stop_us": 2},
        {**ROW, "token": "told", "place": 3, "stop_us": 2, "told_us": 3},
        {**ROW, "token": "gone", "place": 4, "stop_us": 2, "told_us": 3, "gone_us": 4},
        {**ROW, "token": "strange", "place": 5, "owned": False},
        {**ROW, "token": "other", "place": 6, "pool": "q"},
    ]
    with ledger.begin() as connection:
        memory = {"pool": "p", "through_us": 0, "memory": {}, "advised": []}
        connection.execute(insert(FleetPoolRow), [memory])
        for row in rows:
            connection.execute(insert(FleetInstanceRow), [row])
    assert orders("p") == 3


@pytest.mark.parametrize(
    ("acts", "words"), [({}, "not a pool with"), ({"p": False}, "only advises")]
)
def test_pools_that_keda_must_not_size(ledger, acts, words) -> None:
    with pytest.raises(OrdersUnknown, match=words):
        LedgerOrders(ledger, acts)("p")
