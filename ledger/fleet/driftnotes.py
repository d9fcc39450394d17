"""The last drift results of a host by pool: counts and shares, without text of requests.

They are stored in a file of the run directory, for this host and the current window.
"""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

DRIFT_FILE = "drift.json"


class DriftNote(msgspec.Struct, frozen=True):
    """The drift result of one pool. `differ` is the share of tokens unlike its baseline's.

    `low` and `high` are its interval. All three are `None` while too few tokens were compared. `kl`
    is in nats per token.
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
    """Return the notes by pool; empty if nothing is sampled."""
    return {note.pool: note for note in read_note(run_dir / DRIFT_FILE, list[DriftNote]) or ()}
