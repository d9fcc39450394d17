"""Price of one engine-second, bent by predicted load.

The GPU-hour of an own engine is sunk, so its time is free until it is scarce. `lambda` (the bid
price) is the value of the last engine-second when the engine is full. The gate scales it down to
zero as predicted load `z` falls, because a price that ignores momentary slack turns away paying
work. Where the densities of recent arrivals are spread wide (several comparators share the engine),
the curve keeps the last capacity for the most valuable. Results are insensitive to the constants of
gate, curve and switch: reference simulation on real traces, 2026-11-20.
"""

import math

GATE_FROM = 0.3  # below this load an engine-second costs nothing
GATE_FULL = 0.9  # from this load on the gate applies the whole price
CURVE_FULL = 0.8  # load at which the curve reaches the bid price and begins to climb
CURVE_EXPONENT = 0.5
SPREAD_SWITCH = 2.5  # D90/D10 of trailing arrivals from which the curve is used


def bend_price(
    bid_price: float, load: float, *, top_density: float = 0.0, density_spread: float = 1.0
) -> float:
    """Return the minimum density (pico-USD per engine-second) admitted at this load.

    `top_density` is D98 and `density_spread` D90/D10 of recent arrivals. Without them (a fixed bid
    price) the gate is used.
    """
    if density_spread < SPREAD_SWITCH:
        return gate_price(bid_price, load)
    return curve(bid_price, load, top_density)


def gate_price(bid_price: float, load: float) -> float:
    """Return a price that rises linearly from 0 at `GATE_FROM` to the bid price at `GATE_FULL`."""
    if load <= GATE_FROM:
        return 0.0
    if load >= GATE_FULL:
        return bid_price
    return bid_price * (load - GATE_FROM) / (GATE_FULL - GATE_FROM)


def curve(bid_price: float, load: float, top_density: float) -> float:
    """Return a price that reaches the bid price at `CURVE_FULL`, then rises geometrically.

    The rise ends between the bid price and `top_density`, by `CURVE_EXPONENT`.
    """
    if load <= GATE_FROM or bid_price <= 0.0:
        return 0.0
    if load <= CURVE_FULL:
        return bid_price * (load - GATE_FROM) / (CURVE_FULL - GATE_FROM)
    climb = min(1.0, CURVE_EXPONENT * (load - CURVE_FULL) / (1.0 - CURVE_FULL))
    return bid_price * math.pow(max(1.0, top_density / bid_price), climb)
