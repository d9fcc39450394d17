"""What this host's runner does: left by it in a file, shown by every worker's `/metrics`."""

from pathlib import Path

import msgspec

from ledger.runnotes import find, leave

PROGRESS_FILE = "batches.json"


class Progress(msgspec.Struct, frozen=True):
    """`batches` and `lines` are open in the database; the rest is this runner's, since it began."""

    batches: int
    lines: int
    out: int
    ok: int
    failed: int
    again: int


def write_progress(run_dir: Path, progress: Progress) -> None:
    leave(run_dir / PROGRESS_FILE, progress)


def read_progress(run_dir: Path) -> Progress | None:
    """`None` where no runner ever ran."""
    return find(run_dir / PROGRESS_FILE, Progress)
