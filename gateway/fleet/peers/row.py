"""Table row with the load of all other hosts together, in the form of one more worker.

The peer exchange process writes it. The parent clears it when that process ends or hangs, so that
stale load does not count.
"""

from gateway.fleet.peers.peer_load import CELLS, PeerEngineLoad
from gateway.fleet.shared_load import SharedLoadTable
from gateway.table_layout import LoadCell


class PeerLoadRow:
    """Row of other hosts' load in a table whose layout has peers."""

    def __init__(self, board: SharedLoadTable) -> None:
        self._board, self._first = board, board.peers

    def record_alive(self, now_s: float, hosts: int) -> None:
        """Record the time and the number of connected hosts."""
        self._board.cells[self._first] = now_s
        self._board.cells[self._first + 1] = float(hosts)

    @property
    def hosts(self) -> int:
        """Return the number of connected hosts."""
        return int(self._board.cells[self._first + 1])

    def silent_s(self, now_s: float) -> float:
        """Return the seconds since the exchange last wrote; 0 before that and once cleared."""
        alive_s = self._board.cells[self._first]
        return max(0.0, now_s - alive_s) if alive_s else 0.0

    def write(self, engine: int, share: PeerEngineLoad, now_s: float) -> None:
        """Write other hosts' load on one engine at this time."""
        row, cells = self._board.peers_row(engine), self._board.cells
        changed = share.sequences - cells[row + LoadCell.SEQUENCES]
        cells[row + LoadCell.SEQUENCE_S_LESS] -= now_s * changed
        changed = share.context_tokens - cells[row + LoadCell.CONTEXT_TOKENS]
        cells[row + LoadCell.CONTEXT_S_LESS] -= now_s * changed
        for cell, value in zip(CELLS, share, strict=False):  # the last is an age, not a cell
            cells[row + cell] = value
        queued, waiting = share.queued_prefill_tokens, share.queued_sequences
        moved_s = now_s - share.queue_moved_ago_s if waiting > 0.0 else 0.0
        cells[row + LoadCell.QUEUE_MOVED_S] = moved_s
        # Prompts are assumed to be of equal size, because their spread is not sent.
        cells[row + LoadCell.QUEUED_SQUARES] = queued * queued / waiting if waiting > 0.0 else 0.0

    def clear(self) -> None:
        for cell in range(self._first, self._first + self._board.layout.peers_cells):
            self._board.cells[cell] = 0.0
