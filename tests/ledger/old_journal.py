"""A journal of format 1 as earlier versions wrote it: the product reads it and writes none."""

import fcntl
import os
import struct
import zlib
from pathlib import Path

import msgspec

_HEAD = struct.Struct("<II")


def encode_old(record) -> bytes:
    payload = msgspec.msgpack.encode(record)
    return _HEAD.pack(len(payload), zlib.crc32(payload)) + payload


class OldWriter:
    """One process's journal; `close` lets go of the lock, as the process's death does."""

    def __init__(self, directory: Path, worker: str, *, segment_bytes=64 * 1024 * 1024, name="old"):
        self.name, self._segment_bytes = f"{worker}-{name}", segment_bytes
        self.home = directory / self.name
        self.home.mkdir(parents=True)
        self._owner = os.open(self.home / "owner", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._number, self._size = 1, 0

    @property
    def segment(self) -> Path:
        return self.home / f"{self._number:012d}.journal"

    def append(self, record) -> None:
        frame = encode_old(record)
        if self._size and self._size + len(frame) > self._segment_bytes:
            self._number, self._size = self._number + 1, 0
        with self.segment.open("ab") as file:
            file.write(frame)
        self._size += len(frame)

    def close(self) -> None:
        os.close(self._owner)
