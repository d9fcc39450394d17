"""Stretches around places."""

from gateway.content.stretches import stretches


def test_what_overlaps_is_one_stretch() -> None:
    assert list(stretches([10, 12, 100], 5, 5)) == [(5, 17), (95, 105)]
    assert list(stretches([3], 5, 5)) == [(0, 8)]
    assert list(stretches([], 5, 5)) == []
