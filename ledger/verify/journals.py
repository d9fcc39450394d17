"""Checks of journals: unapplied records and possible gaps, until they are acknowledged."""

from sqlalchemy import Connection

from ledger.verify.hours import Found
from ledger.writing.findings import open_journal_findings, open_quarantine


def nothing_is_quarantined(connection: Connection) -> Found:
    """Check that no quarantined record waits for a person (`ledger acknowledge`)."""
    for finding in open_quarantine(connection):
        yield finding.place, finding.text


def journals_are_whole(connection: Connection) -> Found:
    """Check that no journal was damaged or cut without `ledger acknowledge`."""
    for finding in open_journal_findings(connection):
        yield finding.place, finding.text
