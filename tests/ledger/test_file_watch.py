"""What is written to a watched path is told at once, and nothing else wakes who waits."""

import asyncio
import mmap
from pathlib import Path

import pytest

from ledger import file_watch
from ledger.file_watch import FileWatch

LONG_S = 30.0


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def write(path: Path) -> None:
    path.write_text("x")


def touch(path: Path) -> None:
    path.touch()


def replace(path: Path) -> None:
    (path.parent.parent / "ready").replace(path)


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [write, touch, replace, remove])
@pytest.mark.parametrize("before", [True, False])
async def test_a_change_is_told_at_once(tmp_path: Path, change, before: bool) -> None:
    """Red without the watch, below; also told is what happened before anybody waited."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").touch()
    (tmp_path / "ready").touch()
    watch = FileWatch(folder)
    assert watch.works
    assert not await watch.changed(LONG_S, 0.01), "nothing yet"
    if before:
        change(folder / "file")
    waiting = asyncio.create_task(watch.changed(LONG_S, LONG_S))
    await asyncio.sleep(0)
    if not before:
        change(folder / "file")
    assert await asyncio.wait_for(waiting, 5)
    assert not await watch.changed(LONG_S, 0.01), "it is told once"
    watch.close()
    watch.close()


async def test_a_file_is_watched_by_itself(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    watch = FileWatch(tmp_path / "file")
    (tmp_path / "beside").touch()
    assert not await watch.changed(LONG_S, 0.01)
    (tmp_path / "file").touch()
    assert await watch.changed(LONG_S, LONG_S)
    watch.close()


async def test_mapped_memory_is_not_told(tmp_path: Path) -> None:
    """Why marks of journals are still looked at."""
    path = tmp_path / "mark"
    path.write_bytes(bytes(8))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 8) as cell:
        watch = FileWatch(tmp_path)
        cell[0] = 1
        assert not await watch.changed(LONG_S, 0.01)
        watch.close()


@pytest.mark.parametrize("lack", ["room", "path", "system", "paths"])
async def test_where_nothing_is_told_it_waits_as_before(tmp_path: Path, lack, monkeypatch) -> None:
    (tmp_path / "file").touch()
    paths = [tmp_path]
    if lack == "room":
        full = type("Full", (), {"inotify_init1": staticmethod(lambda _flags: -1)})
        monkeypatch.setattr(file_watch, "_LIBC", full)
    elif lack == "system":
        monkeypatch.setattr(file_watch, "_LIBC", object())
    elif lack == "path":
        paths = [tmp_path / "none"]
    else:
        paths = []
    watch = FileWatch(*paths)
    assert not watch.works
    (tmp_path / "file").touch()
    assert not await watch.changed(0.01, LONG_S)
    watch.close()


async def test_who_stops_waiting_leaves_nothing_behind(tmp_path: Path) -> None:
    files = open_files()
    watch = FileWatch(tmp_path)
    waiting = asyncio.create_task(watch.changed(LONG_S, LONG_S))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    (tmp_path / "file").touch()
    assert await watch.changed(LONG_S, LONG_S)
    watch.close()
    assert open_files() == files
