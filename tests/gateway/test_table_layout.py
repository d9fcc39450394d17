"""The table's layout: its size is the sum of all rows, and rows of no peers take no room."""

from dataclasses import replace

from gateway.table_layout import (
    API_CELLS,
    BACKOFF_CELLS,
    ENGINE_CELLS,
    LOAD_CELLS,
    PEER_CELLS,
    RESIDENTS,
    SEQUENCE_CELLS,
    SUPERVISION_CELLS,
    TableLayout,
)
from router.bid_price import CELLS as DEMAND_CELLS

LAYOUT = TableLayout(workers=2, engines=("pool:a/0", "pool:a/1", "pool:b/c/0"), apis=("x/m", "x/*"))


def test_pools_and_shared_rows_follow_from_the_names() -> None:
    assert LAYOUT.pools == ("a", "b/c")
    assert LAYOUT.shared == ("x/*",)


def test_the_size_is_the_sum_of_all_rows() -> None:
    engine = LOAD_CELLS + RESIDENTS * SEQUENCE_CELLS
    worker = 2 + 3 * engine + 2 * API_CELLS + BACKOFF_CELLS + 2 * DEMAND_CELLS
    assert LAYOUT.worker_cells == worker
    assert LAYOUT.cells == 2 + 2 * worker + 3 * (ENGINE_CELLS + SUPERVISION_CELLS)


def test_peers_have_a_row_where_hosts_exchange_their_load() -> None:
    with_peers = replace(LAYOUT, peers=True)
    assert LAYOUT.peers_cells == 0
    assert with_peers.cells - LAYOUT.cells == PEER_CELLS + 3 * LOAD_CELLS
