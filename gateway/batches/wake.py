"""How a worker tells its host's parent and runner that there is a new batch: a file's time.

Looking costs microseconds, so nobody asks the database ten times a second for what is rare.
"""

from pathlib import Path

WAKE_FILE = "batches.wake"


def wake(run_dir: Path) -> None:
    (run_dir / WAKE_FILE).touch(mode=0o600)


class Bell:
    """`rang()`: whether it was rung since it was asked last."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / WAKE_FILE
        self._heard_ns = self._time_ns()

    def rang(self) -> bool:
        before, self._heard_ns = self._heard_ns, self._time_ns()
        return self._heard_ns != before

    def _time_ns(self) -> int:
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0
