"""A single heap for all threads of a process, which limits its memory use.

The C library gives each thread a heap, and memory freed in one is not reused by another: a process
whose work moves between threads grows with each thread.
"""

import ctypes
from collections.abc import Callable
from typing import Any

_M_ARENA_MAX = -8  # glibc's malloc.h; other C libraries have one heap, or no such call


def limit_heaps(library: Callable[[], Any] = lambda: ctypes.CDLL(None)) -> bool:
    """Keep new threads from creating heaps. Return false if the C library cannot do so."""
    try:
        return bool(library().mallopt(_M_ARENA_MAX, 1))
    except (AttributeError, OSError):
        return False
