"""Prefix caches of own engines in virtual time, with the production index.

The simulated engine has a real block cache, and reports how much of each prompt it found. The
expected hits follow from the prompts sent there, weighted by recent hits, as in production.
Evictions are estimated, as for engines that do not report them.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.fleet.prefix_index import PrefixIndex
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import EngineCell, TableLayout
from gateway.whatif.replay_engine import ReplayEngine
from router.feedback import PrefixHitTrust

_CAPACITY: Final = int(EngineCell.KV_CAPACITY_TOKENS)
_TRUST: Final = int(EngineCell.PREFIX_TRUST)
_FORGOTTEN: Final = int(EngineCell.FORGOTTEN_S)


class ReplayPrefixes:
    """Prefix index of all engines; `names` are all engines of the host, by row."""

    def __init__(self, names: Sequence[str], seats: Mapping[str, ReplayEngine]) -> None:
        self._table = SharedLoadTable(None, TableLayout(1, tuple(names), ()))
        self.index = PrefixIndex(None, self._table)
        self._engines = [
            (row, seats[name], PrefixHitTrust()) for row, name in enumerate(names) if name in seats
        ]
        self._expected = [0.0] * len(names)
        self._moved = [False] * len(names)  # since the last estimate of evictions
        self._rows = {seat.name: row for row, seat, _ in self._engines}
        for row, seat, trust in self._engines:
            cell = self._table.published_row(row) + _CAPACITY
            self._table.cells[cell] = float(seat.shape.kv_capacity_tokens)
            trust.fold(0.0, 0.0)

    def record_sent(
        self, engine: int, marks: Sequence[int], expected_tokens: int, now_s: float
    ) -> None:
        """Record that a prompt with this prefix is sent to the engine of this row."""
        if marks:
            self.index.record_sent(engine, marks, now_s)
            self._expected[engine] += expected_tokens
            self._moved[engine] = True

    def record_released(self, engine: str, marks: Sequence[int], now_s: float) -> None:
        """Record that a prompt with this prefix was answered there."""
        row = self._rows[engine]
        self.index.record_released(row, marks, now_s)
        self._moved[row] = True

    def fold(self) -> None:
        """Update trust and evictions, as telemetry does at every scrape."""
        for row, seat, trust in self._engines:
            trust.fold(self._expected[row], float(seat.engine.totals.prefix_hits))
            cells, published = self._table.cells, self._table.published_row(row)
            cells[published + _TRUST] = trust.share
            if self._moved[row]:
                self._moved[row] = False
                cells[published + _FORGOTTEN] = self.index.forgotten_s(row)
