"""The last findings of a host's sampling by pool: counts and shares, no text.

A file in the run directory, as upkeep's: it is of this host, and of the window that stands.
"""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

DRIFT_FILE = "drift.json"


class DriftNote(msgspec.Struct, frozen=True):
    """The finding of one pool. `differ`: the share of tokens that differ from its baseline.

    `low`, `high`: its interval. All `None` while too few were compared. `kl`: nats a token.
    """

    pool: str
    baseline: str
    at_us: int
    limit: float
    compared: int
    in_window: int
    let_go: int
    failed: int
    differ: float | None = None
    low: float | None = None
    high: float | None = None
    kl: float | None = None
    drifts: bool = False


def write_drift(run_dir: Path, notes: list[DriftNote]) -> None:
    write_note(run_dir / DRIFT_FILE, notes)


def read_drift(run_dir: Path) -> dict[str, DriftNote]:
    """By pool; empty where nothing is sampled."""
    return {note.pool: note for note in read_note(run_dir / DRIFT_FILE, list[DriftNote]) or ()}
