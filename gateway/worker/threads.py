"""Threads of a worker beside the one that serves: started before it serves.

Two things of threads stop all streams. A thread that is started is waited for until it runs: 5 to
70 ms on a busy machine (traced, 2026-11-27). And a thread that computes keeps the interpreter for
a whole switch interval from whoever wants it, 5 ms as Python has it.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

SWITCH_S = 0.0005
MOST = 32


def share_interpreter() -> None:
    """Let a thread that wants the interpreter have it after `SWITCH_S`."""
    sys.setswitchinterval(SWITCH_S)


def start_threads(count: int | None = None) -> ThreadPoolExecutor:
    """Return an executor whose threads all run: as many as Python's own would start one by one."""
    count = count or min(MOST, (os.cpu_count() or 1) + 4)
    executor = ThreadPoolExecutor(count, thread_name_prefix="worker")
    together = Barrier(count + 1)  # none is idle before all are there
    for _ in range(count):
        executor.submit(together.wait)
    together.wait()
    return executor
