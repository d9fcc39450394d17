"""Stages of a start, each announced at its beginning and timed at its end.

Standard library only: the bootstrap uses it before anything is installed. The bootstrap passes its
stages to `breakeven up` and `breakeven demo` in an environment variable, so that one table shows
the time from clone to first token.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

VARIABLE = "BREAKEVEN_STAGES"


class StartStages:
    """Recorder of (title, seconds). `clock` is monotonic; `say` is called with one line."""

    def __init__(self, *, clock: Callable[[], float], say: Callable[[str], object]) -> None:
        self.done: list[tuple[str, float]] = []
        self._clock = clock
        self._say = say

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Time the block; a block that raises is not recorded."""
        started_s = self._clock()
        with self.part_of_stage(title):
            yield
        self.done.append((title, self._clock() - started_s))

    @contextmanager
    def part_of_stage(self, title: str) -> Iterator[None]:
        """Announce and time the block as a part of a stage; only the stage is recorded."""
        self._say(f"-> {title} ...")
        started_s = self._clock()
        yield
        self._say(f"   {title}: {self._clock() - started_s:.1f} s")

    def table(self) -> list[str]:
        """Return one line for each stage and for the sum; seconds come first, aligned."""
        total = sum(seconds for _, seconds in self.done)
        return [f"{seconds:8.1f} s  {title}" for title, seconds in (*self.done, ("total", total))]

    def exported(self) -> dict[str, str]:
        """Return the environment variable for a process that continues the table."""
        return {VARIABLE: json.dumps(self.done)}

    def resume(self, environ: Mapping[str, str]) -> None:
        """Prepend the stages of the previous process; a damaged value is ignored."""
        try:
            rows = json.loads(environ.get(VARIABLE, "[]"))
            self.done[:0] = [(str(title), float(seconds)) for title, seconds in rows]
        except (TypeError, ValueError):
            return
