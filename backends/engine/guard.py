"""Stands between a supervisor and an engine, so that the engine's processes end with either.

An engine is a tree: server, core, workers. This script starts it in a session of its own, becomes
the reaper of every descendant, and ends only when the last of them is gone. If its own parent
dies, even by SIGKILL, Linux sends it SIGHUP and it kills the tree. If it is killed itself, nobody
reaps: so it keeps a record of the tree, by which its parent ends what is left then, and the next
start does where the parent was killed too (`leftovers`). Asked to end (SIGTERM) it asks the
engine, and kills what is left after the grace. The engine's output goes to a log that rotates.

A script on purpose, standard library only: `python -I -S guard.py ... -- COMMAND`. One thread, so
that a call between fork and exec is safe.
"""

import argparse
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

_SET_PDEATHSIG, _SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_POLL_S = 0.5
_TRACKER, _TRACKER_S = b"from multiprocessing.resource_tracker import main", 2.0
_RECORD_S = 1.0


def main(arguments: list[str]) -> int:
    """Run the command to its end; its exit code, 128 + N for signal N, is ours."""
    given = _parse(arguments)
    libc = ctypes.CDLL(None)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    libc.prctl(_SET_PDEATHSIG, signal.SIGHUP)
    libc.prctl(_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != given.parent:
        return 128 + signal.SIGHUP
    log = RotatingLog(given.log, given.log_bytes)
    try:
        engine = subprocess.Popen(  # noqa: S603  (the supervisor's command)
            given.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=lambda: libc.prctl(_SET_PDEATHSIG, signal.SIGKILL),  # noqa: PLW1509  (no threads)
        )  # fmt: skip
    except OSError as error:
        log.write(f"{error}\n".encode())
        return 127
    code = _watch(engine, given, wake_read, log)
    kill_descendants()
    given.tree.unlink(missing_ok=True)
    return code if code >= 0 else 128 - code


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--log-bytes", type=int, default=8 << 20)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    given.tree = given.tree or given.log.with_name(given.log.name + ".tree")
    return given


def _watch(
    engine: subprocess.Popen[bytes], given: argparse.Namespace, wake: int, log: "RotatingLog"
) -> int:
    """Copy output and act on signals until the engine's first process has ended."""
    assert engine.stdout is not None
    output = engine.stdout.fileno()
    sources = [output, wake]
    deadline: float | None = None
    record = GuardFile(given.tree)
    while (code := engine.poll()) is None:
        record.update_record()
        ready, _, _ = select.select(sources, [], [], _POLL_S)
        if output in ready:
            chunk = os.read(output, 1 << 16)
            log.write(chunk)
            if not chunk:
                sources.remove(output)
        signals = os.read(wake, 64) if wake in ready else b""
        if deadline is None and (signal.SIGTERM in signals or signal.SIGINT in signals):
            deadline = time.monotonic() + given.grace
            engine.terminate()
        orphaned = signal.SIGHUP in signals or os.getppid() != given.parent
        if orphaned or (deadline is not None and time.monotonic() > deadline):
            code = kill_descendants().get(engine.pid, -signal.SIGKILL)
            break
        if len(sources) == 1:
            time.sleep(0.01)  # output closed, process not yet gone
    os.set_blocking(output, False)
    _drain(output, log)
    return code


def _drain(output: int, log: "RotatingLog") -> None:
    try:
        while chunk := os.read(output, 1 << 16):
            log.write(chunk)
    except BlockingIOError:
        return


def kill_descendants() -> dict[int, int]:
    """Kill the tree below this process until nothing is left. Return exit codes by id.

    Python's trackers of shared memory go last: each ends by itself when nobody lives whose memory
    it has to give back, and what it does not give back stays until the machine is started anew.
    """
    codes: dict[int, int] = {}
    patience_s = time.monotonic() + _TRACKER_S
    while True:
        spared = time.monotonic() < patience_s
        for pid in descendants(os.getpid()):
            if spared and _is_tracker(pid):
                continue
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])
        except ChildProcessError:
            return codes
        time.sleep(0.01)


def _is_tracker(pid: int) -> bool:
    try:
        return _TRACKER in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


class ProcessIdentity(NamedTuple):
    """The identity of a process: its id and its start, in ticks since boot."""

    parent: int
    session: int
    start: int
    is_gone: bool


def processes() -> dict[int, ProcessIdentity]:
    """Return every process that can be seen."""
    found: dict[int, ProcessIdentity] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208  (names only; one call)
        if not entry.isdigit():
            continue
        try:
            stat = Path("/proc", entry, "stat").read_bytes()
        except OSError:
            continue
        # The second field is a name in brackets that may itself hold brackets and spaces.
        fields = stat.rpartition(b")")[2].split()
        is_gone = fields[0] in (b"Z", b"X")
        found[int(entry)] = ProcessIdentity(
            int(fields[1]), int(fields[3]), int(fields[19]), is_gone
        )
    return found


def descendants(root: int, among: dict[int, ProcessIdentity] | None = None) -> list[int]:
    """Return every process below `root`, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, process in (processes() if among is None else among).items():
        children.setdefault(process.parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class GuardFile:
    """The guard and those below it, by id, start and session; for who finds them without it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._boot = boot_id()
        self._written = ""
        self._due_s = 0.0

    def update_record(self) -> None:
        """Write it when it has changed; looks once in a while."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + _RECORD_S
        seen, own = processes(), os.getpid()
        tree = (own, *descendants(own, seen))
        lines = (f"{pid} {seen[pid].start} {seen[pid].session}" for pid in tree)
        text = "\n".join((self._boot, *lines))
        if text == self._written:
            return
        draft = self._path.with_name(self._path.name + ".draft")
        try:
            draft.write_text(text, encoding="ascii")
            draft.replace(self._path)
        except OSError:
            return  # a full disk ends no engine; the next look tries again
        self._written = text


class RotatingLog:
    """Appends to one file; at its limit the file becomes `.1` and a fresh one begins."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, chunk: bytes) -> None:
        if not chunk:
            return  # the end of the output: a full file stays, for its last lines tell the cause
        try:
            if self._size + len(chunk) > self._limit and self._size:
                self._rotate()
            self._size += self._file.write(chunk) or 0
        except OSError:
            return  # a full disk ends no engine: what it says meanwhile is lost

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        with suppress(FileNotFoundError):  # moved before, when there was no room for the next one
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        fresh = self._path.open("wb", buffering=0)
        self._file.close()
        self._file, self._size = fresh, 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
