"""Time, passed in: monotonic seconds for durations, wall clock only for stamps and windows."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_TOO_SOON = 0.1  # of a period: a tick that is nearer was the one before, seen a moment early


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


def moment_text(at_us: int) -> str:
    """Return a moment of the wall clock as ISO 8601 in UTC, in whole seconds."""
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="seconds")


async def next_tick(period_s: float, phase_s: float = 0.0) -> None:
    """Sleep until the running loop's time is a multiple of the period plus the phase, in seconds.

    All chores of a process that wait like this wake it together. Each timer that rings alone
    costs an idle process more than most chores do. A sleep lasts 0.1 to 1.1 periods.
    """
    if period_s <= 0.0:
        await asyncio.sleep(0)
        return
    left_s = period_s - (asyncio.get_running_loop().time() - phase_s) % period_s
    await asyncio.sleep(left_s if left_s > _TOO_SOON * period_s else left_s + period_s)
