"""What this host's runner does: left by it in a file, shown by every worker's `/metrics`."""

from pathlib import Path

import msgspec

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
    """At once for every reader: never half of it."""
    draft = run_dir / f"{PROGRESS_FILE}.new"
    draft.write_bytes(msgspec.json.encode(progress))
    draft.replace(run_dir / PROGRESS_FILE)


def read_progress(run_dir: Path) -> Progress | None:
    """`None` where no runner ever ran."""
    try:
        return msgspec.json.decode((run_dir / PROGRESS_FILE).read_bytes(), type=Progress)
    except FileNotFoundError:
        return None
