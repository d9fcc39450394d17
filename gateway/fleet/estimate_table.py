"""The host's table of bytes per token: one file that every worker maps, and that restarts keep.

A head of float64 cells, the rows of `router.token_ratio`, and beside each row the names that it is
of, for people. Any process writes any row (`TokenRatio` says why that is safe). Rows hold sums and
names of models and teams, no prompts.
"""

import mmap
import os
from pathlib import Path
from typing import NamedTuple

from router.token_ratio import ROW_CELLS, SLOTS, Key, TokenRatio

ESTIMATES_FILE = "estimates"  # in the run directory
MAGIC = 0xB4EA_E501
HEAD_CELLS = 8
NAME_BYTES = 192  # longer names are learned by, and shown as unknown
SWEEP_S = 3600.0
_STAMP, _RESET, _SWEPT_S = range(3)


class KnownRatio(NamedTuple):
    """One key of the table, as people see it; names are None where they are too long to keep."""

    model: str | None
    team: str | None
    bytes_per_token: float
    template_tokens: int
    observations: int
    seen_s: float


class EstimateTable:
    """The mapped file; `ratio` learns and estimates in it. Close it after its last use."""

    def __init__(self, path: Path, slots: int = SLOTS) -> None:
        head, rows = HEAD_CELLS * 8, slots * ROW_CELLS * 8
        size = head + rows + slots * NAME_BYTES
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(descriptor, size)
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self._names = head + rows
        self._head: memoryview[float] = memoryview(self._map)[:head].cast("d")
        cells: memoryview[float] = memoryview(self._map)[head : head + rows].cast("d")
        stamp = float(MAGIC + slots)
        if self._head[_STAMP] != stamp:  # new, or of another version: what it holds means nothing
            self._map[:] = bytes(size)
            self._head[_STAMP] = stamp
        self.ratio = TokenRatio(cells, self._name)

    def close(self) -> None:
        self.ratio.close()
        self._head.release()
        self._map.close()

    @property
    def reset(self) -> int:
        """The number of the newest reset that the table has seen."""
        return int(self._head[_RESET])

    def reset_to(self, number: int) -> None:
        self._head[_RESET] = float(number)

    def sweep(self, now_s: float) -> bool:
        """Once in `SWEEP_S`, by whichever process asks first: forget what is old."""
        since_s = now_s - self._head[_SWEPT_S]
        if 0.0 <= since_s < SWEEP_S:
            return False
        self._head[_SWEPT_S] = now_s
        self.ratio.age(now_s)
        return True

    def known(self) -> list[KnownRatio]:
        """Every key with its estimate, by model and team."""
        found = [
            KnownRatio(
                *self._named(row.slot),
                row.bytes_per_token,
                row.template_tokens,
                row.observations,
                row.seen_s,
            )
            for row in self.ratio.rows()
        ]
        return sorted(found, key=lambda known: (known.model or "", known.team or ""))

    def _name(self, slot: int, key: Key) -> None:
        text = "\0".join(key).encode("utf-8", "replace")
        start = self._names + slot * NAME_BYTES
        text = text if len(text) <= NAME_BYTES else b""
        self._map[start : start + NAME_BYTES] = text.ljust(NAME_BYTES, b"\0")

    def _named(self, slot: int) -> tuple[str | None, str | None]:
        start = self._names + slot * NAME_BYTES
        text = self._map[start : start + NAME_BYTES].decode("utf-8", "replace").rstrip("\0")
        model, found, team = text.partition("\0")
        return (model, team) if found else (None, None)
