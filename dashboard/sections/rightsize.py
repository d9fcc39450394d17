"""Cost of other GPUs for this load: each kind of the catalog next to today's.

The capacity of today's engines inside the SLO is known from their own traffic; other kinds are
scaled by memory bandwidth, and labeled as scaled.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import axes, plots
from dashboard.figures import shown_amount
from ledger.economics.cost import HOURS_OF_A_MONTH
from ledger.economics.step_cost import load_curve, sum_windows
from ledger.fleet.bills import PoolBill
from ledger.fleet.market import GpuOffer
from ledger.fleet.rightsizing import GpuOption, GpuOptionCost, sizes
from ledger.reports.survey import PoolSurvey, Survey

MOST = 8  # bars


def show(survey: Survey, known: Sequence[GpuOffer]) -> None:
    """Draw a chart and a sentence for each pool with known load, rate and capacity."""
    for pool, each_pool in survey.pools.items():
        (bill,) = each_pool.standing.bills
        name = f": {pool}" if len(survey.pools) > 1 else ""
        found = other_options(each_pool, bill, known)
        if found is None:
            continue
        st.subheader(f"Would other GPUs carry this load for less?{name}", anchor=False)
        theme.chart(
            plots.ranked_chart(
                _bars(bill, found), value="value", title=axes.money_unit("dollars a month"),
                form=axes.whole_money(),
                colour=theme.OWN,
            ),
            about="staircase",
        )  # fmt: skip
        st.caption(sentence(bill, found))


def other_options(
    pool_survey: PoolSurvey, bill: PoolBill, known: Sequence[GpuOffer]
) -> list[GpuOptionCost] | None:
    """Return other kinds with a rate, cheapest first; `None` if too little is known."""
    gpu = next((gpu for gpu in known if gpu.name == bill.gpu_type), None)
    able = pool_survey.capability
    if (
        gpu is None
        or able is None
        or not bill.is_rated
        or not bill.hours
        or not any(pool_survey.load)
    ):
        return None
    if bill.share < 1:  # the capacity of a shared machine alone is unknown
        return None
    window = able.window_minutes
    today = GpuOption(
        gpu,
        Fraction(bill.gpus, bill.replicas),
        bill.replicas,
        able.per_minute / bill.replicas * window,
    )
    found = sizes(today, load_curve(sum_windows(pool_survey.load, window)), known)
    return [size for size in found if size.pusd_per_month is not None][:MOST]


def monthly_pusd(bill: PoolBill) -> int:
    """Return the monthly pico-USD of the GPUs alone, by the period's bill."""
    return round(bill.bill_pusd * HOURS_OF_A_MONTH / bill.hours)


def _bars(bill: PoolBill, found: Sequence[GpuOptionCost]) -> list[dict[str, Any]]:
    now = f"{bill.gpus} x {bill.gpu_type} (now)"
    bars = [{"name": now, "value": shown_amount(monthly_pusd(bill))}]
    return bars + [
        {"name": f"{cost.gpus} x {cost.gpu.name}", "value": shown_amount(month)}
        for cost in found
        if (month := cost.pusd_per_month) is not None
    ]


def sentence(bill: PoolBill, found: Sequence[GpuOptionCost]) -> str:
    """Return the saving of the cheapest option, its price source, and the estimate's basis."""
    basis = (
        "Scaled from what these engines carry inside the SLO, by memory bandwidth; as many as "
        "leave no more overflow than today, with at least today's memory each. Not measured: "
        "`breakeven engine bench` on one of them says what it does."
    )
    if not found:
        return f"No other kind of the catalogue has a price and could carry it. {basis}"
    best = found[0]
    saved = monthly_pusd(bill) - (best.pusd_per_month or 0)
    verb = "would save" if saved > 0 else "would cost more by"
    source = best.gpu.lowest_source
    seen = "" if source is None else f", {source[0]} of {source[1]}"
    amount = formatting.money(abs(saved)).replace("$", "\\$")
    what = f"{best.gpus} x {best.gpu.name}"
    return f"{what} {verb} {amount} a month (the lowest public rate{seen}). {basis}"
