"""What a host's sampling last found of each pool: counts and shares, no prompt and no answer.

A file in the run directory, as upkeep's: it is of this host, and of the window that stands.
"""

from pathlib import Path

import msgspec

DRIFT_FILE = "drift.json"


class DriftNote(msgspec.Struct, frozen=True):
    """Of one pool. `differ`: the share of tokens where it would write another than its baseline.

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
    """At once for every reader: never half of it."""
    draft = run_dir / f"{DRIFT_FILE}.new"
    draft.write_bytes(msgspec.json.encode(notes))
    draft.replace(run_dir / DRIFT_FILE)


def read_drift(run_dir: Path) -> dict[str, DriftNote]:
    """By pool; empty where nothing is sampled."""
    try:
        found = msgspec.json.decode((run_dir / DRIFT_FILE).read_bytes(), type=list[DriftNote])
    except FileNotFoundError:
        return {}
    return {note.pool: note for note in found}
