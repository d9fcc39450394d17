"""Memory, temperature and clock slowdowns of the host's GPUs, as the driver reports them.

`nvidia-smi` reads NVML in its own process, so that a hanging driver blocks that process and not the
gateway. Names and bits are those of NVML's header (clocks event reasons).
"""

import asyncio
import subprocess
import time
from contextlib import suppress
from typing import Final

import msgspec

from backends.engine import gpus

# Drivers before 535 know only the second name.
_CLOCKS: Final = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_FIELDS: Final = "index,memory.used,memory.total,temperature.gpu"
_MIB: Final = 20
_LOOK_S: Final = 0.05  # seconds between two polls of the process
_KILL_S: Final = 0.2  # seconds; a kill takes less unless the driver hangs
SLOWDOWNS: Final = {
    "power_cap": 0x4,  # at the board's power limit: usual under full load
    "hardware": 0x8,
    "thermal": 0x20 | 0x40,
    "power_brake": 0x80,
}


class GpuStatus(msgspec.Struct, frozen=True):
    """State of one GPU at one time. Values that the driver does not report are `None`.

    `slowed_by` holds keys of `SLOWDOWNS`: the reasons why clocks are reduced.
    """

    index: str
    memory_used_bytes: int | None
    memory_total_bytes: int | None
    temperature_c: int | None
    slowed_by: tuple[str, ...] | None


class GpuReader:
    """Reader of GPU states, with a timeout for a driver that does not answer."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._asked: subprocess.Popen[bytes] | None = None

    async def read(self) -> list[GpuStatus] | None:
        """Return the GPUs that engines may see, or `None` if the driver does not report them.

        Returns `None` as well while an earlier query still hangs: a process that waits in the
        driver may survive a kill.
        """
        for clocks in _CLOCKS:
            words = gpus.smi_command(f"{_FIELDS},{clocks}")
            if words is None or (self._asked is not None and self._asked.poll() is None):
                return None
            lines = await self._ask(words)
            if lines is None:
                return None
            read = [_parse(line) for line in lines]
            found = [gpu for gpu in read if gpu is not None]
            if found and len(found) == len(read):
                return found
        return None

    async def _ask(self, words: list[str]) -> list[str] | None:
        """Return the command's output lines, or `None` on timeout.

        The output must fit into a pipe.
        """
        end_s = time.monotonic() + self._timeout_s
        process = self._start(words)
        assert process.stdout is not None
        with process.stdout as output:
            try:
                while process.poll() is None:
                    if time.monotonic() > end_s:
                        return None
                    await asyncio.sleep(_LOOK_S)
                return output.read().decode().splitlines()
            finally:
                _end(process)

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        self._asked = subprocess.Popen(  # noqa: S603  (found on PATH, its arguments are no shell's)
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._asked


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the process if it still runs.

    A process that hangs in the driver stays; a later `poll` finds out when it has ended.
    """
    if process.poll() is None:
        process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_KILL_S)


def _parse(line: str) -> GpuStatus | None:
    words = [word.strip() for word in line.split(",")]
    if len(words) != len(_FIELDS.split(",")) + 1 or not words[0].isdecimal():
        return None  # an error text: unknown field or lost GPU
    used, total, temperature = (int(word) if word.isdecimal() else None for word in words[1:4])
    return GpuStatus(
        words[0],
        None if used is None else used << _MIB,
        None if total is None else total << _MIB,
        temperature,
        _reasons(words[4]),
    )


def _reasons(mask: str) -> tuple[str, ...] | None:
    try:
        bits = int(mask, 16)
    except ValueError:
        return None  # [N/A]: this GPU does not report it
    return tuple(reason for reason, of in SLOWDOWNS.items() if bits & of)
