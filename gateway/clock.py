"""Clock that components receive as an argument: monotonic seconds and UTC wall time.

Durations use monotonic time. Timestamps and time windows use wall time.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOO_SOON = 0.1  # of a period: a nearer tick is the previous one, reached slightly early


def _wall_us() -> int:
    return time.time_ns() // 1000


def _boot() -> str:
    try:
        return _BOOT_ID.read_text(encoding="ascii")
    except OSError:  # not Linux
        return ""


@dataclass(frozen=True, slots=True)
class Clock:
    """Monotonic time `now_s` and UTC wall time `wall_us`.

    `now_s` is comparable between processes of one host. `boot` returns an id of the boot from which
    `now_s` counts, or an empty string where the system has none.
    """

    now_s: Callable[[], float] = time.monotonic
    wall_us: Callable[[], int] = _wall_us
    boot: Callable[[], str] = _boot


def moment_text(at_us: int) -> str:
    """Format a UTC timestamp in microseconds as ISO 8601 with whole seconds."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="seconds")


async def next_tick(period_s: float, phase_s: float = 0.0) -> None:
    """Sleep until the event loop's time is a multiple of the period plus the phase.

    Periodic tasks that wait with this function wake the process together. A separate timer per task
    costs an idle process more CPU than most of the tasks. A sleep lasts 0.1 to 1.1 periods.
    """
    if period_s <= 0.0:
        await asyncio.sleep(0)
        return
    left_s = period_s - (asyncio.get_running_loop().time() - phase_s) % period_s
    await asyncio.sleep(left_s if left_s > _TOO_SOON * period_s else left_s + period_s)
