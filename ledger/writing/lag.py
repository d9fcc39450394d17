"""The lag of the database behind the journals, published as a file of the writer."""

from pathlib import Path

import msgspec

from ledger.host_notes import read_note, write_note

LAG_FILE = "ledger.json"


class WriterLag(msgspec.Struct, frozen=True):
    """The lag of the database behind the journals; `away` if the database cannot be written.

    All records in the journals at `applied_us` are in the database. `findings` counts
    unacknowledged places in journals of all hosts where rows may be missing: their cost is at most
    `lacking_pusd`, and unknown for `unbounded` of them. `stalled` says why a journal of this host
    cannot be read further.
    """

    backlog_bytes: int
    applied_us: int
    away: bool
    quarantined: int
    findings: int = 0
    lacking_pusd: int = 0
    unbounded: int = 0
    stalled: str | None = None


def write_lag(run_dir: Path, lag: WriterLag) -> None:
    write_note(run_dir / LAG_FILE, lag)


def read_lag(run_dir: Path) -> WriterLag | None:
    """Return the last lag of this host's writer, `None` if it never ran here."""
    return read_note(run_dir / LAG_FILE, WriterLag)
