"""Representation of a plan for ledger, metrics and pages. No I/O."""

from typing import Any

from ledger.fleet.fleet_records import FleetChange
from router.scaling.plan import EngineWorth, ScalePlan

PUSD = 1e12


def usd(pusd: int | None) -> float | None:
    """Return dollars for a metric; unknown amounts stay `None`."""
    return None if pusd is None else pusd / PUSD


def document_of(plan: ScalePlan) -> dict[str, Any]:
    """Return forecast, alternatives and values as JSON; money is whole pico-USD."""
    return {
        "horizon_s": plan.horizon_s,
        "look_again_us": plan.look_again_us,
        "stop": list(plan.stop),
        "last": _worth(plan.last),
        "next": _worth(plan.next),
        "forecast": [
            {
                "name": band.name,
                "horizon_s": band.horizon_s,
                "mean": band.mean,
                "low": band.low,
                "high": band.high,
            }
            for band in plan.forecast
        ],
        "alternatives": [
            {
                "engines": item.engines,
                "rent_pusd": item.rent_pusd,
                "api_pusd": item.api_pusd,
                "start_pusd": item.start_pusd,
            }
            for item in plan.alternatives
        ],
    }


def _worth(worth: EngineWorth | None) -> dict[str, int | None] | None:
    if worth is None:
        return None
    return {
        "place": worth.place,
        "value_pusd": worth.value_pusd,
        "rent_pusd": worth.rent_pusd,
    }


def expected_pusd(plan: ScalePlan) -> int | None:
    """Return the expected gain of each engine of a change over the plan's horizon.

    `None` if the plan did not evaluate both numbers.
    """
    count = abs(plan.wanted - plan.running)
    totals = {item.engines: item.total_pusd for item in plan.alternatives}
    if not count or plan.wanted not in totals or plan.running not in totals:
        return None
    return (totals[plan.running] - totals[plan.wanted]) // count


def advised_changes(plan: ScalePlan, pool: str) -> list[FleetChange]:
    """Return the starts and stops that a plan advises, one per engine."""
    expected, until_us = expected_pusd(plan), plan.at_us + round(plan.horizon_s * 1e6)
    if plan.wanted > plan.running:
        verb, places = "start", range(plan.running + 1, plan.wanted + 1)
    else:
        verb, places = "stop", range(plan.running, plan.wanted, -1)
    return [
        FleetChange(
            pool=pool, at_us=plan.at_us, mode="advise", verb=verb, token=None, engines=place,
            reason=plan.reason.value, sentence=plan.sentence, expected_pusd=expected,
            until_us=until_us,
        )
        for place in places
    ]  # fmt: skip
