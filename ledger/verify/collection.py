"""Keeps the interpreter's collector from walking rows that are read once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = (50_000, 50, 1000)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Collect a hundredth as often in this block, in all threads of the process.

    Rows make no cycles, and a collection looks at all that are held: it took a third of a proof.
    """
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
