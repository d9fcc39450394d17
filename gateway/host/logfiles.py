"""Log rotation of a host's processes: each file and one predecessor, within a size limit.

Processes keep their files open for appending, so a full file is copied to `.1` and truncated; a
line written between the two is lost. Engine logs are rotated by their guards.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from gateway.clock import next_tick

LIMIT_BYTES = 8 << 20  # as of an engine's log (`backends.engine.guard`)
EACH_S = 5.0


def rotate(log: Path, limit_bytes: int = LIMIT_BYTES) -> bool:
    """Rotate a full file. Return whether it was full. It is truncated even if copying fails."""
    if not log.exists() or log.stat().st_size <= limit_bytes:
        return False
    part = log.with_name(log.name + ".part")
    try:
        shutil.copyfile(log, part)
        part.replace(log.with_name(log.name + ".1"))
    except OSError:
        part.unlink(missing_ok=True)
    with log.open("r+b") as file:
        file.truncate()
    return True


async def rotate_forever(logs: Callable[[], Iterable[Path]]) -> None:
    """Rotate until cancelled. `logs` is called each time, because processes may be added."""
    while True:
        await next_tick(EACH_S)
        await asyncio.to_thread(_rotate_all, tuple(logs()))


def _rotate_all(logs: Iterable[Path]) -> None:
    for log in logs:
        rotate(log)
