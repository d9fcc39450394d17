"""A context that makes garbage collection rare while many rows are read once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

SELDOM: Final = (50_000, 50, 1000)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Run garbage collection a hundredth as often in this block, in all of the process.

    Rows form no cycles, and a collection visits all of them: it took a third of a verification.
    """
    before = gc.get_threshold()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
