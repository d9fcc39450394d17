"""Optimal switching of one engine: beside a plain dynamic program, and in cases that are known."""

from math import exp, log

import pytest

from router.scaling.switching import (
    RateMotion,
    SwitchCosts,
    SwitchSolver,
    SwitchValue,
    spread,
    start_steps,
)

POINTS = ((-0.3, 0.25), (0.0, 0.5), (0.3, 0.25))
MOTION = RateMotion(600.0, log(2.0), 0.1, POINTS)
RENT = 6.0  # an hour, so 1 a step


def third_engine(rate: float) -> float:
    return 3 * RENT * min(1.0, max(0.0, rate - 2))


def mean_of_third(level: float) -> float:
    return sum(share * third_engine(exp(level + error)) for error, share in POINTS)


def solved(costs: SwitchCosts, motion: RateMotion = MOTION) -> SwitchValue:
    return SwitchSolver(3, 3 * RENT, motion, RENT).solve(mean_of_third, costs, 60)


def by_both_states(level: float, steps: int, cost: float) -> tuple[float, float]:
    """Values of being off and on with so many steps to go, by recursion without a grid."""
    if not steps:
        return 0.0, 0.0
    off = on = 0.0
    for error, share in POINTS:
        level_after = MOTION.after(level) + error
        later_off, later_on = by_both_states(level_after, steps - 1, cost)
        off += share * later_off
        on += share * (third_engine(exp(level_after)) / 6 - 1 + later_on)
    return max(off, on - cost), max(off, on)


@pytest.mark.parametrize("level", [log(1.2), log(2.0), log(2.4), log(2.8), log(4.0)])
def test_the_difference_of_two_states_is_that_of_a_plain_program(level) -> None:
    """A start that costs a constant, seven steps: the recursion on a grid has no other answer."""
    cost = 0.7
    motion = RateMotion(600.0, log(2.0), 0.1, POINTS)
    solver = SwitchSolver(3, 3 * RENT, motion, RENT)
    value = solver.solve(mean_of_third, SwitchCosts(RENT, 0.0, cost), 7)
    off, on = by_both_states(level, 7, cost)
    assert value.at(level, value.on) == pytest.approx(on - off, abs=0.08)


def test_being_on_is_worth_between_nothing_and_a_start() -> None:
    costs = SwitchCosts(RENT, 300.0, 0.4)
    value = solved(costs)
    assert min(value.on) == 0.0
    lost = 0.4 + 0.5 * 3 * RENT / 6  # at most: half a step of what a full engine earns
    assert max(value.on) <= lost + 1e-9
    assert list(value.on) == sorted(value.on)


def test_dearer_rent_makes_an_engine_worth_less() -> None:
    cheap, dear = solved(SwitchCosts(RENT, 300.0)), solved(SwitchCosts(2 * RENT, 300.0))
    assert all(low <= high + 1e-9 for low, high in zip(dear.on, cheap.on, strict=True))
    assert sum(dear.on) < sum(cheap.on)


def test_blocks_start_where_the_hour_pays_and_renew_with_less() -> None:
    value = solved(SwitchCosts(RENT, 300.0, 0.0, block_steps=6))
    low, high = value.low, value.low + value.spacing * (len(value.on) - 1)
    assert value.at(low, value.renewing) < 0 < value.at(high, value.renewing)
    assert value.at(low, value.starting) < 0 < value.at(high, value.starting)
    assert all(start <= renew for start, renew in zip(value.starting, value.renewing, strict=True))


def test_a_certain_rate_starts_at_once_whatever_the_block() -> None:
    """Waiting must cost what it costs: an engine that is full for sure does not wait."""
    sure = RateMotion(600.0, log(6.0), 0.1, ((0.0, 1.0),))
    for block in (1, 2, 3, 6):
        value = solved(SwitchCosts(RENT, 300.0, 0.0, block_steps=block), sure)
        if block > 1:
            assert value.at(log(6.0), value.starting) > 0


def test_means_outside_of_the_grid_are_those_of_its_ends() -> None:
    value = SwitchValue(0.0, 1.0, (1.0, 3.0))
    assert value.mean(-9.0, ((0.0, 1.0),)) == 1.0
    assert value.mean(9.0, ((0.0, 1.0),)) == 3.0
    assert value.mean(0.5, ((0.0, 1.0),)) == value.at(0.5, value.on) == 2.0


def test_several_steps_as_one() -> None:
    two = MOTION.over(2)
    assert two.after(0.0) == pytest.approx(MOTION.after(MOTION.after(0.0)))
    assert two.step_s == 1_200.0
    assert spread(0.0, 4) == pytest.approx(2)
    assert spread(0.5, 1) == pytest.approx(1)
    assert spread(0.5, 99) == pytest.approx((4 / 3) ** 0.5)


def test_starts_end_within_a_step() -> None:
    assert start_steps(180.0, 600.0) == pytest.approx([0.3])
    assert start_steps(1_200.0, 600.0) == [1.0, 1.0]
    assert start_steps(0.0, 600.0) == []
