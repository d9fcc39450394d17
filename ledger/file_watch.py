"""Notification of an event loop about changed folders and files (inotify).

Writes through mapped memory cause no event. If the system has no inotify or no watch left, there
are no events at all, and callers poll as before.
"""

import asyncio
import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_MODIFIED, _ATTRIBUTES, _WRITTEN, _MOVED_IN = 0x2, 0x4, 0x8, 0x80
_MOVED_OUT, _CREATED, _DELETED = 0x40, 0x100, 0x200
_CHANGES = _MODIFIED | _ATTRIBUTES | _WRITTEN | _MOVED_IN | _MOVED_OUT | _CREATED | _DELETED
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES = 65_536
_LIBC: Any = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """A watch on paths for one event loop, which it wakes only while it waits.

    Close it after use.
    """

    def __init__(self, *paths: Path) -> None:
        """Watch folders (their direct contents) and files. All paths must exist."""
        self._file = _open_watch(paths) if paths else None

    @property
    def works(self) -> bool:
        """Return whether changes are reported; if not, `changed` only sleeps."""
        return self._file is not None

    async def changed(self, look_s: float, told_s: float) -> bool:
        """Return true once a path has changed since the last call, false after the timeout.

        The timeout is `told_s` where changes are reported, and `look_s` where they are not.
        """
        if self._file is None:
            await asyncio.sleep(look_s)
            return False
        if not _take_events(self._file):
            with suppress(TimeoutError):
                async with asyncio.timeout(told_s):
                    await _await_readable(self._file)
            return _take_events(self._file)
        return True

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


async def _await_readable(file: int) -> None:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[None] = loop.create_future()
    loop.add_reader(file, _tell, told)
    try:
        await told
    finally:
        loop.remove_reader(file)


def _tell(told: "asyncio.Future[None]") -> None:
    if not told.done():
        told.set_result(None)


def _take_events(file: int) -> bool:
    """Read all pending events. Return whether there were any."""
    some = False
    with suppress(BlockingIOError):
        while os.read(file, _READ_BYTES):
            some = True
    return some


def _open_watch(paths: Sequence[Path]) -> int | None:
    try:
        file = int(_LIBC.inotify_init1(_FLAGS))
    except AttributeError:  # no Linux
        return None
    if file < 0:
        return None
    for path in paths:
        if _LIBC.inotify_add_watch(file, os.fsencode(path), _CHANGES) < 0:
            os.close(file)
            return None
    return file
