"""Shared memory of a host: in-flight load of all workers, and published engine state.

It is one file of float64 cells, mapped by every process of the host. Each cell has exactly one
writer. Workers write their own rows; telemetry writes the published rows. The parent writes which
engines it runs and clears the rows of dead workers. One process writes the load of other hosts. An
aligned 8-byte store is atomic, so readers see whole numbers. Sums over rows may mix two moments;
the dead reckoning of load tolerates that.
"""

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

from gateway.fleet.mapped_file import allocate_blocks
from gateway.table_layout import (
    API_CELLS,
    BACKOFF_CELLS,
    ENGINE_CELLS,
    LOAD_CELLS,
    PEER_CELLS,
    RESIDENTS,
    SEQUENCE_CELLS,
    STAGES,
    SUPERVISION_CELLS,
    ApiStatsCell,
    EngineCell,
    LoadCell,
    SupervisionCell,
    TableLayout,
)
from router.bid_price import CELLS as MARKET_CELLS

MAGIC = 0xB4EA_0010
_TIGHTEST = int(LoadCell.TIGHTEST_TPOT_MS)
_LATEST = tuple(
    map(int, (LoadCell.QUEUE_MOVED_S, LoadCell.HEARD_S, LoadCell.SILENT_S, LoadCell.ASK_AT_S))
)
# Ranges of an API's cells without the two that count open requests and tokens.
_NEWS = (
    (0, int(ApiStatsCell.REQUESTS_OUT)),
    (int(ApiStatsCell.TOKENS_LEFT), int(ApiStatsCell.TOKENS_OUT)),
    (int(ApiStatsCell.OPENED_S), API_CELLS),
)
_TELEMETRY = 1  # cell of telemetry's heartbeat; cell 0 is the stamp


