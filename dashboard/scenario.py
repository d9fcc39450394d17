"""Scenario: the verdict's assumption sheet and traffic with entered changes; pure.

`changed` builds the sheet and the curves of a scenario; the ledger's `judge` does the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from ledger.economics.assumptions import (
    AssumptionSheet,
    AssumptionSource,
    ModelAssumption,
    ModelResidency,
)
from ledger.economics.cost import Exact
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve

ENTERED = AssumptionSource.ENTERED


@dataclass(frozen=True, slots=True)
class ScenarioChange:
    """Changes of one pool; `None` and 1 keep the sheet's value.

    `movable` maps models that are declared movable to their price per token.
    """

    pusd_per_hour: Exact | None = None
    ops_pusd_per_week: Exact | None = None
    capacity_factor: Fraction = Fraction(1)
    price_factor: Fraction = Fraction(1)
    volume_factor: Fraction = Fraction(1)
    month_hours: Exact | None = None
    movable: Mapping[str, Exact] | None = None
    billed_share: Fraction | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the changed values."""
        given = {
            "GPU rate": self.pusd_per_hour is not None,
            "hours billed": self.billed_share is not None,
            "ops": self.ops_pusd_per_week is not None,
            "capacity": self.capacity_factor != 1,
            "API prices": self.price_factor != 1,
            "volume": self.volume_factor != 1,
            "month": self.month_hours is not None,
            **{f"{model} movable": True for model in self.movable or ()},
        }
        return [name for name, is_changed in given.items() if is_changed]


def changed(found: FleetVerdict, pool: str, change: ScenarioChange) -> FleetVerdict:
    """Return the verdict on one pool's sheet with these changes."""
    (base,) = [line.assumptions for line in found.pools if line.pool == pool]
    curve = found.curves[pool]
    capacity = base.capacity_per_minute
    assumptions = replace(
        base,
        pusd_per_hour=base.pusd_per_hour if change.pusd_per_hour is None else change.pusd_per_hour,
        rate_source=base.rate_source if change.pusd_per_hour is None else ENTERED,
        rate_origin=base.rate_origin if change.pusd_per_hour is None else "this scenario",
        ops_pusd_per_week=base.ops_pusd_per_week
        if change.ops_pusd_per_week is None
        else change.ops_pusd_per_week,
        ops_source=base.ops_source if change.ops_pusd_per_week is None else ENTERED,
        ops_origin=base.ops_origin if change.ops_pusd_per_week is None else "this scenario",
        capacity_per_minute=None if capacity is None else capacity * change.capacity_factor,
        models=tuple(_model(model, change) for model in base.models),
        billed_share=base.billed_share if change.billed_share is None else change.billed_share,
    )
    month = found.sheet.month_hours if change.month_hours is None else change.month_hours
    sheet = AssumptionSheet(
        (assumptions,), month, frozenset(change.names), reserved=found.sheet.reserved
    )
    return judge(sheet, {pool: _curve(curve, change)})


def _model(model: ModelAssumption, change: ScenarioChange) -> ModelAssumption:
    price = _declared_price(model.model, change)
    if price is not None:
        return replace(
            model, residency=ModelResidency.DECLARED_MOVABLE, fallback="this scenario",
            pusd_per_token=price * change.price_factor,
        )  # fmt: skip
    before = model.pusd_per_token
    return replace(model, pusd_per_token=None if before is None else before * change.price_factor)


def _declared_price(model: str, change: ScenarioChange) -> Exact | None:
    """Return the price of a model that was declared movable, with or without a reason."""
    for name, price in (change.movable or {}).items():
        if name == model or name.startswith(f"{model} ("):
            return price
    return None


def _curve(curve: ValueCurve, change: ScenarioChange) -> ValueCurve:
    """Scale every window by the volume; tokens are rounded up to whole numbers."""
    factor, price = change.volume_factor, change.price_factor
    capacity = curve.capacity
    return ValueCurve(
        tuple(_class(traffic, change) for traffic in curve.classes),
        tuple(
            TrafficWindow(
                _scaled(window.kept, factor), _scaled(window.bought, factor), window.times
            )
            for window in curve.windows
        ),
        curve.engines,
        None if capacity is None else Fraction(capacity) * change.capacity_factor,
        tuple(round(pusd * factor * price) for pusd in curve.bought_pusd),
        tuple(_scaled(stretch, factor) for stretch in curve.stretches),
        curve.stretch_windows,
    )


def _class(traffic: TrafficClass, change: ScenarioChange) -> TrafficClass:
    price = (change.movable or {}).get(traffic.name)
    if price is not None:
        return replace(traffic, pusd_per_token=price * change.price_factor, movable=True)
    before = traffic.pusd_per_token
    return replace(traffic, pusd_per_token=None if before is None else before * change.price_factor)


def _scaled(tokens: tuple[int, ...], factor: Fraction) -> tuple[int, ...]:
    if factor == 1:
        return tokens
    return tuple(-(-count * factor.numerator // factor.denominator) for count in tokens)
