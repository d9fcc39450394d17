"""Idle time that is shared adds up to the bill, to the unit, whoever used how much."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.reports.showback import IdleShare, share_idle

USED = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 10**15), max_size=5)


@given(USED, st.integers(0, 10**16), st.sampled_from([IdleShare.BY_USE, IdleShare.EQUALLY]))
def test_parts_are_the_whole_to_the_unit(used, idle, how) -> None:
    found = share_idle(used, idle, how)
    assert sum(found.values()) == (idle if used and idle else 0)
    assert all(part >= 0 for part in found.values())


def test_by_use_and_equally() -> None:
    used = {"search": 3, "ads": 1, "new": 0}
    assert share_idle(used, 100, IdleShare.BY_USE) == {"ads": 25, "new": 0, "search": 75}
    assert share_idle(used, 100, IdleShare.EQUALLY) == {"ads": 34, "new": 33, "search": 33}
    assert share_idle(used, 100, IdleShare.APART) == {}
    assert share_idle({"a": 0}, 7, IdleShare.BY_USE) == {"a": 7}, "nobody used it, and it is billed"
