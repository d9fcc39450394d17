"""Leaves what the driver last told about this host's GPUs for workers to show.

A file in the run directory, as drift's: where the driver no longer answers, it grows old.
"""

from pathlib import Path

import msgspec

from backends.engine.gpu_status import GpuStatus
from ledger.host_notes import read_note, write_note

GPU_FILE = "gpus.json"


class GpuNote(msgspec.Struct, frozen=True):
    """`at_us`: when the driver answered, in microseconds of the epoch."""

    at_us: int
    gpus: list[GpuStatus]


def write_gpus(run_dir: Path, note: GpuNote) -> None:
    write_note(run_dir / GPU_FILE, note)


def forget_gpus(run_dir: Path) -> None:
    """Remove what an earlier host left: its GPUs may be gone, and no alert is to come of that."""
    (run_dir / GPU_FILE).unlink(missing_ok=True)


def read_gpu_note(run_dir: Path) -> GpuNote | None:
    """Return it; `None` where no engine of this host has a GPU."""
    return read_note(run_dir / GPU_FILE, GpuNote)
