"""The demand of requests on each pool, in the load table, for the price of engine time.

A worker adds to sums of its own; telemetry reads everybody's once a second and publishes what a
second of each pool's engines is worth (`router.bid_price`). A pool that no engine serves at this
moment had no time to sell: its price is left at nothing.
"""

from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import EngineCell
from router.bid_price import BINS, UNPLACED, BidPrice, DemandWindow, bin_of, demand_of
from router.deadlines import deadline_bin
from router.types import Decision, Policy, RoutingRequest


class DemandCounter:
    """One worker's sums."""

    __slots__ = ("_board", "_rows")

    def __init__(self, board: SharedLoadTable, worker: int) -> None:
        self._board = board
        self._rows = {
            name: board.market_row(worker, place) for place, name in enumerate(board.layout.pools)
        }

    def note(self, decision: Decision, request: RoutingRequest, policy: Policy) -> None:
        """One request was decided, whatever came of it."""
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
    """Telemetry's half: every pool's window, and its price for all of its engines."""

    def __init__(self, board: SharedLoadTable) -> None:
        self._board = board
        names = board.layout.pools
        self._windows = [DemandWindow() for _ in names]
        self._seen: list[tuple[bytes, list[float]]] = [(b"", []) for _ in names]  # cells, and sums
        self._rows = [
            [
                row
                for row, engine in enumerate(board.layout.engines)
                if engine.startswith(f"pool:{name}/")
            ]
            for name in names
        ]

    def tick(self, now_s: float, healthy: float) -> list[BidPrice]:
        """Read and publish; `healthy` is the word of a healthy engine on the board."""
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
        """Return the same object while nobody asked, which the window knows by that."""
        cells = self._board.demand_cells(place)
        if cells != self._seen[place][0]:
            self._seen[place] = cells, self._board.demand(place)
        return self._seen[place][1]
