"""Detection of new data in journals by two system calls per journal, without a thread.

A worker moves the mark of its journal with every frame (`ledger.journals.mark`), so a journal with
an unchanged mark has not grown. The mark files stay open between checks.
"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from ledger.journals.homes import FOLDER, list_journals
from ledger.journals.layout import HEADER_BYTES

SAME_TICK_NS = 100_000_000  # a folder's time is coarse: two changes so close may have the same one

JournalMarks = tuple[tuple[str, bytes], ...]


class JournalGrowth:
    """A checker of all journals of one directory. Close it after use."""

    def __init__(self, directory: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        """Watch a directory; `now_ns` is the wall clock."""
        self._now_ns = now_ns
        self._directory = directory
        self._folders = (directory, directory / FOLDER)
        self._stamps: tuple[int, ...] | None = None  # of the folders, as the journals were listed
        self._locks: dict[str, int] = {}  # open files, by journal
        self._is_whole = False  # each journal has a mark

    def marks(self) -> JournalMarks | None:
        """Return each journal's mark, which changes when the journal grows.

        `None` means that the journals must be read: one has lost its owner, has no mark (format 1),
        or cannot be checked.
        """
        try:
            self._list_if_changed()
            if not self._is_whole:
                return None
            marks = []
            for name, file in self._locks.items():
                if not _is_held(file):
                    return None
                marks.append((name, os.pread(file, HEADER_BYTES, 0)))
            return tuple(marks)
        except OSError:
            return None

    def close(self) -> None:
        self._stamps, self._is_whole = None, False
        while self._locks:
            os.close(self._locks.popitem()[1])

    def _list_if_changed(self) -> None:
        stamps = tuple(map(_changed_ns, self._folders))
        if stamps == self._stamps:
            return
        self.close()
        journals = list_journals(self._directory)
        for journal in journals:
            self._locks[journal.name] = os.open(journal.lock, os.O_RDWR)
        self._is_whole = all(journal.format != 1 for journal in journals)
        if max(stamps) < self._now_ns() - SAME_TICK_NS:
            self._stamps = stamps


def _changed_ns(folder: Path) -> int:
    try:
        return os.stat(folder).st_mtime_ns  # noqa: PTH116  (several times a second)
    except FileNotFoundError:
        return 0


def _is_held(file: int) -> bool:
    """Return whether a process holds the journal of this lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False
