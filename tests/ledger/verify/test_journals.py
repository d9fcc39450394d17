"""The checks of journals name what a person has to acknowledge, by its place."""

from sqlalchemy import insert

from ledger.journals.findings import JournalFinding
from ledger.orm import tables as orm
from ledger.verify.journals import journals_are_whole, nothing_is_quarantined
from ledger.writing.findings import acknowledge, finding_row


def test_each_finding_is_named_until_it_is_acknowledged(engine) -> None:
    found = JournalFinding("w0-a", "w0", 2, 7, 5, 1, "why")
    aside = {"journal": "w0-a", "segment": 2, "at_us": 7, "reason": "r", "record": b"x"}
    with engine.begin() as connection:
        assert [*journals_are_whole(connection), *nothing_is_quarantined(connection)] == []
        connection.execute(insert(orm.JournalFindingRow), [finding_row(found, "h", 1)])
        connection.execute(insert(orm.QuarantinedRecordRow), [aside | {"offset": 9}])
        assert list(journals_are_whole(connection)) == [("w0-a:2:7", found.text)]
        assert list(nothing_is_quarantined(connection)) == [("w0-a:2:9", "r")]
        acknowledge(connection, ["w0-a:2:7", "w0-a:2:9"], by="ann", note=None, at_us=2)
        assert [*journals_are_whole(connection), *nothing_is_quarantined(connection)] == []
