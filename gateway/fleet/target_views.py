"""State of each target from the shared load table, rebuilt only when its cells change.

An engine's state is dead reckoning: the sum of all workers' events plus the foreign traffic of the
last scrape. An API's state comes from the workers' observations. Most requests change the cells of
one target, while a plan reads all targets.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from gateway.fleet.circuit_breaker import warming_limit
from gateway.fleet.model_backoff import held_off_s
from gateway.fleet.shared_load import SharedLoadTable
from gateway.fleet.target_stats import MOMENTS, Latencies, latencies_of, state_of
from gateway.table_layout import HEALTHS, SupervisionCell
from router.bid_price import BidPrice
from router.feedback import SAFETY_TPOT, SAFETY_TTFT
from router.types import ApiState, EngineState, StepModel, TargetHealth

HEARD_LIMIT_S = 1.0  # a sequence without an update for longer counts at its final size
AHEAD_S = 1.0  # maximum by which metrics may be newer than a request's time
FRESH_S = 0.01  # maximum error of ages; engines are scraped every 0.5 s
_HEALTHS = tuple(TargetHealth(word) for word in HEALTHS)
_HEALTHY = TargetHealth.HEALTHY
_LIFE = int(SupervisionCell.LIFE)

Shunned = Callable[[int, Sequence[float], float], bool]
"""(row, loads, monotonic seconds) -> whether the engine is left alone for its failures."""

UNREADABLE = EngineState(
    TargetHealth.UNKNOWN, None, 0, 0, 0.0, 0.0, 0, 0.0, 0.0, 1, 0, 0, age_s=math.inf
)


class EngineView(Protocol):
    def snapshot(self, now_s: float) -> tuple[EngineState, int, BidPrice]:
        """Return the engine's state, its reported context limit, and its pool's bid price."""


class ApiView(Protocol):
    def snapshot(self, now_s: float, needed_tokens: int) -> ApiState:
        """Return the API's state for a request of `needed_tokens` counted tokens."""


class TargetViews(Protocol):
    """Source of target views, by row of the shared load table.

    Implemented by `LiveTargetViews`, and by what-if runs for simulated engines.
    """

    def engine(self, row: int) -> EngineView: ...

    def api(self, row: int) -> ApiView: ...

    def held_off_s(self, row: int, model: str, now_s: float, /) -> float:
        """Return how many seconds the provider pauses this model of a shared row; 0: not."""


class LiveTargetViews:
    """Views of the targets of a running host."""

    def __init__(self, board: SharedLoadTable, stale_s: float, shunned: Shunned | None) -> None:
        self._board, self._stale_s, self._shunned = board, stale_s, shunned

    def engine(self, row: int) -> EngineView:
        return LiveEngineView(self._board, row, self._stale_s, self._shunned)

    def api(self, row: int) -> ApiView:
        return LiveApiView(self._board, row)

    def held_off_s(self, row: int, model: str, now_s: float, /) -> float:
        return held_off_s(self._board, row, model, now_s)


class LiveEngineView:
    """View of one engine: `snapshot` returns its state, context limit and bid price."""

    def __init__(
        self, board: SharedLoadTable, row: int, stale_s: float, shunned: Shunned | None
    ) -> None:
        self._board, self._row, self._stale_s, self._shunned = board, row, stale_s, shunned
        self._views = board.engine_views(row)
        self._cells = b""
        self._seen_s = -math.inf
        self._own: Sequence[float] = ()
        self._known: tuple[EngineState, int, BidPrice]
        self._crowded = False

    def snapshot(self, now_s: float) -> tuple[EngineState, int, BidPrice]:
        cells = b"".join(self._views)
        if cells != self._cells or not 0.0 <= now_s - self._seen_s < FRESH_S:
            self._see(now_s)
            self._cells, self._seen_s = cells, now_s
        left_alone = self._shunned is not None and self._shunned(self._row, self._own, now_s)
        if not left_alone and not self._crowded:
            return self._known
        state, context_tokens, market = self._known
        if left_alone:
            state = replace(state, health=TargetHealth.DOWN)
        if self._crowded:
            residents = self._board.residents(self._row, now_s=now_s, limit_s=HEARD_LIMIT_S)
            state = replace(state, residents=residents)
        return state, context_tokens, market

    def _see(self, now_s: float) -> None:
        published, life = self._views[0].tolist(), self._views[1][_LIFE]
        loads = self._board.loads(self._row)
        # Silence is judged by this host's load only: other hosts may reach the engine.
        self._own = self._board.own_loads(self._row) if self._board.layout.peers else loads
        *_, stated, bid, top, spread, _, _, _, _, _, _, _, _, _ = published
        try:
            state = engine_state(published, loads, now_s, self._stale_s, life=life)
            context_tokens, readable = int(stated), state.sane
        except (ValueError, OverflowError):  # NaN or infinity in a cell
            readable = False
        if not readable:  # values derived from it would be invalid, too
            self._known, self._crowded = (UNREADABLE, 0, BidPrice(0.0, 0.0, 1.0)), False
            return
        self._known = state, context_tokens, BidPrice(bid, top, spread or 1.0)
        self._crowded = is_crowded(state)


