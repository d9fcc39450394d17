"""Checks of journals: what could not be applied, and where rows may lack, until acknowledged."""

from sqlalchemy import Connection

from ledger.verify.hours import Found
from ledger.writing.findings import open_journal_findings, open_quarantine


def nothing_is_quarantined(connection: Connection) -> Found:
    """Records that could not be applied wait for a person (`ledger acknowledge`)."""
    for finding in open_quarantine(connection):
        yield finding.place, finding.text


def journals_are_whole(connection: Connection) -> Found:
    """No journal was damaged or cut, or somebody has acknowledged it (`ledger acknowledge`)."""
    for finding in open_journal_findings(connection):
        yield finding.place, finding.text
