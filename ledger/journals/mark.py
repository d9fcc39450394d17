"""How far a worker wrote its journal, kept beside the journal in memory that the file backs.

A frame that is missing at a journal's end was either never finished, because its process was
killed, or was written and lost by the disk. The mark tells the two apart. It is stored after each
frame, without a system call, and survives the process. The host's death may leave a mark that is
ahead of the frames on the disk, so after another boot only the numbers that were flushed count.

The file is the journal's lock, too. Each number stands in two places in turn, beside its
complement: a process that is killed between two stores leaves the number before readable.
"""

import mmap
import os
from pathlib import Path
from typing import NamedTuple

from ledger.journals.layout import HEADER_BYTES

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOT_AT, _BOOT_BYTES = 2048, 64
_WRITTEN, _FLUSHED = 0, 8  # of 64 bits each
_ALL = 2**64 - 1


class WriteMark:
    """The writing side. `record_written` and `record_flushed` take growing sequence numbers."""

    def __init__(self, file: int) -> None:
        """Make the mark in an empty file; raises `OSError` where the disk has no room for it."""
        block = bytearray(HEADER_BYTES)
        boot = read_boot_id().encode()[:_BOOT_BYTES]
        block[_BOOT_AT : _BOOT_AT + len(boot)] = boot
        os.pwrite(file, block, 0)
        os.fsync(file)  # a store into memory without a block behind it would end the process
        self._memory = mmap.mmap(file, HEADER_BYTES)
        self._cells = memoryview(self._memory).cast("Q")
        for number in (_WRITTEN, _FLUSHED):
            self._store(number, 0)

    def record_written(self, sequence: int) -> None:
        cells, place = self._cells, (sequence & 1) << 1
        cells[place] = sequence
        cells[place + 1] = _ALL - sequence

    def record_flushed(self, sequence: int) -> None:
        self._store(_FLUSHED, sequence)

    def close(self) -> None:
        self._cells.release()
        self._memory.close()

    def _store(self, cell: int, sequence: int) -> None:
        place = cell + 2 * (sequence & 1)
        self._cells[place] = sequence
        self._cells[place + 1] = _ALL - sequence


class MarkReading(NamedTuple):
    """Sequence numbers as a mark has them; None: it is damaged or missing."""

    written: int | None
    flushed: int | None
    boot: str

    def sure(self, boot: str) -> int | None:
        """Return the last number that must be in the journal, read under this boot's id."""
        return self.written if boot and boot == self.boot else self.flushed


def read_boot_id() -> str:
    """Return this boot's id; empty where the kernel tells none."""
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def read_mark(path: Path) -> MarkReading:
    try:
        block = path.read_bytes()
    except FileNotFoundError:
        block = b""
    if len(block) < HEADER_BYTES:
        return MarkReading(None, None, "")
    cells = memoryview(block[:HEADER_BYTES]).cast("Q")
    boot = block[_BOOT_AT : _BOOT_AT + _BOOT_BYTES].rstrip(b"\0").decode("ascii", "replace")
    return MarkReading(_number(cells, _WRITTEN), _number(cells, _FLUSHED), boot)


def _number(cells: memoryview, cell: int) -> int | None:
    pairs = [(cells[place], cells[place + 1]) for place in (cell, cell + 2)]
    whole = [number for number, complement in pairs if number + complement == _ALL]
    return max(whole, default=None)
