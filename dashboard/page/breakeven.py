"""Cost against volume: where own GPUs get cheaper than APIs, where they end, and where we are.

All amounts are restated for a month of 720 hours at the pace of the period. Own cost is a
staircase of whole GPUs plus the API cost of what overflows them, minute by minute, over the real
load curve of the period.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import fields, formatting, theme
from dashboard.charts import plots
from dashboard.data import reads
from dashboard.data.reads import DashboardView
from dashboard.figures import labels
from dashboard.sections.result_text import break_even_hints
from dashboard.sections.scenario_form import show_scenario
from dashboard.volume_steps import ChartReach, LineCrossing, VolumeSteps, curves, ladder, marks
from ledger.economics.cost import TokenBasis, allocation_unit_cost
from ledger.fleet.capability import CapabilitySource, PoolCapability
from ledger.reports.fleet_economics import ComparatorKind
from ledger.reports.overflow_price import AS_BOUGHT, OverflowPrice
from ledger.reports.survey import Survey

BIND: Any = "query-params"
COLOURS = {
    ComparatorKind.SUBSTITUTE: theme.SUBSTITUTE,
    ComparatorKind.SAME_WEIGHTS: theme.SAME_WEIGHTS,
}


def show(view: DashboardView) -> None:
    first, left, middle, right = st.columns([1.25, 1, 1.8, 0.8])
    basis = first.segmented_control(
        "Token basis", list(TokenBasis), default=TokenBasis.INPUT_OUTPUT, required=True, key="basis"
    )
    view = replace(view, basis=basis)
    survey = reads.survey(view)
    theme.label(*labels(survey))
    drawn = [
        pool
        for pool, named in survey.pools.items()
        if any(named.load)
        and not named.standing.unrated
        and any(verdict.average for verdict in named.standing.verdicts)
    ]
    if not drawn:
        _show_nothing(survey)
        return
    pool = left.selectbox("Pool", drawn, key="pool", bind=BIND)
    prices = {price.name: price for price in survey.pools[pool].overflow}
    bought_at = middle.selectbox(
        "What overflows is bought at",
        list(prices),
        format_func=lambda name: _price_name(prices[name], basis),
        key="against",
    )
    spares = fields.number(right, "Spares (N+1)", (0, 8), 0, key="spares")
    steps = ladder(survey, pool, bought_at, spares=int(spares))
    if steps is None:
        _show_nothing(survey)
        return
    reach = st.segmented_control(
        "Volumes", list(ChartReach), default=ChartReach.TODAY, required=True, key="reach"
    )
    _chart(steps, basis, reach)
    first, second = st.columns([1, 1])
    with first:
        _advice(steps, basis)
    with second:
        _prices(pool, steps, basis)
    show_scenario(view, survey, pool, steps)


def _chart(steps: VolumeSteps, basis: TokenBasis, reach: ChartReach) -> None:
    lines, colours = curves(steps, COLOURS, reach)
    chart = plots.break_even(
        lines,
        colours=colours,
        marks=marks(steps, reach),
        limit=float(steps.capacity * steps.scale),
        basis=basis,
    )
    theme.chart(chart, about="staircase")
    st.caption(
        f"Token basis: {basis}; volumes are what is asked of the pool. Shaded, where in sight: "
        f"beyond the capacity of {steps.unit(steps.gpus)} inside the SLO. Solid own line: as "
        "configured, overflow bought. Dashed own line: the best number of "
        f"{steps.hardware.many} at each volume. Diamonds: break-even. {capacity_text(steps)}"
        + (f" {steps.share}" if steps.share else "")
    )


def capacity_text(steps: VolumeSteps) -> str:
    """What the capacity rests on, and what overflows with it."""
    able = steps.capability
    capacity = f"**{formatting.tokens(able.per_minute)} tokens a minute**"
    if able.known is CapabilitySource.SPILLS:
        text = (
            f"Capacity: {capacity}, as {_spills_of(able)} for lack of room show{_step_rate(able)}"
        )
    elif able.known is CapabilitySource.SERVED:
        text = f"Capacity: {capacity}, as was served for whole hours{_step_rate(able)}"
    else:
        text = f"Capacity: {capacity}, from measured step times at these requests' lengths"
        if able.known is CapabilitySource.FLOOR:
            text = f"Capacity: at least {capacity}, the busiest minutes served; nothing is measured"
        if able.capability.spilled_requests:
            weight = "explained by it" if able.spills_tell else "too few to tell anything"
            text += f" ({_spills_of(able)} for lack of room: {weight})"
    share = steps.overflow / steps.volume
    return (
        f"{text}. Overflow is counted in windows of {able.window_minutes} min: "
        f"{formatting.percent(share, digits=1)} of what is asked today."
    )


def _spills_of(able: PoolCapability) -> str:
    count = able.capability.spilled_requests
    return f"{count:,} {'request that' if count == 1 else 'requests that'} spilled"


def _step_rate(able: PoolCapability) -> str:
    """What step times would say, where something else is believed."""
    if able.measured_per_minute is None:
        return ""
    rate = formatting.tokens(able.measured_per_minute)
    return f"; step times alone, at these requests' lengths, would say {rate}"


def _advice(steps: VolumeSteps, basis: TokenBasis) -> None:
    """The best N and where each N is best, per month."""
    best = steps.best
    rows = []
    for band in steps.bands:
        end = "and more" if band.end is None else f"to {formatting.tokens(band.end * steps.scale)}"
        name = f"{formatting.tokens(band.start * steps.scale)} {end}"
        mark = " (now)" if band == best.band else ""
        rows.append(
            (
                f"{name}{mark}",
                steps.paid(band.gpus),
                None,
            )
        )
    text = steps.paid(best.gpus)
    text = text[0].upper() + text[1:]
    theme.card(
        f"Cheapest at the present {formatting.tokens(steps.volume * steps.scale)} tokens a "
        "month asked",
        theme.big(text, size="mid"),
        theme.small(
            f"costs **{formatting.money(best.total_pusd * steps.scale)}** a month, overflow "
            "included; "
            + (
                f"that is what runs{steps.and_spares}."
                if best.gpus == steps.gpus
                else f"what runs{steps.and_spares} ({steps.paid(steps.gpus)}) costs "
                f"**{formatting.money(steps.configured_pusd * steps.scale)}**."
            ),
            _next_step(steps),
            f"Tokens a month ({basis}) and the number that is cheapest there:",
        ),
        theme.rows(*rows),
        about="staircase",
    )


def _next_step(steps: VolumeSteps) -> str:
    """From which volume another number is cheaper than the best of today."""
    end = steps.best.band.end
    if end is None:
        return f"No volume makes more than {steps.paid(steps.best.gpus)} cheaper."
    following = next(band for band in steps.bands if band.start == end)
    return (
        f"The next step, {steps.paid(following.gpus)}, pays from "
        f"**{formatting.tokens(end * steps.scale)}** tokens a month."
    )


def _prices(pool: str, steps: VolumeSteps, basis: TokenBasis) -> None:
    """Unit costs of the pool on the one basis, and what each comparator's verdict says."""
    standing = steps.standing
    own = allocation_unit_cost(fixed_pusd=standing.fixed.total_pusd, served=standing.served)
    rows = [
        (
            "Own, allocation basis (whole bill over tokens served)",
            "nothing served"
            if own is None
            else formatting.money(Fraction(own.pusd_per_token) * 10**6),
            theme.OWN,
        )
    ]
    notes = []
    for meeting in steps.meetings:
        verdict = meeting.verdict
        if verdict.average is not None:
            price = formatting.money(Fraction(verdict.average.pusd_per_token) * 10**6)
            rows.append((f"{', '.join(verdict.comparators)}", price, COLOURS[verdict.against]))
        notes += crossing_lines(steps, meeting)
    theme.card(
        f"Cost per 1M tokens, {basis}, pool {pool}",
        theme.rows(*rows),
        theme.small(*notes),
        about="unit",
    )


