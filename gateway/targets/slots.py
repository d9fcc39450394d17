"""The host's shared memory: who has what in flight, and what telemetry knows of each engine.

One file of float64 cells, mapped by every process of the host. Each cell has exactly one writer:
a worker writes its own rows, telemetry writes the published rows, the parent writes which engines
are its own and serve, and clears the rows of a worker that died (its promises are gone with it).
Where hosts exchange their slots, one process writes what all others together have in flight.
An aligned 8-byte store is atomic, so readers never see half a number; sums over rows may mix two
moments, which dead reckoning tolerates.
"""

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from router.market import CELLS as MARKET_CELLS

MAGIC = 0xB4EA_0010
RESIDENTS = 64  # sequences per worker and engine whose growth is followed one by one
HELD_OFF = 16  # models per worker and `provider/*` that the provider holds off


class Load(IntEnum):
    """One worker's share of one engine: what it has in flight there, by its own events."""

    SEQUENCES = 0
    CONTEXT_TOKENS = 1  # prompt and generated tokens of sequences past their first token
    QUEUED_PREFILL_TOKENS = 2  # prompts dispatched and without a first token
    PROMISED_TOKENS = 3  # block-rounded final size of everything in flight
    PREFILLED_TOKENS_TOTAL = 4  # counter; its slope is the admitted prefill rate
    OBSERVED_STEP_S_TOTAL = 5  # counters; their ratio over a while is the step feedback
    PREDICTED_STEP_S_TOTAL = 6
    TTFT_PULL_TOTAL = 7  # what kept and missed promises say to the safety factors, added up
    TPOT_PULL_TOTAL = 8
    JUDGED_TOTAL = 9  # promises that came due, and of them those not kept
    MISSED_TOTAL = 10
    QUEUED_SEQUENCES = 11
    PREFIX_EXPECTED_TOTAL = 12  # tokens of prompts that were expected in the prefix cache
    QUEUE_MOVED_S = 13  # monotonic: its queue began, or its last prompt left it; no sum, the latest
    TIGHTEST_TPOT_MS = 14  # promised to one of them, 0: none; no sum, the least
    HEARD_S = 15  # monotonic: its last token or answer; like the next two no sum, the latest
    SILENT_S = 16  # when it was last found to say nothing, 0: never
    ASK_AT_S = 17  # from then on one request at a time asks whether it speaks again
    QUEUED_SQUARES = 18  # of the tokens of each queued prompt, added up


class Resident(IntEnum):
    """One followed sequence: what it holds, what it may come to hold, when that was heard, pace.

    `FINAL_TOKENS` 0: a free place. `HEARD_S` is monotonic, 0 while there is no pace.
    """

    HELD_TOKENS = 0
    FINAL_TOKENS = 1
    HEARD_S = 2
    TOKENS_PER_S = 3


class Seen(IntEnum):
    """One worker's experience with one API: exponentially weighted log-latency moments.

    Then two blocks alike, for requests and for tokens: what the provider said last of its limit.
    """

    OBSERVATIONS = 0
    LN_TTFT_MEAN = 1
    LN_TTFT_VAR = 2
    LN_TPOT_MEAN = 3
    LN_TPOT_VAR = 4
    FAILURES_IN_A_ROW = 5
    RETRY_AT_S = 6  # monotonic time until which the target asked for (or earned) silence
    REQUESTS_LEFT = 7  # plus one; a cleared cell, 0, is a provider that does not say
    REQUESTS_SAID_S = 8
    REQUESTS_REFILL_PER_S = 9  # what comes back since it was said
    REQUESTS_UNTIL_S = 10  # from then on it is void
    REQUESTS_OUT = 11  # sent, and the head of the answer has not come
    TOKENS_LEFT = 12
    TOKENS_SAID_S = 13
    TOKENS_REFILL_PER_S = 14
    TOKENS_UNTIL_S = 15
    TOKENS_OUT = 16
    OPENED_S = 17  # when its circuit opened last; 0: never
    ANSWERED_S = 18  # when answers came again after that


class Held(IntEnum):
    """One model of a `provider/*` that the provider told one worker to hold off (`heldoff`)."""

    MODEL = 0  # a number made of its name, 0: a free place
    UNTIL_S = 1  # monotonic
    REFUSALS = 2  # in a row


