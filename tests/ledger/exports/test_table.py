"""Times are written exactly; a span is cut without a gap."""

from ledger.exports.table import moment, slices
from ledger.spans import DAY_US, HOUR_US, Scope


def test_moments_are_exact_and_in_utc() -> None:
    assert moment(0) == "1970-01-01T00:00:00.000000Z"
    assert moment(1_780_272_000_000_001) == "2026-06-01T00:00:00.000001Z"
    assert moment(1_780_272_000_000_000, digits=False) == "2026-06-01T00:00:00Z"
    assert moment(-1) == "1969-12-31T23:59:59.999999Z"


def test_slices_touch_and_are_aligned() -> None:
    scope = Scope(5 * HOUR_US, 2 * DAY_US + 7, "search")
    parts = list(slices(scope, DAY_US))
    assert [(part.start_us, part.end_us) for part in parts] == [
        (5 * HOUR_US, DAY_US), (DAY_US, 2 * DAY_US), (2 * DAY_US, 2 * DAY_US + 7),
    ]  # fmt: skip
    assert {part.team for part in parts} == {"search"}
    assert list(slices(Scope(3, 3), DAY_US)) == []
