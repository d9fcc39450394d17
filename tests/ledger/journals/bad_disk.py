"""File systems on disks that fail as they are told to, and what a power cut leaves of one.

`BadDisk` mounts a real file system (ext4, XFS, Btrfs) on a loop device over `fuse_disk`, so that
every block passes through a program. `PowerCuts` replays that program's log: at each boundary what
the disk had made sure of before the next flush ended, and any part of what was written since.
"""

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

from fuse_disk import DiskFaults, DiskWrite, read_log

MIB = 1024 * 1024
BUSY_S = 20.0
MENDED = 1  # e2fsck's status: errors were corrected
MAKERS = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f", "-K"],
    "btrfs": ["mkfs.btrfs", "-q", "-f", "-K"],
}
LEAST_MIB = {"ext4": 24, "xfs": 300, "btrfs": 128}


class NoDisk(Exception):
    """This machine, or this user, cannot have such a disk."""


class DiskImage(NamedTuple):
    """A disk as it was made, and the log of what was written to it since."""

    made: Path
    log: Path


class BadDisk:
    """`with BadDisk(folder) as disk`: `disk.place` is a file system on a disk of its own.

    `options` are of the mount; `nobarrier` is a file system that never asks its disk to flush.
    """

    def __init__(
        self, folder: Path, *, mib: int = 0, kind: str = "ext4", options: str = ""
    ) -> None:
        self._folder, self._kind, self._options = folder / "bad-disk", kind, options
        self.size = (mib or LEAST_MIB[kind]) * MIB
        self.place, self._point = self._folder / "mounted", self._folder / "disk"
        self._image = self._folder / "disk.img"
        self.image = DiskImage(self._folder / "made.img", self._folder / "log")
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.place.mkdir(parents=True)
        self._point.touch()
        make_image(self._image, self.size, self._kind)
        copy_image(self._image, self.image.made)
        orders = self._folder / "orders"
        self.faults = DiskFaults(orders)
        program = Path(__file__).with_name("fuse_disk.py")
        paths = (self._image, self._point, orders, self.image.log)
        self._server = subprocess.Popen(
            [sys.executable, str(program), *map(str, paths)], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self._server.stdout is not None
        assert self._server.stderr is not None
        said = self._server.stdout.readline()
        try:
            if said:
                mount_image(self._point, self.place, self._kind, self._options)
                return self
        except BaseException:
            self.__exit__()
            raise
        raise NoDisk(self._server.stderr.read().strip().splitlines()[-1])

    def remount(self) -> None:
        """Mount what the disk has by now, as a person does after a failure: checked, log replayed.

        Unchecked, ext4 may soon be read-only: what its log had put in place was lost with errors.
        A process that was killed may have its files open for a while after it is listed no more.
        """
        until_s = time.monotonic() + BUSY_S
        while True:
            try:
                run_command(["umount", str(self.place)])
                break
            except NoDisk as refused:
                if "busy" not in str(refused) or time.monotonic() > until_s:
                    raise
                time.sleep(0.1)
        if self._kind == "ext4":
            told = subprocess.run(
                ["e2fsck", "-fy", str(self._point)], check=False, capture_output=True, text=True
            )
            if told.returncode > MENDED:
                raise NoDisk(f"e2fsck: {told.stdout[-300:]}")
        mount_image(self._point, self.place, self._kind, self._options)

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "faults"):
            self.faults.order()
        for place in (self.place, self._point):  # a failed disk's mount does not even say it is one
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True)
        if self._server is not None:
            self._server.terminate()
            self._server.communicate()


class PowerCut(NamedTuple):
    """The disk after the power failed at `until_s`: what was acknowledged before must be there."""

    name: str
    until_s: float
    image: Path


class PowerCuts:
    """What power cuts leave of a disk, by the log of its writes."""

    def __init__(self, disk: DiskImage, seed: int = 1) -> None:
        self._made, self._seed = disk.made, seed
        self.entries = list(read_log(disk.log))
        self.flushes = [place for place, each in enumerate(self.entries) if each.is_flush]

    def each(
        self, *, share: float = 1.0, since_s: float = 0.0, parts: int = 1, part: int = 0
    ) -> Iterator[PowerCut]:
        """Yield cuts just before the end of each flush: with nothing, all, or some of its writes.

        `share` of the boundaries, behind `since_s`; of `parts` that are played at once, `part`.
        """
        kept, work = (self._made.with_name(f"{name}-{part}.img") for name in ("base", "cut"))
        dice = random.Random(self._seed)
        copy_image(self._made, kept)
        bounds = [*self.flushes, len(self.entries)]
        with kept.open("r+b") as base:
            durable = 0
            for number, bound in enumerate(bounds):
                since = bounds[number - 1] if number else 0
                write_all(base, self.entries[durable:since])
                durable = since
                late = self.entries[since:bound]
                until_s = self._time_at(bound)
                if until_s < since_s or dice.random() >= share or number % parts != part:
                    continue
                base.flush()
                for name, chosen in _choose([each for each in late if not each.is_flush], number):
                    copy_image(kept, work)
                    with work.open("r+b") as image:
                        write_all(image, chosen)
                    yield PowerCut(f"flush {number}, {name}", until_s, work)

    def _time_at(self, bound: int) -> float:
        return self.entries[bound].at_s if bound < len(self.entries) else float("inf")


def _choose(late: list[DiskWrite], seed: int) -> Iterator[tuple[str, list[DiskWrite]]]:
    yield "nothing behind it", []
    if late:
        yield f"all {len(late)} writes behind it", late
    if len(late) > 1:
        dice = random.Random(seed)
        some = [each for each in late if dice.random() < 0.5]
        dice.shuffle(some)
        yield f"{len(some)} of {len(late)} writes behind it, in any order", some


@contextmanager
def mounted_image(image: Path, kind: str = "ext4", place: Path | None = None) -> Iterator[Path]:
    """Mount what a cut left, as the next boot does; the file system's own log is replayed.

    `place`: where it is mounted, if not beside the image.
    """
    place = place or image.with_suffix(".mounted")
    place.mkdir(exist_ok=True)
    mount_image(image, place, kind, "nouuid" if kind == "xfs" else "")
    try:
        yield place
    finally:
        run_command(["umount", str(place)])


def make_image(path: Path, size: int, kind: str) -> None:
    with path.open("wb") as file:
        file.truncate(size)
    if shutil.which(MAKERS[kind][0]) is None:
        raise NoDisk(f"{MAKERS[kind][0]} is missing")
    run_command([*MAKERS[kind], str(path)])


def mount_image(image: Path, place: Path, kind: str, options: str) -> None:
    wanted = ",".join(["loop", *([options] if options else [])])
    run_command(["mount", "-t", kind, "-o", wanted, str(image), str(place)])


def write_all(image, writes: list[DiskWrite]) -> None:
    for each in writes:
        if not each.is_flush:
            image.seek(each.offset)
            image.write(each.read())


def run_command(words: list[str]) -> None:
    """Raise `NoDisk` where a command is missing or refused."""
    try:
        told = subprocess.run(words, check=False, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NoDisk(f"{words[0]} is missing") from error
    if told.returncode:
        raise NoDisk(f"{' '.join(words)}: {told.stderr.strip()}")


def copy_image(image: Path, copy: Path) -> None:
    """What was never written takes no room and no time."""
    run_command(["cp", "--sparse=auto", str(image), str(copy)])