class Published(IntEnum):
    """What telemetry publishes of one engine; `UPDATED_S` is monotonic, 0 before the first."""

    UPDATED_S = 0
    HEALTH = 1  # index into HEALTHS
    KV_CAPACITY_TOKENS = 2
    KV_BLOCK_TOKENS = 3
    FOREIGN_SEQUENCES = 4
    FOREIGN_KV_TOKENS = 5
    A_S = 6
    B_S = 7
    C_S = 8
    D_S = 9
    T0_S = 10
    STEP_FEEDBACK = 11
    SAFETY_TTFT = 12
    SAFETY_TPOT = 13
    PREFILL_RATE = 14
    MAX_NUM_SEQS = 15
    PREFILL_BUDGET_TOKENS = 16
    CONTEXT_TOKENS = 17
    BID_PRICE_PUSD_PER_S = 18
    TOP_DENSITY_PUSD_PER_S = 19
    DENSITY_SPREAD = 20
    PREFIX_TRUST = 21  # of the tokens expected in the prefix cache, the share found there
    TIGHTEST_TTFT_MS = 22  # of the classes that are asked of its pool, 0: none
    STARTED_S = 23  # its process's start by the epoch, 0: it does not say
    LIFE = 24  # the `Owned.LIFE` that all of this was seen of; another one makes it the past
    ROUND_TRIP_S = 25  # of a new connection, 0: not known
    FORGOTTEN_S = 26  # monotonic: what was sent before is in its prefix cache no more, 0: unknown


class Owned(IntEnum):
    """What the parent says of an engine that `serve` runs; an engine of somebody else stays 0.

    That a port answers proves nothing: anything may listen there. Only the parent knows whether
    its own process does. `LIFE` numbers the life that serves at this moment, 0 while none does.
    """

    LIFE = 0
    STAGE = 1  # index into STAGES


# Asking an enumeration for its length costs more than reading its row of the board.
_LOADS, _RESIDENT, _SEEN = len(Load), len(Resident), len(Seen)
_PUBLISHED, _OWNED = len(Published), len(Owned)
_HELD = HELD_OFF * len(Held)
_PEERS = 2  # before the loads: when their writer was alive, and of how many hosts they are
_TIGHTEST = int(Load.TIGHTEST_TPOT_MS)
_LATEST = tuple(map(int, (Load.QUEUE_MOVED_S, Load.HEARD_S, Load.SILENT_S, Load.ASK_AT_S)))
_TELEMETRY = 1  # the cell in which telemetry says when it was alive; the first is the stamp

