"""Polling of the GPU driver while this host's engines are supervised."""

from pathlib import Path

from backends.engine.gpu_status import GpuReader
from gateway.clock import Clock, next_tick
from gateway.fleet.gpu_notes import GpuNote, write_gpus

EVERY_S = 15.0
LIMIT_S = 10.0  # timeout; the driver of a GPU that fell off its bus may never answer


async def watch_gpus(run_dir: Path, clock: Clock, every_s: float = EVERY_S) -> None:
    """Write a note after every answer of the driver. Without an answer the old note remains."""
    reader = GpuReader(LIMIT_S)
    while True:
        gpus = await reader.read()
        if gpus is not None:
            write_gpus(run_dir, GpuNote(clock.wall_us(), gpus))
        await next_tick(every_s)
