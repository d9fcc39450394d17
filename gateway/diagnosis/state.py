"""Checks of the state directory: its holder, write access, and file system."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from backends.engine.ports import other_listener
from gateway.config.settings import Settings
from gateway.config.statedir import is_held
from gateway.diagnosis.observation import DoctorFinding, failed, fine, noted, warned

LEAST_BYTES = 2 * 1024**3  # journals and SQLite's WAL grow while the database is unavailable
MOUNTS = Path("/proc/self/mounts")
# File systems that lose data at a restart, and those that may not write durably.
VOLATILE = frozenset({"tmpfs", "ramfs"})
REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "ceph", "fuse.s3fs"})
LAYERED = frozenset({"overlay", "aufs"})


def look_at_state(settings: Settings, mounts: Path = MOUNTS) -> Iterator[DoctorFinding]:
    """Yield the findings; creates nothing."""
    state = settings.state.resolve()
    there = next(path for path in (state, *state.parents) if path.exists())
    if not state.exists():
        yield noted("state", f"{state} is not there yet: the first start makes it")
    if not there.is_dir():
        yield failed("state", f"{there} is not a directory", "name another `state_dir`")
        return
    if not os.access(there, os.W_OK | os.X_OK):
        words = f"{there} cannot be written by this user ({os.geteuid()})"
        yield failed("state", words, "run as its owner, or change its owner")
        return
    held = state.exists() and is_held(settings)
    if state.exists():
        words = f"{state}, in use by a running gateway" if held else f"{state}, not in use"
        yield fine("state", words)
    if not held:
        yield _port(settings.server.port)
    yield _file_system(there, mounts)
    free = shutil.disk_usage(there).free
    words = f"{free / 1024**3:.1f} GiB free at {there}"
    if free < LEAST_BYTES:
        yield warned("disk", words, "make room: journals grow while the database is away")
    else:
        yield fine("disk", words)


def _port(port: int) -> DoctorFinding:
    other = other_listener(port) if port else None
    if other is None:
        return fine("port", f"{port} is free" if port else "any free one")
    fix = "end that program, or set another `server.port`"
    return failed("port", f"{other} listens at {port}", fix)


def _file_system(path: Path, mounts: Path) -> DoctorFinding:
    kind = file_system_of(path, mounts)
    if kind is None:
        return noted("file system", "its kind is not known here")
    if kind in VOLATILE:
        fix = "name a `state_dir` on a disk: journals in memory die with the machine"
        return failed("file system", f"{kind} at {path}", fix)
    if kind in REMOTE:
        fix = "name a `state_dir` on a local disk, or on a block device of the cluster"
        words = f"{kind} at {path}: locks and durable writes there are the server's affair"
        return warned("file system", words, fix)
    if kind in LAYERED:
        fix = "mount a volume there: what a container writes beside its volumes goes with it"
        return warned("file system", f"{kind} at {path}", fix)
    return fine("file system", f"{kind} at {path}")


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the file system type of a path; None if unknown."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found: tuple[int, str] | None = None
    for line in lines:
        words = line.split()
        if len(words) < 3:
            continue
        place = Path(words[1].replace("\\040", " "))
        if path == place or place in path.parents:
            depth = len(place.parts)
            if found is None or depth >= found[0]:  # a later mount hides an earlier one
                found = depth, words[2]
    return None if found is None else found[1]
