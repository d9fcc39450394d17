"""`value` classes behave like frozen dataclasses wherever a program looks."""

import dataclasses

import pytest

from router.value import value


@value(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


def test_equal_hashable_slotted_and_replaceable():
    assert Point(1) == Point(1, 0)
    assert {Point(1): "a"}[Point(1)] == "a"
    assert dataclasses.replace(Point(1), y=2) == Point(1, 2)
    with pytest.raises(AttributeError):
        Point(1).z = 3