class LiveApiView:
    """View of one API: `snapshot` returns its state for a request of a size in tokens."""

    def __init__(self, board: SharedLoadTable, row: int) -> None:
        self._board, self._row = board, row
        self._views, self._news_views = board.api_stats_views(row), board.api_news_views(row)
        self._cells = self._news = b""
        self._state: ApiState | None = None  # only a state that depends on neither time nor request
        self._moments = b""
        self._latencies: Latencies = latencies_of([])

    def snapshot(self, now_s: float, needed_tokens: int) -> ApiState:
        cells = b"".join(self._views)
        if self._state is not None and cells == self._cells:
            return self._state
        news = b"".join(self._news_views)
        if self._state is not None and news == self._news:  # open requests do not matter
            self._cells = cells
            return self._state
        seen = self._board.api_stats(self._row)
        moments = b"".join([view[:MOMENTS] for view in self._views])
        if moments != self._moments:
            self._moments, self._latencies = moments, latencies_of(seen)
        state = state_of(seen, self._latencies, now_s, needed_tokens)
        quiet = not state.circuit_open and state.requests_left is None is state.tokens_left
        if quiet and warming_limit(seen, now_s) is not None:  # open requests matter
            quiet = False
        self._cells, self._news, self._state = cells, news, state if quiet else None
        return state


def is_crowded(state: EngineState) -> bool:
    """Return whether more than half of the KV cache is taken, so that sequence sizes matter."""
    return 2 * state.kv_taken_tokens > state.kv_capacity_tokens


# Cached: a state is built for nearly every request, a step model changes rarely.
_step_model = lru_cache(maxsize=1024)(StepModel)


def engine_state(
    published: Sequence[float],
    loads: Sequence[float],
    now_s: float,
    stale_s: float,
    *,
    life: float,
) -> EngineState:
    """Return the engine's state; stale or missing metrics give `UNKNOWN`.

    `life` numbers the process that serves now. Metrics of another process give `LOADING`.
    """
    (
        updated, word, capacity, block, foreign, foreign_kv, a, b, c, d, t0, feedback,
        safety_ttft, safety_tpot, prefill_rate, most, budget, _, _, _, _, _, tightest_ttft, _,
        seen_of, _, _, _, spare_misses, spare_brief_misses,
    ) = published  # fmt: skip
    (
        sequences, context, queued, promised, *_, moved_s, tightest_tpot, _, _, _, squares, _, _,
        hits, _,
    ) = loads  # fmt: skip
    age = now_s - updated if updated else math.inf
    if not 0.0 <= word < len(_HEALTHS):
        raise ValueError(f"{word} is not a state of health")
    health = _HEALTHS[int(word)]
    if health is _HEALTHY:
        if not -AHEAD_S < age <= stale_s:  # NaN also fails this test
            health = TargetHealth.UNKNOWN
        elif seen_of != life:
            health = TargetHealth.LOADING
    held = context + queued + hits
    return EngineState(
        health,
        _step_model(a, b, c, d, t0) if a > 0.0 else None,
        int(sequences + foreign),
        0,  # waiting: the engine's queue is included in running sequences
        context + foreign_kv,
        queued,
        int(capacity),
        held + foreign_kv,
        0.0 if promised <= held else promised - held,  # faster than `max`
        int(block) or 1,
        int(most),
        int(budget),
        feedback or 1.0,
        safety_ttft or SAFETY_TTFT,
        safety_tpot or SAFETY_TPOT,
        prefill_rate,
        tightest_ttft or None,
        tightest_tpot or None,
        age_s=age,
        head_tokens=squares / queued if queued > 0.0 else 0.0,
        head_since_s=now_s - moved_s if moved_s and now_s > moved_s else 0.0,
        queued_hit_tokens=hits,
        spare_misses=spare_misses,
        spare_brief_misses=spare_brief_misses,
    )
