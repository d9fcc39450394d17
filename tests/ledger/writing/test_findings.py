"""Findings in the books: open until acknowledged, and open again when that is taken back."""

import pytest
from sqlalchemy import insert

from ledger.journals.findings import JournalFinding, LackingBound
from ledger.manual_entries import ManualEntry, enter
from ledger.orm import tables as orm
from ledger.writing.findings import (
    FINDING,
    FindingTotals,
    acknowledge,
    finding_row,
    finding_totals,
    open_findings,
)


def finding(offset: int, bound=LackingBound(), missing: int | None = 1, journal="w0-a"):  # noqa: B008  (a frozen value)
    return JournalFinding(journal, "w0", 2, offset, 5, missing, "why\0", bound)


@pytest.fixture
def filled(engine):
    rows = [
        finding(1, LackingBound(70, 70)),
        finding(2, LackingBound(90, 90)),
        finding(3, LackingBound(None, 40)),
        finding(4, LackingBound(0, 0), missing=0),
        finding(5, LackingBound(10, 10), journal="w1-b"),
    ]
    aside = {"journal": "w0-a", "segment": 2, "at_us": 7, "reason": "r", "record": b"x"}
    with engine.begin() as connection:
        connection.execute(
            insert(orm.JournalFindingRow), [finding_row(each, "h1", 7) for each in rows]
        )
        connection.execute(
            insert(orm.QuarantinedRecordRow), [aside | {"offset": 1}, aside | {"offset": 9}]
        )
    return engine


def places(connection) -> list[str]:
    return [each.place for each in open_findings(connection)]


ALL = [f"w0-a:2:{offset}" for offset in (1, 2, 3, 4)] + ["w1-b:2:5", "w0-a:2:9"]


def test_a_place_is_one_finding_and_quarantine_is_one_too(filled) -> None:
    with filled.connect() as connection:
        assert places(connection) == ALL
        first, last = open_findings(connection)[0], open_findings(connection)[-1]
        assert finding_totals(connection) == FindingTotals(6, 100, 1)
    assert (first.host, first.at_us, first.finding.bound) == ("h1", 7, LackingBound(70, 70))
    assert first.finding.reason == "why\\0"
    assert (last.finding, last.text) == (None, "r")


def test_what_was_acknowledged_is_not_open_until_it_is_taken_back(filled) -> None:
    with filled.begin() as connection:
        acknowledge(connection, ALL[:2] + ALL[-1:], by="ann", note="seen", at_us=9)
        acknowledge(connection, ALL[:1], by="ann", note="seen", at_us=9)  # once more
        assert places(connection) == ALL[2:-1]
        assert finding_totals(connection) == FindingTotals(3, 10, 1)
        enter(connection, ManualEntry(0, FINDING + ALL[0], None, 12, 12, "bob"))
        assert places(connection) == [ALL[0], *ALL[2:-1]]