HEALTHS = ("unknown", "loading", "healthy", "draining", "down", "off")
STAGES = (
    "waiting", "starting", "loading", "warming", "serving", "draining", "backing_off", "blocked",
    "stopped", "resting",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layout:
    """Which row belongs to whom; equal in every process of one `serve`."""

    workers: int
    engines: tuple[str, ...]
    apis: tuple[str, ...]
    peers: bool = False  # a row for what other hosts say that they have in flight

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of the engines (`pool:NAME/REPLICA`), in the order of their first rows."""
        return tuple(dict.fromkeys(name[5:].rpartition("/")[0] for name in self.engines))

    @property
    def shared(self) -> tuple[str, ...]:
        """The rows of APIs that all models of a provider share that are not named in full."""
        return tuple(name for name in self.apis if name.endswith("/*"))

    @property
    def worker_cells(self) -> int:
        per_engine = _LOADS + RESIDENTS * _RESIDENT
        apis = len(self.apis) * _SEEN + len(self.shared) * _HELD
        return 2 + len(self.engines) * per_engine + apis + len(self.pools) * MARKET_CELLS

    @property
    def cells(self) -> int:
        per_engine = _PUBLISHED + _OWNED
        cells = 2 + self.workers * self.worker_cells + len(self.engines) * per_engine
        return cells + self.peers_cells

    @property
    def peers_cells(self) -> int:
        return _PEERS + len(self.engines) * _LOADS if self.peers else 0


class Board:
    """The mapped file. Offsets are computed once; hot reads are plain indexing."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.layout = layout
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, layout.cells * 8)
            self._map = mmap.mmap(descriptor, layout.cells * 8)
        finally:
            os.close(descriptor)
        self.cells: memoryview[float] = memoryview(self._map).cast("d")
        stamp = float(MAGIC + layout.cells)
        if self.cells[0] not in (0.0, stamp):
            self.cells[:] = memoryview(bytes(layout.cells * 8)).cast("d")
        self.cells[0] = stamp
        self._worker_cells = layout.worker_cells
        self._seen = 2 + len(layout.engines) * _LOADS  # within a worker's row, as is the next
        self._residents = self._seen + len(layout.apis) * _SEEN
        self._markets = self._residents + len(layout.engines) * RESIDENTS * _RESIDENT
        self._held = self._markets + len(layout.pools) * MARKET_CELLS
        self._shared = {layout.apis.index(name): at for at, name in enumerate(layout.shared)}
        self._published = 2 + layout.workers * layout.worker_cells
        self._owned = self._published + len(layout.engines) * _PUBLISHED
        self.peers = self._owned + len(layout.engines) * _OWNED
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
        return 2 + worker * self._worker_cells + 2 + engine * _LOADS

    def seen_row(self, worker: int, api: int) -> int:
        return 2 + worker * self._worker_cells + self._seen + api * _SEEN

    def resident_row(self, worker: int, engine: int, place: int) -> int:
        places = 2 + worker * self._worker_cells + self._residents
        return places + (engine * RESIDENTS + place) * _RESIDENT

    def market_row(self, worker: int, pool: int) -> int:
        """A worker's sums of the demand for one pool, as `router.market` counts it."""
        return 2 + worker * self._worker_cells + self._markets + pool * MARKET_CELLS

    def held_row(self, worker: int, api: int) -> int:
        """A worker's places for models that the provider behind a shared row holds off."""
        return 2 + worker * self._worker_cells + self._held + self._shared[api] * _HELD

    def published_row(self, engine: int) -> int:
        return self._published + engine * _PUBLISHED

    def owned_row(self, engine: int) -> int:
        return self._owned + engine * _OWNED

    def peers_row(self, engine: int) -> int:
        """What the other hosts have in flight there; only of a layout with peers."""
        return self.peers + _PEERS + engine * _LOADS

    # -- views: whoever keeps one sees at a glance whether anything changed ---------------------

    def engine_views(self, engine: int) -> "list[memoryview[float]]":
        """What telemetry and the parent say of one engine, each worker's share and the peers'."""
        loads = [self.load_row(worker, engine) for worker in range(self.layout.workers)]
        loads += [self.peers_row(engine)] if self.layout.peers else []
        return [
            self._view(self.published_row(engine), _PUBLISHED),
            self._view(self.owned_row(engine), _OWNED),
            *(self._view(row, _LOADS) for row in loads),
        ]

    def seen_views(self, api: int) -> "list[memoryview[float]]":
        """Each worker's experience with one API."""
        rows = [self.seen_row(worker, api) for worker in range(self.layout.workers)]
        return [self._view(row, _SEEN) for row in rows]

    def _view(self, row: int, count: int) -> "memoryview[float]":
        view = self.cells[row : row + count]
        self._views.append(view)
        return view

    # -- lives --------------------------------------------------------------------------------

    def enter(self, worker: int, pid: int, now_s: float) -> None:
        """A worker takes its slot: whatever a predecessor left there is cleared."""
        self.clear(worker)
        row = self.worker_row(worker)
        self.cells[row] = float(pid)
        self.cells[row + 1] = now_s

    def beat(self, worker: int, now_s: float) -> None:
        self.cells[self.worker_row(worker) + 1] = now_s

    def clear(self, worker: int) -> None:
        """Drop a dead worker's promises; what it learned of latencies goes with it."""
        row = self.worker_row(worker)
        for cell in range(row, row + self._worker_cells):
            self.cells[cell] = 0.0

    def alive(self, now_s: float) -> None:
        """Telemetry runs at this moment."""
        self.cells[_TELEMETRY] = now_s

    def silent_s(self, now_s: float) -> float:
        """Since when telemetry was not heard of; 0 before its first word."""
        heard_s = self.cells[_TELEMETRY]
        return max(0.0, now_s - heard_s) if heard_s else 0.0

    # -- sums ---------------------------------------------------------------------------------

    def loads(self, engine: int) -> list[float]:
        """All workers' and other hosts' shares of one engine, added up, indexed by `Load`."""
        if not self.layout.peers:
            return self.own_loads(engine)
        row = self.peers_row(engine)
        theirs: list[float] = self.cells[row : row + _LOADS].tolist()  # type: ignore[assignment]  # as below
        return _added([self.own_loads(engine), theirs])

    def own_loads(self, engine: int) -> list[float]:
        """All workers' shares: what this host knows of itself, and judges itself by."""
        first, step, cells = self.load_row(0, engine), self._worker_cells, self.cells
        rows = [
            cells[row : row + _LOADS].tolist()
            for row in range(first, first + self.layout.workers * step, step)
        ]
        if len(rows) == 1:
            return rows[0]  # type: ignore[return-value]  # the stubs think of bytes only
        return _added(rows)  # type: ignore[arg-type]  # likewise

    def demand(self, pool: int) -> list[float]:
        """All workers' sums of the demand for one pool."""
        rows = []
        for worker in range(self.layout.workers):
            row = self.market_row(worker, pool)
            rows.append(self.cells[row : row + MARKET_CELLS].tolist())
        return list(map(sum, zip(*rows, strict=True)))

    def residents(
        self, engine: int, *, now_s: float, limit_s: float
    ) -> tuple[tuple[float, float, float], ...]:
        """(held, final, slack) of the sequences on one engine heard of within `limit_s`.

        Slack is what a sequence may have grown by since, at its pace.
        """
        found: list[tuple[float, float, float]] = []
        for worker in range(self.layout.workers):
            row = self.resident_row(worker, engine, 0)
            cells = self.cells[row : row + RESIDENTS * _RESIDENT].tolist()
            found += [
                (held, final, max(0.0, now_s - heard_s) * pace)
                for held, final, heard_s, pace in zip(
                    cells[::4], cells[1::4], cells[2::4], cells[3::4], strict=True
                )
                if final > 0.0 and heard_s > 0.0 and now_s - heard_s <= limit_s
            ]
        return tuple(found)

    def published(self, engine: int) -> Sequence[float]:
        """What telemetry says of one engine, indexed by `Published`."""
        row = self.published_row(engine)
        return self.cells[row : row + _PUBLISHED].tolist()

    def publish(self, engine: int, values: dict[Published, float]) -> None:
        """Write the given cells of one engine; what makes them count goes last."""
        row = self.published_row(engine)
        last = (Published.UPDATED_S, Published.LIFE)
        for cell in (*(cell for cell in values if cell not in last), *last):
            if cell in values:
                self.cells[row + cell] = values[cell]

    def own(self, engine: int, stage: str, life: int = 0) -> None:
        """The parent's word: the stage of its process, and the life that serves, if one does."""
        row = self.owned_row(engine)
        self.cells[row + Owned.STAGE] = float(STAGES.index(stage))
        self.cells[row + Owned.LIFE] = float(life)

    def life(self, engine: int) -> float:
        return self.cells[self.owned_row(engine) + Owned.LIFE]

    def stage(self, engine: int) -> str:
        return STAGES[int(self.cells[self.owned_row(engine) + Owned.STAGE])]

    def held(self, api: int) -> list[list[float]]:
        """What each worker was told of models that share a row: places of `Held`, one by one."""
        rows = [self.held_row(worker, api) for worker in range(self.layout.workers)]
        return [self.cells[row : row + _HELD].tolist() for row in rows]  # type: ignore[misc]  # as in `loads`

    def seen(self, api: int) -> list[Sequence[float]]:
        """What each worker experienced with one API, indexed by `Seen`."""
        first, step, cells = self.seen_row(0, api), self._worker_cells, self.cells
        return [
            cells[row : row + _SEEN].tolist()
            for row in range(first, first + self.layout.workers * step, step)
        ]


def _added(rows: list[list[float]]) -> list[float]:
    summed: list[float] = [sum(cells) for cells in zip(*rows, strict=True)]
    for cell in _LATEST:
        summed[cell] = max([row[cell] for row in rows])
    promised = [row[_TIGHTEST] for row in rows if row[_TIGHTEST] > 0.0]
    summed[_TIGHTEST] = min(promised, default=0.0)
    return summed