class SharedLoadTable:
    """Memory-mapped table of in-flight load and target state; private memory without a path.

    Offsets are computed once, so that hot reads are plain indexing.
    """

    def __init__(self, path: Path | None, layout: TableLayout) -> None:
        self.layout = layout
        self._map = mmap.mmap(-1, layout.cells * 8) if path is None else _map_whole(path, layout)
        self.cells: memoryview[float] = memoryview(self._map).cast("d")
        stamp = float(MAGIC + layout.cells)
        if self.cells[0] not in (0.0, stamp):
            self.cells[:] = memoryview(bytes(layout.cells * 8)).cast("d")
        self.cells[0] = stamp
        self._worker_cells = layout.worker_cells
        self._seen = 2 + len(layout.engines) * LOAD_CELLS  # offset in a worker's row, like the next
        self._residents = self._seen + len(layout.apis) * API_CELLS
        self._markets = self._residents + len(layout.engines) * RESIDENTS * SEQUENCE_CELLS
        self._held = self._markets + len(layout.pools) * MARKET_CELLS
        self._shared = {layout.apis.index(name): at for at, name in enumerate(layout.shared)}
        self._published = 2 + layout.workers * layout.worker_cells
        self._owned = self._published + len(layout.engines) * ENGINE_CELLS
        self.peers = self._owned + len(layout.engines) * SUPERVISION_CELLS
        self._views: list[memoryview[float]] = []

    def close(self) -> None:
        for view in self._views:
            view.release()
        self.cells.release()
        self._map.close()

    # -- rows ---------------------------------------------------------------------------------

    def worker_row(self, worker: int) -> int:
        return 2 + worker * self._worker_cells

    def load_row(self, worker: int, engine: int) -> int:
        return 2 + worker * self._worker_cells + 2 + engine * LOAD_CELLS

    def api_stats_row(self, worker: int, api: int) -> int:
        return 2 + worker * self._worker_cells + self._seen + api * API_CELLS

    def resident_row(self, worker: int, engine: int, place: int) -> int:
        places = 2 + worker * self._worker_cells + self._residents
        return places + (engine * RESIDENTS + place) * SEQUENCE_CELLS

    def market_row(self, worker: int, pool: int) -> int:
        """Return the row of a worker's demand sums for one pool (`router.bid_price`)."""
        return 2 + worker * self._worker_cells + self._markets + pool * MARKET_CELLS

    def held_row(self, worker: int, api: int) -> int:
        """Return the row of a worker's model backoffs for a provider's shared API row."""
        return 2 + worker * self._worker_cells + self._held + self._shared[api] * BACKOFF_CELLS

    def published_row(self, engine: int) -> int:
        return self._published + engine * ENGINE_CELLS

    def owned_row(self, engine: int) -> int:
        return self._owned + engine * SUPERVISION_CELLS

    def peers_row(self, engine: int) -> int:
        """Return the row of other hosts' load on an engine; only for a layout with peers."""
        return self.peers + PEER_CELLS + engine * LOAD_CELLS

    # -- views: comparing their bytes shows whether anything changed ----------------------------

    def engine_views(self, engine: int) -> "list[memoryview[float]]":
        """Return views of one engine's cells: telemetry, parent, workers and peers."""
        loads = [self.load_row(worker, engine) for worker in range(self.layout.workers)]
        loads += [self.peers_row(engine)] if self.layout.peers else []
        return [
            self._view(self.published_row(engine), ENGINE_CELLS),
            self._view(self.owned_row(engine), SUPERVISION_CELLS),
            *(self._view(row, LOAD_CELLS) for row in loads),
        ]

    def api_stats_views(self, api: int) -> "list[memoryview[float]]":
        """Return views of each worker's statistics of one API."""
        rows = [self.api_stats_row(worker, api) for worker in range(self.layout.workers)]
        return [self._view(row, API_CELLS) for row in rows]

    def api_news_views(self, api: int) -> "list[memoryview[float]]":
        """Return views of these statistics without the counts of open requests."""
        return [
            self._view(self.api_stats_row(worker, api) + first, end - first)
            for worker in range(self.layout.workers)
            for first, end in _NEWS
        ]

    def _view(self, row: int, count: int) -> "memoryview[float]":
        view = self.cells[row : row + count]
        self._views.append(view)
        return view

    # -- lives --------------------------------------------------------------------------------

    def enter_worker(self, worker: int, pid: int, now_s: float) -> None:
        """Register a worker in its row and clear the row's earlier content."""
        self.clear(worker)
        row = self.worker_row(worker)
        self.cells[row] = float(pid)
        self.cells[row + 1] = now_s

    def record_heartbeat(self, worker: int, now_s: float) -> None:
        self.cells[self.worker_row(worker) + 1] = now_s

    def clear(self, worker: int) -> None:
        """Clear a dead worker's row, including its load and its latency statistics."""
        row = self.worker_row(worker)
        for cell in range(row, row + self._worker_cells):
            self.cells[cell] = 0.0

    def record_alive(self, now_s: float) -> None:
        """Record that telemetry runs at this time."""
        self.cells[_TELEMETRY] = now_s

    def silent_s(self, now_s: float) -> float:
        """Return the seconds since telemetry last wrote; 0 before its first write."""
        heard_s = self.cells[_TELEMETRY]
        return max(0.0, now_s - heard_s) if heard_s else 0.0

    # -- sums ---------------------------------------------------------------------------------

    def loads(self, engine: int) -> list[float]:
        """Return the load on one engine summed over workers and peers, indexed by `LoadCell`."""
        if not self.layout.peers:
            return self.own_loads(engine)
        row = self.peers_row(engine)
        theirs: list[float] = self.cells[row : row + LOAD_CELLS].tolist()  # type: ignore[assignment]  # as below
        return _sum_rows([self.own_loads(engine), theirs])

    def own_loads(self, engine: int) -> list[float]:
        """Return the load on one engine summed over this host's workers."""
        first, step, cells = self.load_row(0, engine), self._worker_cells, self.cells
        rows = [
            cells[row : row + LOAD_CELLS].tolist()
            for row in range(first, first + self.layout.workers * step, step)
        ]
        if len(rows) == 1:
            return rows[0]  # type: ignore[return-value]  # the stubs assume bytes
        return _sum_rows(rows)  # type: ignore[arg-type]  # likewise

    def demand_cells(self, pool: int) -> bytes:
        """Return the raw bytes that `demand` sums."""
        rows = [self.market_row(worker, pool) for worker in range(self.layout.workers)]
        return b"".join(self.cells[row : row + MARKET_CELLS].tobytes() for row in rows)

    def demand(self, pool: int) -> list[float]:
        """Return the demand for one pool summed over all workers."""
        rows = []
        for worker in range(self.layout.workers):
            row = self.market_row(worker, pool)
            rows.append(self.cells[row : row + MARKET_CELLS].tolist())
        return list(map(sum, zip(*rows, strict=True)))

    def residents(
        self, engine: int, *, now_s: float, limit_s: float
    ) -> tuple[tuple[float, float, float], ...]:
        """Return (held, final, slack) in tokens of the sequences updated within `limit_s`.

        Slack is how many tokens a sequence may have grown since its last update, at its pace.
        """
        found: list[tuple[float, float, float]] = []
        for worker in range(self.layout.workers):
            row = self.resident_row(worker, engine, 0)
            cells = self.cells[row : row + RESIDENTS * SEQUENCE_CELLS].tolist()
            found += [
                (held, final, max(0.0, now_s - heard_s) * pace)
                for held, final, heard_s, pace in zip(
                    cells[::4], cells[1::4], cells[2::4], cells[3::4], strict=True
                )
                if final > 0.0 and heard_s > 0.0 and now_s - heard_s <= limit_s
            ]
        return tuple(found)

    def published(self, engine: int) -> Sequence[float]:
        """Return telemetry's cells of one engine, indexed by `EngineCell`."""
        row = self.published_row(engine)
        return self.cells[row : row + ENGINE_CELLS].tolist()

    def publish(self, engine: int, values: dict[EngineCell, float]) -> None:
        """Write cells of one engine; `UPDATED_S` and `LIFE`, which validate the others, go last."""
        row = self.published_row(engine)
        last = (EngineCell.UPDATED_S, EngineCell.LIFE)
        for cell in (*(cell for cell in values if cell not in last), *last):
            if cell in values:
                self.cells[row + cell] = values[cell]

    def publish_stage(self, engine: int, stage: str, life: int = 0) -> None:
        """Write the stage of an engine's process, and the life that serves (0: none)."""
        row = self.owned_row(engine)
        self.cells[row + SupervisionCell.STAGE] = float(STAGES.index(stage))
        self.cells[row + SupervisionCell.LIFE] = float(life)

    def life(self, engine: int) -> float:
        return self.cells[self.owned_row(engine) + SupervisionCell.LIFE]

    def stage(self, engine: int) -> str:
        return STAGES[int(self.cells[self.owned_row(engine) + SupervisionCell.STAGE])]

    def backoff_cells(self, api: int) -> list[list[float]]:
        """Return each worker's model backoff cells of a shared API row."""
        rows = [self.held_row(worker, api) for worker in range(self.layout.workers)]
        return [self.cells[row : row + BACKOFF_CELLS].tolist() for row in rows]  # type: ignore[misc]  # as in `loads`

    def api_cells(self, api: int, cell: int) -> list[float]:
        """Return one cell of each worker's statistics of one API."""
        first, step, cells = self.api_stats_row(0, api) + cell, self._worker_cells, self.cells
        return [cells[first + worker * step] for worker in range(self.layout.workers)]

    def api_stats(self, api: int) -> list[Sequence[float]]:
        """Return each worker's statistics of one API, indexed by `ApiStatsCell`."""
        first, step, cells = self.api_stats_row(0, api), self._worker_cells, self.cells
        return [
            cells[row : row + API_CELLS].tolist()
            for row in range(first, first + self.layout.workers * step, step)
        ]


def _sum_rows(rows: list[list[float]]) -> list[float]:
    summed: list[float] = [sum(cells) for cells in zip(*rows, strict=True)]
    for cell in _LATEST:
        summed[cell] = max([row[cell] for row in rows])
    promised = [row[_TIGHTEST] for row in rows if row[_TIGHTEST] > 0.0]
    summed[_TIGHTEST] = min(promised, default=0.0)
    return summed


def _map_whole(path: Path, layout: TableLayout) -> mmap.mmap:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        allocate_blocks(descriptor, layout.cells * 8)
        os.ftruncate(descriptor, layout.cells * 8)
        return mmap.mmap(descriptor, layout.cells * 8)
    finally:
        os.close(descriptor)
