"""Thread pool of a worker, started before it serves requests.

Threads can block all streams in two ways. Starting a thread waits until it runs: 5 to 70 ms on a
busy machine (traced, 2026-11-27). A computing thread keeps the interpreter for a switch interval, 5
ms by Python's default.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

SWITCH_S = 0.0005
MOST = 32


def share_interpreter() -> None:
    """Set the interpreter's switch interval to `SWITCH_S`."""
    sys.setswitchinterval(SWITCH_S)


def start_threads(count: int | None = None) -> ThreadPoolExecutor:
    """Return an executor whose threads all run; by default as many as Python's maximum."""
    count = count or min(MOST, (os.cpu_count() or 1) + 4)
    executor = ThreadPoolExecutor(count, thread_name_prefix="worker")
    together = Barrier(count + 1)  # keeps all threads busy until each has started
    for _ in range(count):
        executor.submit(together.wait)
    together.wait()
    return executor
