"""One heap for all threads of a process that is to keep its size.

The C library gives each thread a heap of its own, and what a burst of work took from one is never
taken from another: a process whose work wanders between threads grows with each of them.
"""

import ctypes
from collections.abc import Callable
from typing import Any

_M_ARENA_MAX = -8  # glibc's malloc.h; other C libraries have one heap, or no such call


def limit_heaps(library: Callable[[], Any] = lambda: ctypes.CDLL(None)) -> bool:
    """From here on no thread begins a heap of its own; False where the C library cannot say so."""
    try:
        return bool(library().mallopt(_M_ARENA_MAX, 1))
    except (AttributeError, OSError):
        return False
