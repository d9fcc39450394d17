"""A muted series is left out of what stands out, and no other one."""

from fractions import Fraction

from ledger.manual_entries import MUTE, ManualEntry, enter
from ledger.reports.movements import Anomaly
from ledger.reports.muting import heard, muted_series, series_of


def test_only_the_muted_series_is_left_out(engine) -> None:
    found = [Anomaly(1, name, 9, Fraction(1)) for name in ("search", "ads")]
    assert heard(found, "team", {}) == found
    with engine.begin() as connection:
        says = {"muted": True}
        enter(connection, ManualEntry(0, MUTE + series_of("team", "search"), says, 5, 5, "fay"))
        silent = muted_series(connection, 6)
    assert [anomaly.name for anomaly in heard(found, "team", silent)] == ["ads"]
    assert heard(found, "model", silent) == found
