"""Only a pool that was sized has a number; `tests/gateway/scaling/test_ledger_orders.py` counts."""

from ledger.database import reading
from ledger.fleet.ordered_engines import ordered_engines


def test_a_pool_that_was_never_sized_has_no_number(engine) -> None:
    with reading(engine) as connection:
        assert ordered_engines(connection, "p") is None
