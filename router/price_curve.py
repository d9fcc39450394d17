"""The price of one engine-second, bent by predicted load.

An own engine's GPU-hour is sunk, so its time is free until it is scarce. `lambda` (the bid price)
says what the last engine-second is worth when the engine is full; the gate scales it down to zero
as predicted load `z` falls, because a price that ignores momentary slack turns away paying work.
Where the trailing arrivals' densities are spread wide (several comparators share the engine), the
curve keeps the last capacity for the dearest. Gate, curve and switch are flat in their numbers:
reference simulation on real traces, 2026-11-20.
"""

import math

GATE_FROM = 0.3  # below this load an engine-second costs nothing
GATE_FULL = 0.9  # from this load on the gate asks the whole price
CURVE_FULL = 0.8  # where the curve asks the whole price and begins to climb
CURVE_EXPONENT = 0.5
SPREAD_SWITCH = 2.5  # D90/D10 of trailing arrivals from which the curve is used


def bend_price(
    bid_price: float, load: float, *, top_density: float = 0.0, density_spread: float = 1.0
) -> float:
    """Return the least density (pico-USD per engine-second) that is admitted at this load.

    `top_density` is D98 and `density_spread` D90/D10 of trailing arrivals; without them (a fixed
    bid price) the gate is used.
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
    """Return the bid price at `CURVE_FULL`, then geometrically up to the dearest density."""
    if load <= GATE_FROM or bid_price <= 0.0:
        return 0.0
    if load <= CURVE_FULL:
        return bid_price * (load - GATE_FROM) / (CURVE_FULL - GATE_FROM)
    climb = min(1.0, CURVE_EXPONENT * (load - CURVE_FULL) / (1.0 - CURVE_FULL))
    return bid_price * math.pow(max(1.0, top_density / bid_price), climb)
