"""Own engines' prefix caches in virtual time: what is expected there, by the index that serves.

The simulated engine has a real cache of blocks, and says how much of each prompt it found. What is
expected of it is told by what it was sent, and believed as far as it was found lately, as live.
When it forgot is reckoned, as of engines that do not tell.
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
    """The index of every engine; `names` are all engines of the host, by their rows."""

    def __init__(self, names: Sequence[str], seats: Mapping[str, ReplayEngine]) -> None:
        self._table = SharedLoadTable(None, TableLayout(1, tuple(names), ()))
        self.index = PrefixIndex(None, self._table)
        self._engines = [
            (row, seats[name], PrefixHitTrust()) for row, name in enumerate(names) if name in seats
        ]
        self._expected = [0.0] * len(names)
        self._moved = [False] * len(names)  # since it was last reckoned what is forgotten
        self._rows = {seat.name: row for row, seat, _ in self._engines}
        for row, seat, trust in self._engines:
            cell = self._table.published_row(row) + _CAPACITY
            self._table.cells[cell] = float(seat.shape.kv_capacity_tokens)
            trust.fold(0.0, 0.0)

    def record_sent(
        self, engine: int, marks: Sequence[int], expected_tokens: int, now_s: float
    ) -> None:
        """A prompt that begins so goes to the engine of this row."""
        if marks:
            self.index.record_sent(engine, marks, now_s)
            self._expected[engine] += expected_tokens
            self._moved[engine] = True

    def record_released(self, engine: str, marks: Sequence[int], now_s: float) -> None:
        """A prompt that begins so has its answer there."""
        row = self._rows[engine]
        self.index.record_released(row, marks, now_s)
        self._moved[row] = True

    def fold(self) -> None:
        """Believe what was found lately, as telemetry does at every scrape."""
        for row, seat, trust in self._engines:
            trust.fold(self._expected[row], float(seat.engine.totals.prefix_hits))
            cells, published = self._table.cells, self._table.published_row(row)
            cells[published + _TRUST] = trust.share
            if self._moved[row]:
                self._moved[row] = False
                cells[published + _FORGOTTEN] = self.index.forgotten_s(row)
