"""Log files of a host's processes within a size limit: each file and its predecessor.

They hold their files open to append, so a file that is full is copied to `.1` and emptied, not
renamed: a line that is written between the two is lost. Engines' files are their guards' affair.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from gateway.clock import next_tick

LIMIT_BYTES = 8 << 20  # as of an engine's log (`backends.engine.guard`)
EACH_S = 5.0


def rotate(log: Path, limit_bytes: int = LIMIT_BYTES) -> bool:
    """Whether it was full. What cannot be copied (a full disk) is emptied all the same."""
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
    """Until cancelled. `logs` are asked for anew each time: processes come later, too."""
    while True:
        await next_tick(EACH_S)
        await asyncio.to_thread(_rotate_all, tuple(logs()))


def _rotate_all(logs: Iterable[Path]) -> None:
    for log in logs:
        rotate(log)
