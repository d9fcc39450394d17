"""Folders of journals by format, one for each process, with a lock that the process holds.

Format 1 is in the journal directory itself (`NAME/owner`, `*.journal`), format 2 in its folder `v2`
(`NAME/holder`, `*.segment`). A version that knows only format 1 does not see `v2`, so it deletes
nothing there. Later formats get their own folders; a version that does not know one refuses to
start while it contains journals (`later_journals`).
"""

import errno
import fcntl
import os
import re
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ledger.journals.layout import HEADER_BYTES, parse_header
from ledger.journals.mark import WriteMark
from ledger.locks import is_locked
from ledger.presence import is_there

FOLDER = "v2"
DAMAGED = "damaged"  # copies of segments in which something was wrong: `ledger salvage` reads them
HOLDER_FILE = "holder"
OWNER_FILE = "owner"  # of format 1
RESERVE_FILE = "reserve"
_WRITTEN = 2  # the format that live journals have
_SUFFIXES = {1: ".journal", 2: ".segment"}
_SEGMENTS = {
    number: re.compile("[0-9]{12}" + re.escape(suffix)) for number, suffix in _SUFFIXES.items()
}
_NAME = re.compile(r".+-[0-9a-f]{16}", re.DOTALL)  # of a worker's process
_LATER = re.compile(r"v([0-9]+)")


@dataclass(frozen=True, slots=True)
class JournalSource:
    """A journal on disk.

    `name` identifies it in the ledger: the worker's name and a process id.
    """

    name: str
    worker: str
    home: Path
    format: int = 2

    @property
    def lock(self) -> Path:
        return self.home / (OWNER_FILE if self.format == 1 else HOLDER_FILE)


def list_journals(directory: Path, known: Container[str] = ()) -> list[JournalSource]:
    """Return every journal, those of format 1 first, as they are older. Raises `OSError`.

    A folder that is not a journal, such as a person's copy of one, is left alone; `copies` lists
    its segments. Folders in `known` were journals before and are not read again: a journal's name
    is never used twice.
    """
    others = {FOLDER, DAMAGED}
    old = [
        home
        for home in sorted(_folders(directory))
        if home.name not in others and is_there(home / OWNER_FILE)
    ]
    folders = sorted(_folders(directory / FOLDER))
    new = [home for home in folders if home.name in known or _is_journal(home)]
    homes = [*((home, 1) for home in old), *((home, 2) for home in new)]
    return [
        JournalSource(home.name, home.name.rpartition("-")[0], home, number)
        for home, number in homes
    ]


def later_journals(directory: Path) -> list[Path]:
    """Return folders with journals in formats that this version cannot read."""
    later = []
    for folder in _folders(directory):
        known = _LATER.fullmatch(folder.name)
        if known is not None and int(known[1]) > max(_SUFFIXES) and any(_folders(folder)):
            later.append(folder)
    return sorted(later)


def has_owner(journal: JournalSource) -> bool:
    """Return whether a live process holds the journal; its locks end with the process.

    The process holds the lock file and its newest segment, so one of them may be deleted. Raises
    `OSError`.
    """
    if is_locked(journal.lock):
        return True
    looked: Path | None = None
    while journal.format != 1 and (files := segments(journal)) and files[-1] != looked:
        looked = files[-1]
        if is_locked(looked):
            return True
    return False


def segments(journal: JournalSource) -> list[Path]:
    """Return a journal's segments, oldest first, without foreign files."""
    return _segments(journal.home, journal.format)


def number_of(segment: Path) -> int:
    return int(segment.name.partition(".")[0])


def segment_path(home: Path, number: int) -> Path:
    return home / f"{number:012d}{_SUFFIXES[2]}"


def segments_of_worker(directory: Path, worker: str) -> dict[Path, int]:
    """Return the bytes of segments left by earlier processes of this worker, for its limit."""
    kept = {}
    for journal in list_journals(directory):
        for path in segments(journal) if journal.worker == worker else ():
            with suppress(FileNotFoundError):  # applied and deleted since the listing
                kept[path] = max(0, path.stat().st_size - HEADER_BYTES)
    return kept


