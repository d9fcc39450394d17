"""A lock is seen while it is held, and not a moment longer."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from ledger.locks import is_locked, take_lock


def test_a_lock_is_seen_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_locked(path)
    holder = os.open(path, os.O_RDWR | os.O_CREAT)
    assert not is_locked(path)
    fcntl.flock(holder, fcntl.LOCK_EX)
    assert is_locked(path)
    os.close(holder)
    assert not is_locked(path)


def test_a_lock_is_seen_on_a_file_system_that_is_read_only(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "lock"
    holder = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    writable = os.open

    def read_only(path, flags, *more):
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, "Read-only file system")
        return writable(path, flags, *more)

    monkeypatch.setattr(os, "open", read_only)
    assert is_locked(path)
    os.close(holder)
    assert not is_locked(path)


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    holder = take_lock(path)
    assert is_locked(path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(BlockingIOError):
        take_lock(path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    os.close(holder)
    os.close(take_lock(path))
