"""The simplex finds the least of what has one."""

import math

from backends.simulator.simplex import nelder_mead


def test_it_finds_a_minimum():
    found = nelder_mead(lambda p: (p[0] - 3) ** 2 + (p[1] + 1) ** 2, (0.0, 0.0), evaluations=200)
    assert math.dist(found, (3.0, -1.0)) < 0.01


def test_it_asks_no_more_often_than_it_may():
    asked = []
    nelder_mead(lambda p: asked.append(p) or abs(p[0]), (5.0,), evaluations=30)
    assert 10 <= len(asked) <= 33
