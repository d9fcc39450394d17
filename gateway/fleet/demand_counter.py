"""Demand of requests by pool, summed in the shared load table to compute bid prices.

Each worker adds to its own sums. Telemetry reads all sums once a second and publishes the value of
one engine-second of each pool (`router.bid_price`). The price of a pool without a serving engine is
0, because it has no engine time to sell.
"""

from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import EngineCell
from router.bid_price import BINS, UNPLACED, BidPrice, DemandWindow, bin_of, demand_of
from router.deadlines import deadline_bin
from router.types import Decision, Policy, RoutingRequest


class DemandCounter:
    """Demand sums of one worker."""

    __slots__ = ("_board", "_rows")

    def __init__(self, board: SharedLoadTable, worker: int) -> None:
        self._board = board
        self._rows = {
            name: board.market_row(worker, place) for place, name in enumerate(board.layout.pools)
        }

    def note(self, decision: Decision, request: RoutingRequest, policy: Policy) -> None:
        """Add the demand of one decided request, whatever its outcome."""
        cells = self._board.cells
        for pool, seconds, density, ttft_ms, unplaced in demand_of(decision, request, policy):
            row = self._rows.get(pool)
            if row is not None:
                place = row + bin_of(density)
                cells[place] += seconds
                cells[place + BINS] += 1.0
                if ttft_ms is not None:
                    cells[row + 2 * BINS + deadline_bin(ttft_ms)] += 1.0
                if unplaced:
                    cells[row + UNPLACED] += seconds


class BidPricePublisher:
    """Publisher of the bid prices of all pools; runs in the telemetry process."""

    def __init__(self, board: SharedLoadTable) -> None:
        self._board = board
        names = board.layout.pools
        self._windows = [DemandWindow() for _ in names]
        self._seen: list[tuple[bytes, list[float]]] = [(b"", []) for _ in names]  # raw, summed
        self._rows = [
            [
                row
                for row, engine in enumerate(board.layout.engines)
                if engine.startswith(f"pool:{name}/")
            ]
            for name in names
        ]

    def tick(self, now_s: float, healthy: float) -> list[BidPrice]:
        """Publish the bid prices of all pools; `healthy` is the cell value of that health."""
        board, found = self._board, []
        for place, (window, rows) in enumerate(zip(self._windows, self._rows, strict=True)):
            serving = sum(board.published(row)[EngineCell.HEALTH] == healthy for row in rows)
            market = window.read(self._demand(place), now_s, engines=serving)
            for row in rows:
                board.publish(
                    row,
                    {
                        EngineCell.BID_PRICE_PUSD_PER_S: market.bid_price,
                        EngineCell.TOP_DENSITY_PUSD_PER_S: market.top_density,
                        EngineCell.DENSITY_SPREAD: market.density_spread,
                        EngineCell.TIGHTEST_TTFT_MS: market.tightest_ttft_ms or 0.0,
                    },
                )
            found.append(market)
        return found

    def _demand(self, place: int) -> list[float]:
        """Return the demand of a pool: the identical object while nothing changed.

        The demand window recognises an unchanged demand by identity.
        """
        cells = self._board.demand_cells(place)
        if cells != self._seen[place][0]:
            self._seen[place] = cells, self._board.demand(place)
        return self._seen[place][1]
