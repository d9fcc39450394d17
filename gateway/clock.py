"""Time, passed in: monotonic seconds for durations, wall clock only for stamps and windows."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _wall_us() -> int:
    return time.time_ns() // 1000


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii")
    except OSError:  # no Linux
        return ""


@dataclass(frozen=True, slots=True)
class Clock:
    """`now_s` is monotonic and comparable between processes of a host; `wall_us` is UTC.

    `boot` names what `now_s` counts from, and is empty where the system does not say.
    """

    now_s: Callable[[], float] = time.monotonic
    wall_us: Callable[[], int] = _wall_us
    boot: Callable[[], str] = _boot
