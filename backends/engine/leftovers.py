"""Cleanup of an engine whose guard was killed, so that nobody reaps its processes.

The guard's record names the processes by id and start time, so that another process with a reused
id is never killed. Processes younger than the record are found as descendants or by session: an
engine creates processes but no sessions. A record from before a reboot is ignored.
"""

import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

from backends.engine.guard import ProcessIdentity, boot_id, descendants, processes

PATIENCE_S = 30.0  # seconds; a process in a GPU driver dies late
_POLL_S = 0.02


class GuardRecord(NamedTuple):
    start: int
    session: int


def kill_leftovers(tree: Path, *, died_now: bool = False) -> list[int]:
    """Kill the processes of a record and wait until they end. Return those that remain.

    `tree` is the guard's record. `died_now` says that the guard has just ended, so that the
    sessions in its record belong to the engine even if none of the recorded processes lives.
    """
    recorded = _read(tree)
    if not recorded:
        tree.unlink(missing_ok=True)
        return []
    ours = {pid: record.start for pid, record in recorded.items()}
    outside = next(iter(recorded.values())).session  # the guard's session; the engine has another
    sessions = {record.session for record in recorded.values()} - {outside} if died_now else set()
    deadline_s = time.monotonic() + PATIENCE_S
    while left := _surviving_pids(ours, sessions, outside):
        if time.monotonic() > deadline_s:
            return left
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_POLL_S)
    tree.unlink(missing_ok=True)
    return []


def _surviving_pids(ours: dict[int, int], sessions: set[int], outside: int) -> list[int]:
    """Return the live processes of the record, their descendants and their sessions.

    Adds the found processes to `ours` and their sessions to `sessions`.
    """
    seen = processes()
    first = min(ours.values())
    proved = [pid for pid, start in ours.items() if pid in seen and seen[pid].start == start]
    sessions.update({seen[pid].session for pid in proved} - {outside})
    below = [pid for root in proved for pid in descendants(root, seen)]
    inside = [
        pid for pid, event in seen.items() if event.session in sessions and event.start >= first
    ]
    found = {*proved, *below, *inside} - {os.getpid()}
    ours.update((pid, seen[pid].start) for pid in found)
    return [pid for pid in sorted(found) if _lives(seen[pid])]


def _lives(process: ProcessIdentity) -> bool:
    return not process.is_gone


def _read(tree: Path) -> dict[int, GuardRecord]:
    try:
        boot, *lines = tree.read_text(encoding="ascii").splitlines()
        rows = [tuple(map(int, line.split())) for line in lines]
        found = {pid: GuardRecord(start, session) for pid, start, session in rows}
    except (OSError, ValueError):
        return {}
    return found if boot == boot_id() else {}
