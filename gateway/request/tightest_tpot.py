"""The smallest TPOT that a worker promised on an engine, in a cell that all workers read."""


class TightestTpot:
    """The smallest TPOT promised to one worker's requests on one engine; 0 for none."""

    __slots__ = ("_cell", "_cells", "_counts")

    def __init__(self, cells: "memoryview[float]", cell: int) -> None:
        self._cells, self._cell = cells, cell
        self._counts: dict[float, int] = {}

    def add(self, tpot_ms: float) -> None:
        known = self._counts.get(tpot_ms, 0)
        self._counts[tpot_ms] = known + 1
        if not known:
            self._cells[self._cell] = min(self._counts)

    def remove(self, tpot_ms: float) -> None:
        left = self._counts[tpot_ms] = self._counts[tpot_ms] - 1
        if not left:
            del self._counts[tpot_ms]
            self._cells[self._cell] = min(self._counts, default=0.0)
