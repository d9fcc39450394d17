"""The stages of a start: each is announced when it begins and timed when it ends.

Standard library only: the bootstrap uses it before anything is installed. The bootstrap passes its
stages on to `breakeven up` and `breakeven demo` in an environment variable, so that one table at
the end tells where the time from clone to first token went.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

VARIABLE = "BREAKEVEN_STAGES"


class StartStages:
    """Collects (title, seconds). `clock` is monotonic; `say` gets one line at a time."""

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
        """Announce and time the block beside others of a stage, which counts for them all."""
        self._say(f"-> {title} ...")
        started_s = self._clock()
        yield
        self._say(f"   {title}: {self._clock() - started_s:.1f} s")

    def table(self) -> list[str]:
        """One line a stage and the sum, seconds first so that they align."""
        total = sum(seconds for _, seconds in self.done)
        return [f"{seconds:8.1f} s  {title}" for title, seconds in (*self.done, ("total", total))]

    def exported(self) -> dict[str, str]:
        """The environment variable for a process that goes on with the same table."""
        return {VARIABLE: json.dumps(self.done)}

    def resume(self, environ: Mapping[str, str]) -> None:
        """Put the stages of the process before this one in front; a damaged value is ignored."""
        try:
            rows = json.loads(environ.get(VARIABLE, "[]"))
            self.done[:0] = [(str(title), float(seconds)) for title, seconds in rows]
        except (TypeError, ValueError):
            return
