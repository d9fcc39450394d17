"""Latest GPU status from the driver, stored in the run directory for workers to show.

The file is not removed when the driver stops answering; its timestamp then shows its age.
"""

from pathlib import Path

import msgspec

from backends.engine.gpu_status import GpuStatus
from ledger.host_notes import read_note, write_note

GPU_FILE = "gpus.json"


class GpuNote(msgspec.Struct, frozen=True):
    """GPU status of this host at `at_us`, in microseconds since the epoch."""

    at_us: int
    gpus: list[GpuStatus]


def write_gpus(run_dir: Path, note: GpuNote) -> None:
    write_note(run_dir / GPU_FILE, note)


def forget_gpus(run_dir: Path) -> None:
    """Remove the file of an earlier run, so that GPUs that were removed raise no alert."""
    (run_dir / GPU_FILE).unlink(missing_ok=True)


def read_gpu_note(run_dir: Path) -> GpuNote | None:
    """Return the latest GPU status; `None` if no engine of this host has a GPU."""
    return read_note(run_dir / GPU_FILE, GpuNote)
