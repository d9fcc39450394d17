"""Kept metrics: by day and group, the last entered value, none that was taken back."""

from datetime import date
from decimal import Decimal

from ledger.manual_entries import ManualEntry, enter
from ledger.reports.business_metric import MetricDay, TagGroup
from ledger.reports.stored_metrics import stored_metrics, subject_of

DAY = date(2026, 11, 2)
GROUPS = (None, TagGroup("path=a/b:c"), "a/b")  # in the order of their subjects


def test_each_day_and_group_has_its_last_value(engine) -> None:
    with engine.begin() as connection:
        for at_us, value in ((1, "5"), (2, "7.25")):
            for group in GROUPS:
                subject = subject_of("tickets", DAY, group)
                says = {"value": value}
                enter(connection, ManualEntry(0, subject, says, at_us, at_us, "ann"))
        found = stored_metrics(connection, 3)
        assert found == {"tickets": [MetricDay(DAY, Decimal("7.25"), group) for group in GROUPS]}
        gone = subject_of("tickets", DAY, None)
        enter(connection, ManualEntry(0, gone, None, 4, 4, "ann"))
        assert [item.group for item in stored_metrics(connection, 5)["tickets"]] == [*GROUPS[1:]]
