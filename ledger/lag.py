"""How far the books are behind the journals: left by the ledger writer, read by whoever shows it.

A file, for it outlives the writer: what it says then grows old, and that is the news.
"""

from pathlib import Path

import msgspec

LAG_FILE = "ledger.json"


class Lag(msgspec.Struct, frozen=True):
    """How far the books are behind the journals; `away` while the database cannot be written.

    All that lay in the journals at `applied_us` is in the books.
    """

    backlog_bytes: int
    applied_us: int
    away: bool
    quarantined: int


def write_lag(run_dir: Path, lag: Lag) -> None:
    """At once for every reader: never half of it."""
    draft = run_dir / f"{LAG_FILE}.new"
    draft.write_bytes(msgspec.json.encode(lag))
    draft.replace(run_dir / LAG_FILE)


def read_lag(run_dir: Path) -> Lag | None:
    """What the writer of this host last said; None if it never ran here."""
    try:
        return msgspec.json.decode((run_dir / LAG_FILE).read_bytes(), type=Lag)
    except FileNotFoundError:
        return None
