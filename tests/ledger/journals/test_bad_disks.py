"""Journals on disks that fail: a power cut, errors, no room, slowness. Scenes have them at length.

Real file systems on a disk in user space (`fuse_disk`), so that faults are where the kernel gives
them, whichever way bytes reach the disk. Needs root, FUSE and loop devices.
"""

import errno
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from bad_disk import BadDisk, NoDisk
from power_cuts import LOAD, play_power_cuts, read_after_boot, read_said

from ledger.journals import reader as journal_reader
from ledger.journals.mark import read_mount_id
from ledger.journals.reader import JournalOffset, JournalReader

LONG_S = 120  # a load runs until its test ends it, on a busy machine, too


@functools.cache
def missing_part(kind: str) -> str:
    """Return what this machine, or this user, lacks for a disk of its own; mostly nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with BadDisk(Path(folder), kind=kind):
                return ""
        except NoDisk as missing:
            return str(missing)


@pytest.fixture(autouse=True)
def needs_disks(request):
    """What is missing is told by the summary."""
    given = getattr(request.node, "callspec", None)
    if missing := missing_part("ext4" if given is None else given.params.get("kind", "ext4")):
        pytest.skip(missing)


class Load:
    """A worker's journal on a disk that goes bad under it; `said` is what callers were told."""

    def __init__(
        self, disk: BadDisk, folder: Path, seconds: float, attempts: int, way: str = "kernel"
    ) -> None:
        self.journal, self._said = disk.place / "journal", folder / "said"
        words = [str(self.journal), str(self._said), str(seconds), str(attempts), "64", way]
        self._process = subprocess.Popen(
            [sys.executable, str(LOAD), *words], stderr=subprocess.PIPE, text=True
        )

    def until(self, word: str, count: int) -> None:
        """Wait until callers were told a word so often."""
        deadline_s = time.monotonic() + LONG_S
        while len(self.said(word)) < count and self._process.poll() is None:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)

    def said(self, word: str) -> dict[int, float]:
        return read_said(self._said, word) if self._said.exists() else {}

    def end(self) -> int:
        _, errors = self._process.communicate(timeout=60)
        assert errors == ""
        return self._process.returncode


@pytest.mark.parametrize("way", ["kernel", "thread", "calls"])
def test_what_was_acknowledged_is_there_after_a_power_cut(tmp_path, way) -> None:
    found = play_power_cuts(tmp_path, attempts=120, share=0.5, way=way)
    assert (found.lost, found.faults, found.told) == (0, [], 0)
    assert found.acknowledged == 120
    assert found.cuts > 20


def test_control_a_file_system_that_never_flushes_loses_what_was_acknowledged(tmp_path) -> None:
    found = play_power_cuts(tmp_path, attempts=120, options="nobarrier")
    assert found.lost > 100


@pytest.mark.parametrize("way", ["kernel", "thread", "calls"])
@pytest.mark.parametrize("fault", ["write_error", "flush_error"])
def test_a_disk_with_errors_ends_the_journal_and_no_process(tmp_path, fault, way) -> None:
    with BadDisk(tmp_path) as disk:
        load = Load(disk, tmp_path, LONG_S, 1_000_000, way)
        load.until("ack", 50)
        disk.faults.order(**{fault: errno.EIO})
        assert load.end() == 0
        told, broken = load.said("ack"), load.said("broken")
        there, _ = read_after_boot(load.journal)  # the file system is read-only by now
    assert broken
    assert set(told) <= there
    assert not set(told) & set(broken)


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_each_mount_of_a_file_system_is_another(tmp_path, kind) -> None:
    with BadDisk(tmp_path, kind=kind) as disk:
        first, again = mount_id(disk.place), mount_id(disk.place)
        disk.remount()
        second = mount_id(disk.place)
    assert first == again
    assert first
    assert second not in ("", first)


def mount_id(place: Path) -> str:
    file = os.open(place, os.O_RDONLY)
    try:
        return read_mount_id(file)
    finally:
        os.close(file)


@pytest.mark.parametrize("way", ["kernel", "calls"])
def test_what_a_failed_disk_may_have_taken_is_told_once_it_is_mounted_anew(
    tmp_path, way, monkeypatch
) -> None:
    """Mark and frames are back at a moment before, and agree. The control: nothing knows mounts."""
    with BadDisk(tmp_path) as disk:
        load = Load(disk, tmp_path, LONG_S, 1_000_000, way)
        load.until("ack", 50)
        disk.faults.order(write_error=errno.EIO)
        assert load.end() == 0
        disk.faults.order()
        disk.remount()
        reader, since = JournalReader(load.journal), JournalOffset()
        (journal,) = reader.journals()
        while (chunk := reader.read(journal, since)).after != since:
            since = chunk.after
        told = reader.lost_tail(journal, since)
        monkeypatch.setattr(journal_reader, "read_mount_id", lambda _file: "")
        unknown = reader.lost_tail(journal, since)
    assert told is not None
    assert (told.after, told.missing) == (since.sequence - 1, None)
    assert "mounted anew" in told.reason
    assert unknown is None or "mounted anew" not in unknown.reason


@pytest.mark.parametrize(
    ("kind", "way"),
    [("ext4", "kernel"), ("ext4", "thread"), ("ext4", "calls"), ("btrfs", "kernel")],
)
def test_a_full_disk_refuses_and_keeps_room_for_ends(tmp_path, kind, way) -> None:
    """On Btrfs a store into a mapped mark ended the process by SIGBUS."""
    with BadDisk(tmp_path, kind=kind) as disk:
        load = Load(disk, tmp_path, LONG_S, 1_000_000, way)
        load.until("ack", 20)
        fill(disk.place / "filler")
        load.until("no", 50)
        fill(disk.place / "more")
        (disk.place / "filler").unlink()
        refused = len(load.said("ack"))
        load.until("ack", refused + 20)
        assert load.said("no")
        load._process.send_signal(signal.SIGKILL)
        assert load.end() == -signal.SIGKILL
        opened, told = set(load.said("open")), set(load.said("ack"))
        there, found = read_after_boot(load.journal)
    assert told <= there
    assert len(opened - told) <= 8, "under way as it was killed"
    assert found == 0


def test_a_slow_disk_delays_and_loses_nothing(tmp_path) -> None:
    with BadDisk(tmp_path) as disk:
        load = Load(disk, tmp_path, 60, 60)
        load.until("ack", 10)
        disk.faults.order(write_delay_us=1_000, flush_delay_us=50_000)
        assert load.end() == 0
        there, found = read_after_boot(load.journal)
    assert set(load.said("ack")) == there == set(range(1, 61))
    assert found == 0


def fill(path: Path) -> None:
    """To the last byte that one can write."""
    with path.open("ab", buffering=0) as filler:
        for size in (1024 * 1024, 4096, 1):
            try:
                while True:
                    filler.write(os.urandom(size) if size > 1 else b"x")
            except OSError:
                continue
