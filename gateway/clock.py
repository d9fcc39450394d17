"""Time, passed in: monotonic seconds for durations, wall clock only for stamps and windows."""

import time
from collections.abc import Callable
from dataclasses import dataclass


def _wall_us() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True, slots=True)
class Clock:
    """`now_s` is monotonic and comparable between processes of a host; `wall_us` is UTC."""

    now_s: Callable[[], float] = time.monotonic
    wall_us: Callable[[], int] = _wall_us