def crossing_lines(steps: VolumeSteps, meeting: LineCrossing) -> list[str]:
    """Break-even as page 1 has it, and where the drawn lines meet, or why they do not."""
    verdict = meeting.verdict
    even = verdict.even
    if even is None or even.volume is None or not even.feasible:
        return [
            f"No break-even against the {verdict.against}.",
            *break_even_hints(steps.standing, verdict),
        ]
    served = (
        f"**{formatting.tokens(even.volume.tokens * steps.scale)}** tokens a month on own engines"
        f"{steps.and_spares}"
    )
    if meeting.asked is None:
        shape = "which they could carry; but this load, grown in its shape, overflows before"
        return [f"Break-even against the {verdict.against}: {served}, {shape}."]
    asked = f"**{formatting.tokens(meeting.asked * steps.scale)}** are asked"
    where = f"the lines meet where {asked}, with what overflows bought"
    return [f"Break-even against the {verdict.against}: {served}; {where}."]


def _price_name(price: OverflowPrice, basis: TokenBasis) -> str:
    each = (
        f"{formatting.money(Fraction(price.average.pusd_per_token) * 10**6)} per 1M tokens, {basis}"
    )
    if price.name == AS_BOUGHT:
        return f"{AS_BOUGHT}: {each}"
    return f"{', '.join(price.comparators)} ({price.name}): {each}"


def _show_nothing(survey: Survey) -> None:
    if survey.standing.unrated:
        pools = ", ".join(f"`{pool}`" for pool in survey.standing.unrated)
        st.info(
            f"Enter your GPU rate for {pools} on [Rates and teams](rates): without it there is no "
            "own cost to draw.",
            icon=":material/price_change:",
        )
        return
    if not survey.contracts:
        st.info(
            "No own hardware is configured, so there is no cost of it to draw: name a pool of "
            "engines (`pools.NAME`) with its rate, or see what one would cost on "
            "[Plan a purchase](plan).",
            icon=":material/show_chart:",
        )
        return
    cost = formatting.money(survey.own_pusd).replace("$", "\\$")
    st.info(
        "A break-even chart needs own engines that have answered requests, and a comparator "
        f"(`models.NAME.compare_with`). In this period own GPUs cost {cost} and answered "
        "nothing that can be compared.",
        icon=":material/show_chart:",
    )
