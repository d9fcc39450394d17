"""Adjustments are found by the day that was invoiced, for who reads everything."""

from ledger.database import snapshot
from ledger.invoices.adjusted import Adjustment, posted_adjustments
from ledger.spans import DAY_US, HOUR_US, Scope


def test_parties_are_named_as_payables_are(random_ledger) -> None:
    day = random_ledger.START_US
    with snapshot(random_ledger.reader) as connection:
        found = list(
            posted_adjustments(connection, Scope(day, random_ledger.end_us), bucket_us=DAY_US)
        )
        assert found == [
            Adjustment(day, "gpu:reserved", 7_000_000_000_001),
            Adjustment(day, "provider:openai", -1_234_567),
        ]
        by_hour = list(posted_adjustments(connection, Scope(day, day + DAY_US), bucket_us=HOUR_US))
        assert {item.start_us for item in by_hour} == {day + 23 * HOUR_US}
        assert (
            list(posted_adjustments(connection, Scope(day + DAY_US, 2**60), bucket_us=DAY_US)) == []
        )
        everything = Scope(day, random_ledger.end_us, "search")
        assert list(posted_adjustments(connection, everything, bucket_us=DAY_US)) == []
