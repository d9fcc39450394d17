"""Exchange of answer lengths between a host's workers: a mapped file, one ring per worker.

A worker writes the lengths that it observes into its own ring, and reads new records of the other
rings from time to time. Rings are short: of a busy worker the others read only a sample, which
bounds the time that each of them spends. The counters of a ring show which records may have been
overwritten during a read; those are skipped.
"""

from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from gateway.fleet.mapped_file import map_file

LENGTHS_FILE = "lengths"  # in the run directory
MAGIC = 0xB4EA_E601
HEAR_S = 1.0  # between reads of the other rings
RING_SLOTS: Final = 64
NAME_BYTES: Final = 192  # keys with longer names are not exchanged
_RECORD: Final = Struct(f"<QQ?H{NAME_BYTES}s")  # prompt, output, whether cut, bytes of the names
KEYS_LIMIT: Final = 4096  # keys with cached names
_HEAD_CELLS: Final = 8
_RING_BYTES: Final = _RECORD.size * RING_SLOTS


class HeardLength(NamedTuple):
    """Length of one answer of another worker; `output_tokens` is of one choice."""

    key: tuple[str, str]
    prompt_tokens: int
    output_tokens: int
    cut: bool


class LengthExchange:
    """Memory-mapped file as used by one worker. Close it after its last use."""

    def __init__(self, path: Path, worker: int, workers: int) -> None:
        self._worker, self._workers = worker, workers
        cells = _HEAD_CELLS + 2 * workers
        size = 8 * cells + _RING_BYTES * workers
        self._map = map_file(path, size)
        self._cells: memoryview[int] = memoryview(self._map)[: 8 * cells].cast("Q")
        if self._cells[0] != MAGIC + workers:  # new, or another version
            self._map[:] = bytes(size)
            self._cells[0] = MAGIC + workers
        self._rings = 8 * cells
        self._own = self._rings + worker * _RING_BYTES
        self._begun = _HEAD_CELLS + 2 * worker  # records begun; next cell: completed
        self._number = self._cells[self._begun]
        self._names: dict[tuple[str, str], bytes] = {}
        self._heard = [self._cells[_HEAD_CELLS + 2 * other + 1] for other in range(workers)]

    def close(self) -> None:
        self._cells.release()
        self._map.close()

    def tell(
        self, key: tuple[str, str], prompt_tokens: int, output_tokens: int, *, cut: bool
    ) -> None:
        """Write the length of an answer for the other workers."""
        if (names := self._names.get(key)) is None:
            names = self._named(key)
        if not names:
            return
        number = self._number
        self._number = self._cells[self._begun] = number + 1
        at = self._own + number % RING_SLOTS * _RECORD.size
        _RECORD.pack_into(self._map, at, prompt_tokens, output_tokens, cut, len(names), names)
        self._cells[self._begun + 1] = number + 1

    def hear(self) -> list[HeardLength]:
        """Return the records of other workers since the last call that were not overwritten."""
        heard: list[HeardLength] = []
        for other in range(self._workers):
            if other == self._worker:
                continue
            done = self._cells[_HEAD_CELLS + 2 * other + 1]
            if done != self._heard[other]:
                heard += self._read(other, done)
                self._heard[other] = done
        return heard

    def _read(self, other: int, done: int) -> list[HeardLength]:
        start = self._rings + other * _RING_BYTES
        ring = self._map[start : start + _RING_BYTES]
        begun = self._cells[_HEAD_CELLS + 2 * other]  # read after the copy of the ring
        first = self._heard[other] if self._heard[other] <= done else 0
        heard = []
        for number in range(max(first, begun - RING_SLOTS, 0), done):
            found = _RECORD.unpack_from(ring, number % RING_SLOTS * _RECORD.size)
            prompt_tokens, output_tokens, cut, size, names = found
            model, told, team = names[:size].decode("utf-8", "replace").partition("\0")
            if told:
                heard.append(HeardLength((model, team), prompt_tokens, output_tokens, cut))
        return heard

    def _named(self, key: tuple[str, str]) -> bytes:
        """Return the encoded names of the key; empty if they are too long."""
        if len(self._names) >= KEYS_LIMIT:
            self._names.clear()
        names = "\0".join(key).encode("utf-8", "replace")
        self._names[key] = names = names if len(names) <= NAME_BYTES else b""
        return names
