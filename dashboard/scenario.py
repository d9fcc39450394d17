"""From a pool's books to a case that a person can turn: the base of scenarios; pure.

The base restates the period for a month of 720 hours, as the chart does: the pool's own rate, ops,
capacity, mix and cache hits, at a comparator's listed prices. A comparator that the price book
does not know has one price for every token, the average of what was avoided: the mix then moves
nothing, and the page says so.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dashboard.figures import dollars
from dashboard.volume_steps import VolumeSteps
from ledger.economics.cost import HOURS_OF_A_MONTH, SECONDS_PER_HOUR, Exact
from ledger.economics.sensitivity import BreakEvenCase, SensitivityBar
from ledger.prices.book import Price
from ledger.reports.fleet_economics import ComparatorResult
from ledger.reports.survey import Survey

MINUTE_S = 60
SWING = Fraction(1, 5)


@dataclass(frozen=True, slots=True)
class ScenarioBase:
    """`listed`: whether prices by kind of token are known."""

    case: BreakEvenCase
    listed: bool


def base_case(
    survey: Survey, pool: str, steps: VolumeSteps, verdict: ComparatorResult, price: Price | None
) -> ScenarioBase:
    """`verdict` has an average price; `price` is its comparator's in the book."""
    (bill,) = survey.pools[pool].standing.bills
    contract = next(version for version in survey.contracts if version.pool == pool)
    assert verdict.average is not None
    cells = [cell for cell in survey.cells if cell.avoids and cell.pool == pool]
    prompt, cached = (
        sum(cell.input_tokens for cell in cells),
        sum(cell.cached_tokens for cell in cells),
    )
    every = sum(cell.tokens for cell in cells)
    gpus = max(1, round(bill.gpus * bill.share))
    flat = Fraction(verdict.average.pusd_per_token)
    rates: tuple[Exact, Exact, Exact] = (flat, flat, flat)
    if price is not None:
        listed = price.terms.rates
        rates = (listed.input, listed.cached, listed.output)
    case = BreakEvenCase(
        gpus=gpus,
        gpu_pusd_per_hour=Fraction(bill.bill_pusd) / bill.gpu_hours,
        hours=HOURS_OF_A_MONTH,
        tokens_per_s=steps.capability.per_minute / MINUTE_S / gpus,
        duty=bill.available_share,
        ops_hours_per_week=Fraction(contract.ops_seconds_per_week, SECONDS_PER_HOUR),
        ops_pusd_per_hour=contract.ops_pusd_per_hour,
        input_price=rates[0],
        cached_price=rates[1],
        output_price=rates[2],
        input_share=Fraction(prompt, every) if every else Fraction(0),
        cached_share=Fraction(cached, prompt) if prompt else Fraction(0),
        served_tokens=every * steps.scale,
    )
    return ScenarioBase(case, price is not None)


def lines(case: BreakEvenCase) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    """Both lines of the scenario, where they cross and where it stands, and the capacity."""
    fixed = Fraction(case.configuration.fixed.total_pusd)
    capacity = Fraction(case.configuration.capacity.tokens)
    price = Fraction(case.avoided.pusd_per_token)
    even = fixed / price if price else None
    served = Fraction(case.served_tokens)
    end = max(served, capacity, even if even is not None and even <= 4 * capacity else 0)
    end = end * Fraction(5, 4) or Fraction(1)
    own, api = "own GPUs, overflow bought", "API"
    records = [_point(at, at * price, api) for at in (Fraction(0), end)]
    records += [
        _point(at, fixed + max(Fraction(0), at - capacity) * price, own)
        for at in sorted({Fraction(0), min(capacity, end), end})
    ]
    cost = fixed + max(Fraction(0), served - capacity) * price
    marks = [{**_point(served, cost, ""), "label": "volume", "sort": "here"}]
    if even is not None and even <= capacity:
        marks.append({**_point(even, fixed, ""), "label": "break-even", "sort": "even"})
    return records, marks, float(capacity)


def bars(found: list[SensitivityBar], result_pusd: Exact) -> list[dict[str, Any]]:
    """Both ends of each bar as the change of the month's result, the widest first."""
    return [
        {
            "name": bar.name,
            "end": f"{sign}{int(100 * bar.share)} %",
            "usd": dollars(float(Fraction(outcome.result_pusd) - Fraction(result_pusd))),
            "order": place,
        }
        for place, bar in enumerate(found)
        for sign, outcome in (("-", bar.low), ("+", bar.high))
    ]


def _point(volume: Fraction, pusd: Fraction, kind: str) -> dict[str, Any]:
    return {"volume": float(volume), "usd": dollars(float(pusd)), "kind": kind, "dash": "no"}
