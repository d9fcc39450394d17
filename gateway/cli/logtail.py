"""The end of a log that grows, across its rotation: by name (engines') or by copy (the others')."""

import codecs
import os
from collections import deque
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Self


class LogTail:
    """`last` once, then `more` as often as wanted: nothing between is left out.

    Raises `OSError` where there is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def _begin(self) -> None:
        self._file: BinaryIO = self._path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def last(self, lines: int) -> str:
        """So many lines; where the log has just begun anew, of the one before, too."""
        older: list[bytes] = []
        with suppress(OSError):
            older = (
                self._path.with_name(self._path.name + ".1").read_bytes().splitlines(keepends=True)
            )
        return self._decoder.decode(b"".join(deque(chain(older, self._file), maxlen=lines)))

    def more(self) -> str:
        """What came since; empty when nothing did."""
        if text := self._decoder.decode(self._file.read()):
            return text
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return ""  # between the old and the next
        rest = ""
        if now.st_ino != os.fstat(self._file.fileno()).st_ino:
            rest = self._decoder.decode(self._file.read(), final=True)  # before it was moved
            self._file.close()
            self._begin()
        elif now.st_size < self._file.tell():
            self._file.seek(0)
        return rest + self._decoder.decode(self._file.read())
