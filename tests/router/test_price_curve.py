"""The price of engine time bends with load: free when idle, whole when full, dearer at the top."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.price_curve import bend_price, curve, gate_price


@pytest.mark.parametrize(
    ("load", "price"), [(0.0, 0.0), (0.3, 0.0), (0.6, 50.0), (0.9, 100.0), (5.0, 100.0)]
)
def test_the_gate(load, price):
    assert gate_price(100.0, load) == pytest.approx(price)


@pytest.mark.parametrize(
    ("load", "price"),
    [(0.3, 0.0), (0.55, 50.0), (0.8, 100.0), (0.9, 100 * 4**0.25), (1.0, 200.0), (9.0, 400.0)],
)
def test_the_curve_keeps_the_last_capacity_for_the_dearest(load, price):
    assert curve(100.0, load, 400.0) == pytest.approx(price)


def test_the_curve_never_falls_below_the_bid_price():
    assert curve(100.0, 0.95, 0.0) == 100.0
    assert curve(0.0, 0.95, 400.0) == 0.0


def test_a_wide_spread_switches_from_gate_to_curve():
    assert bend_price(100.0, 0.8) == gate_price(100.0, 0.8)
    assert bend_price(100.0, 0.8, top_density=400.0, density_spread=2.4) == gate_price(100.0, 0.8)
    assert bend_price(100.0, 1.0, top_density=400.0, density_spread=2.5) == pytest.approx(200.0)


@given(
    price=st.floats(0, 1e12, allow_subnormal=False),  # those have no precision to speak of
    loads=st.tuples(st.floats(0, 3), st.floats(0, 3)),
    top=st.floats(0, 1e12),
    spread=st.floats(1, 20),
)
def test_more_load_never_lowers_the_price(price, loads, top, spread):
    low, high = sorted(loads)
    options = {"top_density": top, "density_spread": spread}
    assert bend_price(price, low, **options) <= bend_price(price, high, **options) * (1 + 1e-9)
