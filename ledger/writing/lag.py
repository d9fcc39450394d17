"""How far the books are behind the journals: left by the writer, read by whoever shows it."""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

LAG_FILE = "ledger.json"


class WriterLag(msgspec.Struct, frozen=True):
    """How far the books are behind the journals; `away` while the database cannot be written.

    All that lay in the journals at `applied_us` is in the books.
    """

    backlog_bytes: int
    applied_us: int
    away: bool
    quarantined: int


def write_lag(run_dir: Path, lag: WriterLag) -> None:
    write_note(run_dir / LAG_FILE, lag)


def read_lag(run_dir: Path) -> WriterLag | None:
    """What the writer of this host last said; None if it never ran here."""
    return read_note(run_dir / LAG_FILE, WriterLag)
