"""Process between supervisor and engine that ends all of the engine's processes.

An engine is a tree of processes: server, core, workers. The guard starts it in its own session,
reaps every descendant, and ends when the last one is gone. If the supervisor dies, even by SIGKILL,
Linux sends SIGHUP and the guard kills the tree. If the guard is killed, `leftovers` uses its record
of the tree to end the rest. On SIGTERM it asks the engine to stop, and kills it after the grace
period. The engine's output goes to a rotating log. The guard is a script of the standard library
(`python -I -S guard.py ... -- COMMAND`) with one thread, which keeps fork safe.
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
    """Run the command to its end. Return its exit code, or 128 + N for signal N."""
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
    """Copy output and handle signals until the engine's first process ends. Return its code."""
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
    """Kill all processes below this one until none is left. Return exit codes by process id.

    Python's shared memory trackers are killed last, after a delay. Each ends by itself when no
    process uses its memory, and memory that it does not release stays until a reboot.
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
    """Identity of a process: parent, session, and start time in ticks since boot."""

    parent: int
    session: int
    start: int
    is_gone: bool


def processes() -> dict[int, ProcessIdentity]:
    """Return every visible process by its id."""
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
    """Return the ids of every process below `root`, parents before children."""
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
    """Record of the guard and its descendants: id, start and session of each process.

    `leftovers` reads it after the guard was killed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._boot = boot_id()
        self._written = ""
        self._due_s = 0.0

    def update_record(self) -> None:
        """Write the record if it changed. Checks at most once in `_RECORD_S` seconds."""
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
            return  # full disk: the engine runs on, and the next update tries again
        self._written = text


class RotatingLog:
    """Log file that is renamed to `.1` at its size limit and started again."""

    def __init__(self, path: Path, limit_bytes: int) -> None:
        self._path = path
        self._limit = limit_bytes
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, chunk: bytes) -> None:
        if not chunk:
            return  # end of output: no rotation, so that the log ends with the cause
        try:
            if self._size + len(chunk) > self._limit and self._size:
                self._rotate()
            self._size += self._file.write(chunk) or 0
        except OSError:
            return  # full disk: the engine runs on, and this output is lost

    def close(self) -> None:
        self._file.close()

    def _rotate(self) -> None:
        with suppress(FileNotFoundError):  # renamed earlier, when the disk was full
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        fresh = self._path.open("wb", buffering=0)
        self._file.close()
        self._file, self._size = fresh, 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
