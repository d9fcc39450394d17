"""Stored findings in journals: written by the writer, open until a person accepts them.

A quarantined record is a finding too. An acknowledgement is an entry of `ledger.manual_entries`, so
`ledger changes` and the audit log show author, time and reason. An entry that withdraws it opens
the finding again.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, select

from ledger.database import reading
from ledger.journals.findings import JournalFinding, LackingBound
from ledger.manual_entries import ManualEntry, enter, entries
from ledger.orm.books import QuarantinedRecordRow
from ledger.orm.journals import JournalFindingRow

FINDING = "finding:"  # prefix of a manual entry's subject


class OpenFinding(msgspec.Struct, frozen=True):
    """A finding that is not acknowledged. `place` is `JOURNAL:SEGMENT:OFFSET`.

    `finding` is `None` for a quarantined record, whose reason is `text`.
    """

    place: str
    host: str | None
    at_us: int
    text: str
    finding: JournalFinding | None = None


class FindingTotals(msgspec.Struct, frozen=True):
    """Totals of the open findings: count, highest cost in pico-USD, count without known bound."""

    count: int = 0
    at_most_pusd: int = 0
    unbounded: int = 0


def place_of(journal: str, segment: int, offset: int) -> str:
    return f"{journal}:{segment}:{offset}"


def finding_row(finding: JournalFinding, host: str, at_us: int) -> dict[str, Any]:
    return {
        "journal": finding.journal,
        "worker": finding.worker,
        "host": host,
        "segment": finding.segment,
        "offset": finding.offset,
        "at_us": at_us,
        "after": finding.after,
        "missing": finding.missing,
        "reason": finding.reason.replace("\0", "\\0"),
        "at_most_pusd": finding.bound.at_most_pusd,
        "budgets_pusd": finding.bound.budgets_pusd,
    }


def untold_part(connection: Connection, finding: JournalFinding) -> JournalFinding | None:
    """Return the part of a finding that is not stored yet, at its own place; `None` if all is.

    Damage at the end of a live worker's journal may grow after it was reported and acknowledged.
    """
    table = JournalFindingRow
    query = select(table.offset, table.after, table.missing).where(
        table.journal == finding.journal, table.segment == finding.segment
    )
    places = {row.offset: row for row in connection.execute(query)}
    offset, told = finding.offset, finding.after
    while (row := places.get(offset)) is not None:
        if row.missing is None or finding.missing is None:
            return None
        offset, told = offset + 1, max(told, row.after + row.missing)
    if offset == finding.offset or finding.missing is None:
        return finding
    more = finding.after + finding.missing - told
    if more <= 0:
        return None
    return msgspec.structs.replace(finding, offset=offset, after=told, missing=more)


def open_journal_findings(connection: Connection) -> Iterator[OpenFinding]:
    """Yield damaged and missing places of journals that are not acknowledged, oldest first."""
    known = _acknowledged(connection)
    table = JournalFindingRow
    columns = [table.__table__.columns[name] for name in _COLUMNS]
    for row in connection.execute(select(*columns).order_by(table.seq)):
        place = place_of(row.journal, row.segment, row.offset)
        if place not in known:
            yield _open(place, row)


def open_quarantine(connection: Connection) -> Iterator[OpenFinding]:
    """Yield quarantined records that are not acknowledged and not in a journal's finding."""
    known = _acknowledged(connection) | _journal_places(connection)
    table = QuarantinedRecordRow
    query = select(table.journal, table.segment, table.offset, table.at_us, table.reason)
    for row in connection.execute(query.order_by(table.seq)):
        place = place_of(row.journal, row.segment, row.offset)
        if place not in known:
            yield OpenFinding(place, None, row.at_us, row.reason)


def open_findings(connection: Connection) -> list[OpenFinding]:
    return [*open_journal_findings(connection), *open_quarantine(connection)]


def finding_totals(connection: Connection) -> FindingTotals:
    """Return the totals of open findings for metrics; a bound counts once per journal."""
    found = open_findings(connection)
    bounds: dict[str, int] = {}
    unbounded = 0
    for each in found:
        if each.finding is None or each.finding.missing == 0:
            continue
        pusd, name = each.finding.bound.at_most_pusd, each.finding.journal
        if pusd is None:
            unbounded += 1
        else:
            bounds[name] = max(bounds.get(name, 0), pusd)
    return FindingTotals(len(found), sum(bounds.values()), unbounded)


def read_finding_totals(engine: Engine) -> FindingTotals:
    with reading(engine) as connection:
        return finding_totals(connection)


def acknowledge(
    connection: Connection, places: Collection[str], *, by: str, note: str | None, at_us: int
) -> None:
    """Acknowledge the findings at these places."""
    for place in sorted(places):
        entry = ManualEntry(0, FINDING + place, {"acknowledged": True}, at_us, at_us, by, note)
        enter(connection, entry)


def _acknowledged(connection: Connection) -> set[str]:
    newest: dict[str, bool] = {}
    for entry in entries(connection, FINDING):
        newest.setdefault(entry.name, entry.says is not None)
    return {place for place, acknowledged in newest.items() if acknowledged}


def _journal_places(connection: Connection) -> set[str]:
    table = JournalFindingRow
    rows = connection.execute(select(table.journal, table.segment, table.offset))
    return {place_of(*row) for row in rows}


_COLUMNS: Sequence[str] = (
    "journal", "worker", "host", "segment", "offset", "at_us", "after", "missing", "reason",
    "at_most_pusd", "budgets_pusd",
)  # fmt: skip


def _open(place: str, row: Any) -> OpenFinding:
    bound = LackingBound(row.at_most_pusd, row.budgets_pusd)
    finding = JournalFinding(
        row.journal, row.worker, row.segment, row.offset, row.after, row.missing, row.reason, bound
    )
    return OpenFinding(place, row.host, row.at_us, finding.text, finding)
