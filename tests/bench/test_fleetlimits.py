"""What abilities are worth, on drawn days: more knowledge closes more, and losses add up."""

import numpy as np
import pytest
from fleetlimits import clairvoyant_engines, limits, losses
from fleetplay import RentRule, clairvoyant, fixed, play
from fleetrules import PlannerRule
from fleetseries import Series


def drawn(price: float = 3.0, counted_from: int = 0) -> Series:
    rng = np.random.default_rng(9)
    rates = 4 * np.exp(0.4 * np.sin(np.arange(144) / 23) + rng.normal(0, 0.3, 144))
    ones = np.ones(len(rates))
    return Series("drawn", 600, rates, price * ones, ones, 9.0, counted_from)


def test_who_knows_the_next_step_closes_nearly_all_of_the_gap() -> None:

    closed = limits(drawn(counted_from=36), RentRule())
    assert closed["ours"] < closed["fitted"] + 0.05
    assert closed["ours"] < closed["next step known"] < 1
    assert closed["next step known"] > 0.9
    assert closed["fitted"] < closed["size of the error known"]


def test_losses_by_kind_add_up_to_all_that_is_lost() -> None:
    """Without a start-up nothing else is lost."""

    series, billing = drawn(counted_from=36), RentRule(0.0)
    best, most = clairvoyant(series, billing).total, fixed(series)[0].total
    lost = play(series, billing, PlannerRule(series, billing)).total - best
    assert sum(losses(series, billing).values()) == pytest.approx(lost / (most - best))


def test_the_clairvoyant_a_step_late_has_its_own_engines() -> None:

    series, billing = drawn(), RentRule()
    engines = clairvoyant_engines(series, billing)
    again = play(series, billing, lambda step, ages: int(engines[step]))
    assert again == clairvoyant(series, billing)