def make_home(directory: Path, name: str) -> tuple[Path, int, WriteMark]:
    """Create a journal's folder atomically, with its lock held and its mark."""
    folder = directory / FOLDER
    draft, home = folder / f".{name}", folder / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft.mkdir(mode=0o700)
    holder = os.open(draft / HOLDER_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    mark = WriteMark(holder)
    return draft.rename(home), holder, mark


def removed_file(home: Path, holder: int, newest: int) -> str | None:
    """Return which file of a live journal was deleted or moved, so that records would be lost.

    `holder` and `newest` are the open lock file and segment.
    """
    lock = home / HOLDER_FILE
    try:
        is_there = os.path.samestat(lock.stat(), os.fstat(holder))
    except FileNotFoundError:
        is_there = False
    except OSError as error:
        return f"{lock}: {error.strerror}"
    if not is_there:
        return f"{lock} was removed while its worker runs: restart the host"
    if not _is_segment(home, newest):
        return f"{home}: its newest segment was removed while its worker runs: restart the host"
    return None


def _is_segment(home: Path, file: int) -> bool:
    """Return whether the open segment still has its name in the folder.

    Another name does not count: a damaged segment has one (`keep_copy`), and a moved one too.
    """
    own = os.fstat(file)
    for path in _segments(home, _WRITTEN) if own.st_nlink else ():
        with suppress(FileNotFoundError):  # applied and deleted since the listing
            if os.path.samestat(path.stat(), own):
                return True
    return False


def copies(directory: Path) -> list[Path]:
    """Return segments kept by `keep_copy`, then those in people's copies of journals.

    Other files there are ignored. Raises `OSError`.
    """
    named = [pattern.fullmatch for pattern in _SEGMENTS.values()]
    found = []
    others = [home for home in _folders(directory / FOLDER) if not _is_journal(home)]
    for home in [*sorted(_folders(directory / DAMAGED)), *sorted(others)]:
        with os.scandir(home) as entries:
            here = [each for each in entries if any(fits(each.name) for fits in named)]
            found += sorted(Path(each.path) for each in here if each.is_file())
    return found


def sync_directory(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def keep_copy(directory: Path, journal: JournalSource, segment: Path) -> None:
    """Keep a damaged segment under a second name (a hard link) until somebody deletes it.

    On a file system without hard links, the segment is kept until it is applied; its damaged part
    is also in the ledger's quarantine.
    """
    kept = directory / DAMAGED / journal.name
    with suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (kept / segment.name).exists():
            os.link(segment, kept / segment.name)


def _segments(home: Path, number: int) -> list[Path]:
    try:
        entries = os.scandir(home)
    except FileNotFoundError:
        return []
    named = _SEGMENTS[number].fullmatch
    with entries:
        return sorted(Path(each.path) for each in entries if named(each.name) and each.is_file())


def _is_journal(home: Path) -> bool:
    """Return whether a folder is a journal, by its segments or by its name.

    A disk may have lost the lock file or headers, and a person may have added a segment of another
    journal. The name of a copy contains that of the journal in its segments.
    """
    others = set()
    for path in _segments(home, _WRITTEN):
        if (name := _named_by(path)) == home.name:
            return True
        others.add(name or home.name)
    is_copy = any(name != home.name and name in home.name for name in others)
    return not is_copy and _NAME.fullmatch(home.name) is not None


def _named_by(segment: Path) -> str | None:
    try:
        with segment.open("rb") as file:
            header = parse_header(file.read(HEADER_BYTES))
    except FileNotFoundError:  # applied and deleted since the listing
        return None
    return None if header is None else header.journal


def _folders(directory: Path) -> Iterator[Path]:
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            if not entry.name.startswith(".") and _is_folder(entry):
                yield Path(entry.path)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno != errno.ELOOP:  # a link to itself leads to no journal
            raise
        return False
