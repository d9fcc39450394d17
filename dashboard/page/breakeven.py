"""Break-even page: verdict, cost of every number of own GPUs, unit costs next to APIs.

The sentence and the options are the ledger's verdict. Below are the unit costs of the period on a
chosen token basis, the break-even volume of each comparator, and a scenario.
"""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.data import reads, verdicts
from dashboard.data.reads import DashboardView
from dashboard.figures import labels
from dashboard.sections import verdict
from dashboard.sections.result_text import break_even_hints
from dashboard.sections.scenario_form import show_scenario
from ledger.economics.cost import TokenBasis, allocation_unit_cost
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.fleet.capability import CapabilitySource, PoolCapability
from ledger.reports.fleet_economics import ComparatorKind, ComparatorResult, FleetEconomics
from ledger.reports.month_even import FREE
from ledger.reports.survey import PoolSurvey, Survey
from ledger.reports.verdict_read import evens_of

BIND: Any = "query-params"
COLOURS = {
    ComparatorKind.SUBSTITUTE: theme.SUBSTITUTE,
    ComparatorKind.SAME_WEIGHTS: theme.SAME_WEIGHTS,
}


def show(view: DashboardView) -> None:
    theme.label(*labels(reads.survey(view)))
    found = verdicts.fleet(view) if view.viewer.sees_house else None
    if found is not None:
        verdict.show_answer(found, scope=view.scope)
    basis = st.segmented_control(
        "Token basis of prices per token",
        list(TokenBasis),
        default=TokenBasis.INPUT_OUTPUT,
        required=True,
        key="basis",
    )
    survey = reads.survey(replace(view, basis=basis))
    pools = [pool for pool, look in survey.pools.items() if not look.standing.unrated]
    if not pools:
        _show_nothing(survey)
        return
    pool = st.selectbox("Pool", pools, key="pool", bind=BIND)
    if found is None or all(line.pool != pool for line in found.judged):
        _prices(pool, survey.pools[pool], basis)
    else:
        left, right = st.columns([1, 1])
        with left:
            _show_pool(found, pool)
        with right:
            _prices(pool, survey.pools[pool], basis)
    if found is not None:
        verdict.show_sheet(found, simulated=bool(labels(survey)), even=evens_of(reads.survey(view)))
        show_scenario(view, found, pool)


def _show_pool(found: FleetVerdict, pool: str) -> None:
    """Draw the options of one pool, as bars and amounts."""
    judged = [line for line in found.judged if line.pool == pool]
    for line in judged:
        verdict.show_chart(line)
        verdict.show_options(replace(found, pools=(line,)))


def capacity_text(able: PoolCapability) -> str:
    """Return the basis of the capacity figure."""
    capacity = f"**{formatting.tokens(able.per_minute)} tokens a minute**"
    if able.known is CapabilitySource.SPILLS:
        return f"Capacity: {capacity}, as {_spills_of(able)} for lack of room show{_rate(able)}."
    if able.known is CapabilitySource.SERVED:
        return f"Capacity: {capacity}, as was served for whole hours{_rate(able)}."
    text = f"Capacity: {capacity}, from measured step times at these requests' lengths"
    if able.known is CapabilitySource.FLOOR:
        text = f"Capacity: at least {capacity}, the busiest minutes served; nothing is measured"
    if able.capability.spilled_requests:
        weight = "explained by it" if able.spills_tell else "too few to tell anything"
        text += f" ({_spills_of(able)} for lack of room: {weight})"
    return f"{text}. Overflow is counted in windows of {able.window_minutes} min."


def _spills_of(able: PoolCapability) -> str:
    count = able.capability.spilled_requests
    return f"{count:,} {'request that' if count == 1 else 'requests that'} spilled"


def _rate(able: PoolCapability) -> str:
    """Return the rate by step times, if another figure is used."""
    if able.measured_per_minute is None:
        return ""
    rate = formatting.tokens(able.measured_per_minute)
    return f"; step times alone, at these requests' lengths, would say {rate}"


def _prices(pool: str, look: PoolSurvey, basis: TokenBasis) -> None:
    """Draw unit costs of the pool's period on one basis, and each comparator's break-even."""
    standing = look.standing
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
    for comparator in standing.verdicts:
        if comparator.average is not None:
            price = formatting.money(Fraction(comparator.average.pusd_per_token) * 10**6)
            names = ", ".join(comparator.comparators)
            rows.append((names, price, COLOURS[comparator.against]))
            notes += break_even_lines(standing, comparator)
    if look.capability is not None:
        notes.append(capacity_text(look.capability))
    theme.card(
        f"Cost per 1M tokens, {basis}, pool {pool}",
        theme.rows(*rows),
        theme.small(*notes),
        about="unit",
    )


def break_even_lines(standing: FleetEconomics, comparator: ComparatorResult) -> list[str]:
    """Return the monthly tokens at which own engines cost as much as the comparator."""
    even = comparator.even
    if standing.is_free:
        return [f"No break-even against the {comparator.against}: {FREE}."]
    if even is None or even.volume is None or not even.feasible:
        return [
            f"No break-even against the {comparator.against}.",
            *break_even_hints(standing, comparator),
        ]
    month = standing.per_month(even.volume.tokens) or Fraction(0)
    return [
        (
            f"Break-even against the {comparator.against}: **{formatting.tokens(month)}** tokens a "
            "month on own engines, at the costs booked in the period."
        )
    ]


def _show_nothing(survey: Survey) -> None:
    if survey.standing.unrated:
        pools = ", ".join(f"`{pool}`" for pool in survey.standing.unrated)
        st.info(
            f"Enter your GPU rate for {pools} on [Rates and teams](rates): without it there is no "
            "own cost to draw.",
            icon=":material/price_change:",
        )
        return
    st.info(
        "No own hardware is configured, so there is no cost of it to draw: name a pool of "
        "engines (`pools.NAME`) with its rate, or see what one would cost on "
        "[Plan a purchase](plan).",
        icon=":material/show_chart:",
    )
