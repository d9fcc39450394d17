"""Processes of a bench: none outlives it, whatever ends it, not even one that is stopped.

Each leads a session of its own, so a signal from the terminal reaches the bench alone, which ends
them in order; and the kernel ends each when the bench is killed.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

PR_SET_PDEATHSIG = 1
ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_LIBC = ctypes.CDLL(None)  # opened ahead: between fork and exec little is safe


def start(
    words: Sequence[str], *, cores: set[int], orphaned: int = signal.SIGKILL, **options: Any
) -> subprocess.Popen[Any]:
    """`orphaned`: the signal that it gets when the bench dies; only SIGKILL ends a stopped one."""

    def before() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, orphaned, 0, 0, 0)
        os.sched_setaffinity(0, cores)

    return subprocess.Popen(
        words,
        start_new_session=True,
        preexec_fn=before,  # noqa: PLW1509  (two system calls, and nothing that takes a lock)
        **options,
    )


def end(process: subprocess.Popen[Any], *, grace_s: float) -> None:
    """SIGTERM, and after the grace SIGKILL; then whatever of its group is left."""
    process.terminate()
    try:
        process.wait(grace_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A signal that would end the bench at once leaves by way of every `finally` instead."""

    def leave(number: int, _frame: Any) -> None:
        for item in ENDINGS:
            signal.signal(item, signal.SIG_IGN)  # a second must not interrupt the ending
        raise SystemExit(128 + number)

    before = {item: signal.signal(item, leave) for item in ENDINGS}
    try:
        yield
    finally:
        for key, handler in before.items():
            signal.signal(key, handler)
